// What a server must never say: whoever reads its log finds what nobody was told.

/** A line of pino's, or anything that a library or the runtime printed. */
export interface Suspicion {
  line: string;
  reason: string;
}

const errorLevel = 50;
const harmless = /^(Debugger (listening|attached)|For help, see|Waiting for the debugger|Debugger ending)/;

/** @returns lines that are no log lines at all (a crash, a warning of the runtime) and lines of an error or worse */
export function scanLog(text: string): Suspicion[] {
  const suspicions: Suspicion[] = [];
  for (const line of text.split('\n')) {
    if (line === '' || harmless.test(line)) continue;
    const level = /^\{"level":(\d+)/.exec(line)?.[1];
    // A process that is killed may leave half a line, which begins as one of ours.
    if (level === undefined) suspicions.push({ line, reason: 'is no log line' });
    else if (Number(level) >= errorLevel) suspicions.push({ line, reason: 'is an error' });
  }
  return suspicions;
}
