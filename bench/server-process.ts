// A measured server in a process of its own, and what it has used so far, asked over its IPC channel.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface Usage {
  cpuMicroseconds: number;
  residentBytes: number;
  heapBytes: number;
}

export interface ServerProcess {
  readonly url: string;
  readonly processId: number;
  usage(): Promise<Usage>;
  /** The same after a full garbage collection: what is really held. */
  usageAfterCollection(): Promise<Usage>;
  stop(): Promise<void>;
}

interface Options {
  /** A JavaScript file; a baseline sends {url} when it listens, ours logs it. */
  program: string;
  /** Set for ours, which picks no port that it could tell. */
  port?: number;
  environment: Record<string, string>;
  /** Where its log goes: a file, as in production; never a pipe that the measuring process would have to empty. */
  logFile: string;
  nodeOptions?: readonly string[];
}

const startTimeoutMs = 120_000;
const reporter = fileURLToPath(new URL('usage-reporter.js', import.meta.url));

interface Report {
  id: number;
  cpu: NodeJS.CpuUsage;
  memory: NodeJS.MemoryUsage;
}

async function becomesReady(url: string, hasEnded: () => boolean): Promise<boolean> {
  const deadline = Date.now() + startTimeoutMs;
  while (!hasEnded() && Date.now() < deadline) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.ok) return true;
    await sleep(10);
  }
  return false;
}

export async function startServer({
  program,
  port,
  environment,
  logFile,
  nodeOptions = [],
}: Options): Promise<ServerProcess> {
  const log = openSync(logFile, 'a');
  const lastLines = (): string => readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join('\n');
  // Nothing of the environment that starts the measurement reaches what is measured, but the way to find programs.
  const child = spawn(process.execPath, ['--import', reporter, ...nodeOptions, program], {
    cwd: dirname(logFile),
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      ...environment,
      ...(port !== undefined && { PORT: String(port) }),
    },
    stdio: ['ignore', log, log, 'ipc'],
  });
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const waiting = new Map<number, (report: Report) => void>();
  let lastId = 0;
  let listening: (url: string) => void = () => {};
  const announced = new Promise<string>((resolve, reject) => {
    listening = resolve;
    child.once('exit', () => reject(new Error(`${program} ended at its start:\n${lastLines()}`)));
  });
  announced.catch(() => undefined);
  child.on('message', (message: Report | { url: string }) => {
    if ('url' in message) listening(message.url);
    else waiting.get(message.id)?.(message);
  });

  async function ask(question: 'usage' | 'collect'): Promise<Usage> {
    const id = (lastId += 1);
    const report = await new Promise<Report>((resolve, reject) => {
      waiting.set(id, resolve);
      child.send({ id, ask: question }, (error) => error && reject(error));
    }).finally(() => waiting.delete(id));
    return {
      cpuMicroseconds: report.cpu.user + report.cpu.system,
      residentBytes: report.memory.rss,
      heapBytes: report.memory.heapUsed + report.memory.external,
    };
  }

  const url = port === undefined ? await announced : `http://127.0.0.1:${port}`;
  if (port !== undefined && !(await becomesReady(url, hasEnded))) {
    child.kill('SIGKILL');
    throw new Error(`${program} did not become ready:\n${lastLines()}`);
  }
  return {
    url,
    processId: child.pid!,
    usage: () => ask('usage'),
    usageAfterCollection: () => ask('collect'),
    async stop() {
      if (hasEnded()) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(timer);
    },
  };
}
