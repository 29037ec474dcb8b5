// Structured logs (pino), without secrets whatever a caller passes in.
import { pino, type DestinationStream, type Logger } from 'pino';

export type { Logger };

const secretNames = new Set(['secret', 'apiKey', 'authorization', 'x-api-key']);
/** As deep as the headers of a request. */
const maxDepth = 3;

/** The value itself where no secret is in it, as in nearly every line: pino's own redaction costs more than all else of a line. */
function withoutSecrets(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth === 0) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => withoutSecrets(item, depth));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  let copy: Record<string, unknown> | undefined;
  for (const name of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[name];
    const shown = secretNames.has(name) ? '[Redacted]' : withoutSecrets(member, depth - 1);
    if (shown === member) continue;
    copy ??= { ...value };
    copy[name] = shown;
  }
  return copy ?? value;
}

const clean = (fields: object): Record<string, unknown> => withoutSecrets(fields, maxDepth) as Record<string, unknown>;

/**
 * Standard output. The lines of one turn of the event loop are one write, which is what a line costs most; they are out before the
 * next turn, before the process ends, and at once when it must end.
 */
function createDestination(): DestinationStream & { flushSync(): void } {
  // Its own buffer is no help: emptying that also forces a file to the disk, and never returns once nobody reads the output any more.
  const output = pino.destination({ dest: 1, sync: true });
  let pending = '';
  let isUsed = false;
  const flushSync = (): void => {
    const lines = pending;
    pending = '';
    if (lines !== '') output.write(lines);
  };
  return {
    write(line) {
      if (pending === '') setImmediate(flushSync);
      pending += line;
      if (!isUsed) process.once('exit', flushSync);
      isUsed = true;
    },
    flushSync,
  };
}

/** As text: a busy server writes many lines within one millisecond. */
function createTimeText(): () => string {
  let writtenMs = Number.NaN;
  let text = '';
  return () => {
    const now = Date.now();
    if (now !== writtenMs) text = new Date(now).toISOString();
    writtenMs = now;
    return text;
  };
}

const timeText = createTimeText();

/**
 * A line of plain members, at least one, at level info, without looking for secrets in them. For the one line that every request writes: pino's way to it is
 * made for everything that a caller could pass.
 */
export function writePlainLine(logger: Logger, members: Record<string, string | number | boolean | undefined>): void {
  if (!logger.isLevelEnabled('info')) return;
  const output = Reflect.get(logger, pino.symbols.streamSym) as DestinationStream;
  const level = pino.levels.values['info'];
  const rest = JSON.stringify(members).slice(1);
  output.write(`{"level":${level},"time":"${timeText()}",${rest}\n`);
}

/** @param level a pino level, "silent" included */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const logger = pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { log: clean },
      // An error is looked at as it is written, with what it has beside its message.
      serializers: { err: (error: Error) => clean(pino.stdSerializers.err(error)) },
    },
    destination ?? createDestination(),
  );
  // What a child always says is formatted once, when it is made; pino's formatter of that sees the first logger alone.
  const createChild: unknown = Reflect.get(logger, 'child');
  return Object.assign(logger, {
    child(this: Logger, bindings: object, options: unknown): never {
      return Reflect.apply(createChild as () => never, this, [clean(bindings), options] as never);
    },
  });
}
