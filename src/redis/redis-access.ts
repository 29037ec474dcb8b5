// How the planes reach Redis: fail fast, and fail as UNAVAILABLE.
import type { Redis } from 'ioredis';
import { DomainError, unavailable } from '../shared/errors.js';

export type RedisCommands = Redis;

/** What the planes need of the connections; infra/redis.ts makes them. */
export interface RedisAccess {
  readonly commands: RedisCommands;
  /** Undefined when a command can be sent; else resolves when it can, and rejects soon when Redis is away. */
  readonly ready: () => Promise<void> | undefined;
  /** Called for each piece of work that Redis did not answer, for the metrics. */
  readonly onFailure?: () => void;
}

/** Error replies that tell of a mistake of ours. Every other one tells of the state that the server is in. */
const isBug = (error: Error): boolean =>
  error.name === 'ReplyError' &&
  /^(ERR|WRONGTYPE|NOSCRIPT|EXECABORT) /.test(error.message) &&
  !error.message.startsWith('ERR max number of clients');

/**
 * Runs `work` once Redis is there. What was sent is never sent again: its answer may be lost although it was applied.
 * @throws DomainError UNAVAILABLE when Redis does not answer, or answers that it cannot serve now
 */
export async function askRedis<Answer>(redis: RedisAccess, work: () => Promise<Answer>): Promise<Answer> {
  try {
    const connecting = redis.ready();
    if (connecting) await connecting;
    return await work();
  } catch (error) {
    if (error instanceof DomainError || (error instanceof Error && isBug(error))) throw error;
    redis.onFailure?.();
    throw unavailable('Redis', error);
  }
}
