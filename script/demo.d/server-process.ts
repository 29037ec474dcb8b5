// The built server as a process of its own, on embedded stores in a folder that goes with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const main = path.resolve(import.meta.dirname, '../../dist/main.js');
const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'NODE_EXTRA_CA_CERTS'];
const startLimitMs = 60_000;
const stopLimitMs = 12_000;

export interface ServerProcess {
  url: string;
  developmentKey: string;
  /** Ends the process and removes its folder. Safe to repeat. */
  close(): Promise<void>;
}

/** @param settings variables of docs/configuration.md. @throws Error with the server's own words when it does not start */
export async function startServerProcess(settings: Record<string, string>): Promise<ServerProcess> {
  const dataDirectory = await mkdtemp(path.join(tmpdir(), 'scratchpad-demo-'));
  const environment = Object.fromEntries(inherited.map((name) => [name, process.env[name]]));
  const child = spawn(process.execPath, [main], {
    env: { ...environment, PORT: '0', LOG_LEVEL: 'error', DATA_DIR: dataDirectory, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  let closing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      const late = new AbortController();
      void sleep(stopLimitMs, undefined, { signal: late.signal }).then(
        () => child.kill('SIGKILL'),
        () => {},
      );
      await exited;
      late.abort();
    }
    await rm(dataDirectory, { recursive: true, force: true });
  };
  const close = (): Promise<void> => (closing ??= end());

  let output = '';
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (): void => reject(new Error(`The server did not start:\n${output}`));
      const read = (chunk: Buffer): void => {
        output += chunk.toString();
        if (/Development key +\S+/.test(output)) resolve();
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      child.once('exit', fail);
      setTimeout(fail, startLimitMs).unref();
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url: /answers at (\S+)/.exec(output)?.[1] ?? '',
    developmentKey: /Development key +(\S+)/.exec(output)?.[1] ?? '',
    close,
  };
}
