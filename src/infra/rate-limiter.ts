// Counts requests in Redis, so that all processes together hold one limit.
import type { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { DomainError } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';

/**
 * Counts one request of whoever `key` names. While Redis is away nobody is counted and everybody is let in: a limit is no reason for
 * an outage. @throws DomainError RATE_LIMITED with the time to wait
 */
export type CountRequest = (key: string) => Promise<void> | undefined;

interface Options {
  commands: Redis;
  /** Of every counter's key. */
  keyPrefix: string;
  /** 0 is no limit: nothing is counted. */
  requestsPerMinute: number;
  /** Called for each request that was let in uncounted. */
  onUncounted: () => void;
  logger: Pick<Logger, 'warn'>;
}

const windowSeconds = 60;
const warningIntervalMs = 10_000;

const limited = (requestsPerMinute: number, msBeforeNext: number): DomainError => {
  const retryAfterSeconds = Math.max(Math.ceil(msBeforeNext / 1000), 1);
  const message = `This key has made its ${requestsPerMinute} requests of this minute: go on in ${retryAfterSeconds} s.`;
  return new DomainError('RATE_LIMITED', message, { retryAfterSeconds });
};

export function createRateLimiter(options: Options): CountRequest {
  const { commands, keyPrefix, requestsPerMinute, onUncounted, logger } = options;
  if (requestsPerMinute === 0) return () => undefined;
  const limiter = new RateLimiterRedis({
    storeClient: commands,
    keyPrefix,
    points: requestsPerMinute,
    duration: windowSeconds,
    // Nobody waits for a Redis that is away.
    rejectIfRedisNotReady: true,
    // Who is over the limit is refused without asking Redis until its minute is over: a flood costs this process little and Redis nothing.
    inMemoryBlockOnConsumed: requestsPerMinute + 1,
  });
  let warnedAtMs = -Infinity;

  return async (key) => {
    try {
      await limiter.consume(key);
    } catch (error) {
      if (error instanceof RateLimiterRes) throw limited(requestsPerMinute, error.msBeforeNext);
      onUncounted();
      if (performance.now() - warnedAtMs < warningIntervalMs) return;
      warnedAtMs = performance.now();
      logger.warn({ reason: String(error) }, 'Redis does not answer: requests are not counted');
    }
  };
}
