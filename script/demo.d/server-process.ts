// The built server as a process of its own, on embedded stores in a folder that goes with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const main = path.resolve(import.meta.dirname, '../../dist/main.js');
const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'NODE_EXTRA_CA_CERTS'];
/** Far more than it takes, also on a machine that is busy with something else. */
const startLimitMs = 180_000;
const stopLimitMs = 12_000;

export interface ServerProcess {
  url: string;
  developmentKey: string;
  dataDirectory: string;
  /** Ends the process; its folder stays. Safe to repeat. */
  stop(): Promise<void>;
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
  async function end(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const inTime = new AbortController();
    void sleep(stopLimitMs, undefined, { signal: inTime.signal }).then(
      () => child.kill('SIGKILL'),
      () => {},
    );
    await exited;
    inTime.abort();
  }
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= end());
  const close = async (): Promise<void> => {
    await stop();
    await rm(dataDirectory, { recursive: true, force: true });
  };

  let output = '';
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (when: string): void => reject(new Error(`The server did not start${when}:\n${output}`));
      const read = (chunk: Buffer): void => {
        output += chunk.toString();
        if (/Development key +\S+/.test(output)) resolve();
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      child.once('exit', () => fail(''));
      setTimeout(() => fail(` within ${startLimitMs / 1000} s`), startLimitMs).unref();
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url: /answers at (\S+)/.exec(output)?.[1] ?? '',
    developmentKey: /Development key +(\S+)/.exec(output)?.[1] ?? '',
    dataDirectory,
    stop,
    close,
  };
}
