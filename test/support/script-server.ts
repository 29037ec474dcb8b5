// script/server as a process of its own, on embedded stores, until it has told its address and its key.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');

export interface ScriptServer {
  url: string;
  developmentKey: string;
  startedInMs: number;
  output(): string;
  /** @returns the exit code and how long it took */
  stop(signal: NodeJS.Signals): Promise<{ code: number | null; tookMs: number }>;
  /** Ends it in order, running or not: killed, it would leave its private Redis to the next server that takes its folder, and none does. */
  end(): Promise<void>;
}

/** @param variables DATA_DIR, and what else configuration.md has */
export async function startScriptServer(variables: Record<string, string>): Promise<ScriptServer> {
  const begin = performance.now();
  const environment = { DATABASE_URL: '', REDIS_URL: '', DEV_API_KEY: '', HOST: '', PORT: '0' };
  const child = spawn(path.join(root, 'script/server'), {
    cwd: tmpdir(),
    env: { ...process.env, ...environment, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = await untilItGreets(child);
  const stop: ScriptServer['stop'] = async (signal) => {
    const stopBegin = performance.now();
    const ended = once(child, 'exit') as Promise<[number | null]>;
    child.kill(signal);
    const [code] = await ended;
    return { code, tookMs: performance.now() - stopBegin };
  };
  return {
    url: /answers at (\S+)/.exec(output())?.[1] ?? '',
    developmentKey: /Development key +(\S+)/.exec(output())?.[1] ?? '',
    startedInMs: performance.now() - begin,
    output,
    stop,
    async end() {
      if (child.exitCode === null && child.signalCode === null) await stop('SIGTERM');
    },
  };
}

async function untilItGreets(child: ChildProcess): Promise<() => string> {
  let output = '';
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      if (/Development key +\S+/.test(output)) resolve();
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('close', (code) => reject(new Error(`script/server ended with ${code}:\n${output}`)));
  });
  return () => output;
}
