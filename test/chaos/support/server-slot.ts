// A place where a server process runs, as built and with production settings: always at the same port, started again after it was
// ended, and watched: how it ended and what it said is judged later.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const root = resolve(import.meta.dirname, '../../..');
const startLimitMs = 30_000;
/** What an operator allows before SIGKILL. */
const stopLimitMs = 10_000;

export interface ServerSlot {
  readonly name: string;
  readonly url: string;
  /** Where it writes: one file over all its processes. */
  readonly logFile: string;
  readonly processId: number | undefined;
  /** Starts a process unless one runs; resolves when it answers. */
  start(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGTERM. */
  stop(): Promise<void>;
  /** Ends that nobody asked for, ends with a wrong exit code, and starts that failed. */
  readonly complaints: readonly string[];
  /** How many processes ran here. */
  readonly generations: number;
  /** Where the inspector of the running process listens; only for a slot with `inspect`. */
  inspectorUrl(): string;
}

export interface ServerSlotOptions {
  name: string;
  folder: string;
  environment: Record<string, string>;
  /** Opens Node's inspector on loopback, to look at heap and handles from outside. */
  inspect?: boolean;
}

/** Below the ports that the kernel gives to outgoing connections: nobody takes it while the server is down. */
async function reservedPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((settle) => {
      probe.once('error', () => settle(false));
      probe.listen(port, '127.0.0.1', () => settle(true));
    });
    await new Promise((closed) => probe.close(closed));
    if (isFree) return port;
  }
}

const answers = (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) }).then(
    (response) => response.ok,
    () => false,
  );

export async function createServerSlot(options: ServerSlotOptions): Promise<ServerSlot> {
  const { name, folder, environment, inspect = false } = options;
  const port = await reservedPort();
  const url = `http://127.0.0.1:${port}`;
  const logFile = join(folder, `${name}.log`);
  const complaints: string[] = [];
  let child: ChildProcess | undefined;
  let isEnding = false;
  let generations = 0;

  const launch = (): ChildProcess => {
    const log = openSync(logFile, 'a');
    const flags = inspect ? ['--inspect=127.0.0.1:0'] : [];
    const started = spawn(process.execPath, [...flags, join(root, 'dist/main.js')], {
      env: { PATH: process.env['PATH'], NODE_ENV: 'production', PORT: String(port), ...environment },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    const killWithUs = (): void => void started.kill('SIGKILL');
    process.once('exit', killWithUs);
    started.once('exit', (code, signal) => {
      process.off('exit', killWithUs);
      if (!isEnding) complaints.push(`${name} ended by itself: ${signal ?? `exit code ${code}`}`);
      if (child === started) child = undefined;
    });
    generations += 1;
    return started;
  };

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = child;
    if (!ending) return;
    isEnding = true;
    const exited = once(ending, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    ending.kill(signal);
    const timer = setTimeout(() => {
      complaints.push(`${name} did not end within ${stopLimitMs} ms of ${signal}`);
      ending.kill('SIGKILL');
    }, stopLimitMs);
    const [code, endedBy] = await exited;
    clearTimeout(timer);
    isEnding = false;
    if (signal === 'SIGTERM' && code !== 0) complaints.push(`${name} ended with ${code ?? endedBy} on SIGTERM`);
  };

  return {
    name,
    url,
    logFile,
    complaints,
    get processId() {
      return child?.pid;
    },
    get generations() {
      return generations;
    },
    async start() {
      const deadline = Date.now() + startLimitMs;
      while (Date.now() < deadline) {
        child ??= launch();
        if (await answers(url)) return;
        await delay(50);
      }
      complaints.push(`${name} did not answer within ${startLimitMs} ms of its start`);
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    inspectorUrl() {
      const found = [...readFileSync(logFile, 'utf8').matchAll(/Debugger listening on (ws:\S+)/g)].at(-1)?.[1];
      if (found === undefined) throw new Error(`${name} has no inspector`);
      return found;
    },
  };
}
