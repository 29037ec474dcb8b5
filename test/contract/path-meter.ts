// What a request costs the stores, so that two requests can be shown to take the same path.
import { expect } from 'vitest';
import type { RedisWatch } from '../support/redis-watch.js';
import type { Service } from '../support/service.js';

interface Options {
  service: Pick<Service, 'takeStatementCount'>;
  redis: RedisWatch;
  /** Called before each request: what is in a cache only sometimes must not count. */
  warm: () => Promise<unknown>;
  /** Ids that no command may name in a key. */
  untouchable: readonly string[];
}

/**
 * The number of SQL statements and the commands that Redis got, as text; `id` in them is ID. Background work only ever adds to it, and not twice
 * the same in a row: the least, once it was seen twice, is the request's own.
 */
export type PathMeter = (request: () => Promise<unknown>, id: string) => Promise<string>;

export const emptyPath = JSON.stringify({ statements: 0, commands: [] });

interface Path {
  statements: number;
  commands: string[];
}

const fewestFirst = (a: Path, b: Path): number => a.statements - b.statements || a.commands.length - b.commands.length;

/** What the queue of runs, and whoever sweeps it, does by itself. */
const isOfQueue = (command: string): boolean => command.includes(' jobs:runs:');

/** The caller's key leaves the cache this often. Whoever asks next pays for looking it up. */
const cacheMs = 1000;
const acceptedRisk = 1e-6;
const maxAttempts = 40;

/** How often to ask, so that the key was in the cache at least once: the slower the machine, the likelier it left just then. */
function attemptsFor(slowestMs: number): number {
  const risk = Math.min(0.7, Math.max(0.01, slowestMs / cacheMs));
  return Math.ceil(Math.log(acceptedRisk) / Math.log(risk));
}

export function createPathMeter({ service, redis, warm, untouchable }: Options): PathMeter {
  return async (request, id) => {
    const attempts: Path[] = [];
    let slowestMs = 0;
    const isSettled = (): boolean => {
      const [first, second] = attempts.toSorted(fewestFirst);
      return attempts.length >= attemptsFor(slowestMs) && JSON.stringify(first) === JSON.stringify(second);
    };
    while (!isSettled() && attempts.length < maxAttempts) {
      const startedAt = performance.now();
      await warm();
      service.takeStatementCount();
      await redis.take();
      await request();
      const statements = service.takeStatementCount();
      slowestMs = Math.max(slowestMs, performance.now() - startedAt);
      const commands = await redis.take();
      const requested = commands.filter((command) => !isOfQueue(command)).join('\n');
      for (const owned of untouchable) expect(requested).not.toContain(`:${owned}`);
      attempts.push({ statements, commands: commands.map((command) => command.replaceAll(id, 'ID')) });
    }
    return JSON.stringify(attempts.toSorted(fewestFirst)[0]);
  };
}
