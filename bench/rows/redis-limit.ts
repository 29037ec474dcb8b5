// What Redis itself can take on this machine: redis-benchmark with the two commands of an append.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

async function perSecond(url: string, connections: number, command: readonly string[]): Promise<number> {
  const { port } = new URL(url);
  const { stdout } = await run('redis-benchmark', [
    '-p',
    port,
    '-c',
    String(connections),
    '-n',
    '100000',
    '--csv',
    ...command,
  ]);
  // "test","rps",… and below it the figures.
  return Number(/^"[^"]*","([\d.]+)"/m.exec(stdout.split('\n').slice(1).join('\n'))?.[1]);
}

/** Pairs of RPUSH and PUBLISH a second; undefined where redis-benchmark is not installed. */
export async function measureRedisLimit(
  url: string,
  connections: number,
  content: string,
): Promise<number | undefined> {
  try {
    const pushes = await perSecond(url, connections, ['RPUSH', 'scratchpad:limit', content]);
    const publishes = await perSecond(url, connections, ['PUBLISH', 'events:limit', content]);
    return 1 / (1 / pushes + 1 / publishes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
