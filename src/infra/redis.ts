// The two connections to Redis (a server by URL, or a private one): they fail fast, never send a command twice, and heal by themselves.
import type { Writable } from 'node:stream';
import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from '../shared/logger.js';
import { startPrivateRedis, type PrivateRedis } from './private-redis.js';

/** Where the working state lives: a server of the operator's, or one of our own under the data directory. */
export type RedisTarget = { redisUrl: string } | { dataDirectory: string };

export interface RedisConnections {
  /** For everything but subscribing. A command is sent at once or refused at once: see `ready`. */
  readonly commands: Redis;
  /** For SUBSCRIBE alone. After a reconnect its owner subscribes again: only then it knows from when on it listens. */
  readonly subscriber: Redis;
  /**
   * Bridges a short reconnect: resolves when commands can be sent, and rejects once Redis has been away for a second, so that
   * a long outage is answered at once. To be awaited before each command. Undefined when it is there: a promise for each command is not free.
   */
  readonly ready: () => Promise<void> | undefined;
  /** The same for the subscriber. */
  readonly subscriberReady: () => Promise<void> | undefined;
  /**
   * Another connection, for a queue: its commands wait for a Redis that is away, as long as it takes, and it may block. Whoever asks for it
   * closes it; `close` disconnects what is left.
   */
  openQueueConnection(): Redis;
  /** @throws when Redis does not answer in time */
  ping(): Promise<void>;
  close(): Promise<void>;
}

const answerTimeoutMs = 2000;
const bridgedOutageMs = 1000;
const longestRetryDelayMs = 500;
const heartbeatIntervalMs = 5000;

// A command whose answer is lost may have been applied, so nothing is ever resent: a lost connection rejects what is under way
// (maxRetriesPerRequest 0), and nothing waits in a queue to be applied after its caller was told that it failed (no offline queue).
// A server that accepts and then says nothing is given up after answerTimeoutMs (socketTimeout), also in the handshake.
const connectionOptions: RedisOptions = {
  lazyConnect: true,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  connectTimeout: answerTimeoutMs,
  socketTimeout: answerTimeoutMs,
  maxLoadingRetryTime: longestRetryDelayMs,
  retryStrategy: (attempt) => Math.min(25 * 2 ** attempt, longestRetryDelayMs) + Math.floor(Math.random() * 50),
  // After a failover the address may lead to a replica: connect again, but do not send the command again.
  reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 1 : false),
};

/** Longer than a queue blocks for its next job. */
const blockingAnswerTimeoutMs = 15_000;

const queueOptions: RedisOptions = {
  ...connectionOptions,
  maxRetriesPerRequest: null,
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
  socketTimeout: blockingAnswerTimeoutMs,
};

/**
 * What is written within one turn of the event loop leaves together, as one text: for a busy server a system call for each command is what
 * Redis costs most.
 */
function gatherWrites({ stream }: { readonly stream: Writable }): void {
  const write = Reflect.get(stream, 'write') as (...chunk: unknown[]) => boolean;
  const end = Reflect.get(stream, 'end') as (...last: unknown[]) => Writable;
  let gathered = '';
  const flush = (): void => {
    const text = gathered;
    gathered = '';
    if (text !== '') write.call(stream, text);
  };
  stream.end = (...last: unknown[]): never => {
    flush();
    return end.apply(stream, last) as never;
  };
  stream.write = (...chunk: unknown[]): boolean => {
    if (chunk.length === 1 && typeof chunk[0] === 'string') {
      if (gathered === '') setImmediate(flush);
      gathered += chunk[0];
      return true;
    }
    flush();
    return write.apply(stream, chunk);
  };
}

function connect(
  target: { redisUrl: string } | { path: string },
  name: string,
  logger: Logger,
  baseOptions = connectionOptions,
): Redis {
  const options = { ...baseOptions, connectionName: `scratchpad-${name}` };
  const redis = 'path' in target ? new Redis({ ...options, path: target.path }) : new Redis(target.redisUrl, options);
  let lastMessage: string | undefined;
  redis.on('error', (error: Error) => {
    // One line for each new reason, not one for each attempt.
    if (error.message !== lastMessage)
      logger.warn({ connection: name, reason: error.message }, 'Redis does not answer');
    lastMessage = error.message;
  });
  redis.on('ready', () => {
    lastMessage = undefined;
    logger.info({ connection: name }, 'Redis is connected');
  });
  redis.on('reconnecting', () => logger.debug({ connection: name }, 'Redis is being connected again'));
  redis.connect().catch(() => undefined); // reported by the error listener; the retry strategy goes on
  return redis;
}

/** Tells when Redis was lost and lets callers wait for its return, for a second after the loss and no longer. */
function watchReadiness(redis: Redis): () => Promise<void> | undefined {
  let lostAt = Date.now();
  let wasReady = false;
  redis.on('ready', () => {
    wasReady = true;
  });
  redis.on('close', () => {
    if (wasReady) lostAt = Date.now();
    wasReady = false;
  });
  let waiting: Promise<void> | undefined;

  const wait = (remainingMs: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        clearTimeout(timer);
        redis.off('ready', onReady);
        redis.off('end', onEnd);
        waiting = undefined;
        finish();
      };
      const onReady = (): void => settle(resolve);
      const onEnd = (): void => settle(() => reject(new Error('The connection to Redis is closed')));
      const timer = setTimeout(() => settle(() => reject(new Error('Redis is not connected'))), remainingMs);
      redis.once('ready', onReady);
      redis.once('end', onEnd);
    });

  return () => {
    if (redis.status === 'ready') return undefined;
    if (redis.status === 'end') return Promise.reject(new Error('The connection to Redis is closed'));
    const remainingMs = lostAt + bridgedOutageMs - Date.now();
    if (remainingMs <= 0) return Promise.reject(new Error('Redis is not connected'));
    waiting ??= wait(remainingMs);
    return waiting;
  };
}

async function closeConnection(redis: Redis): Promise<void> {
  const farewell = redis.status === 'ready' ? redis.quit().catch(() => undefined) : Promise.resolve();
  await farewell;
  redis.disconnect();
}

/**
 * Opens both connections. Resolves also when the server at the URL is away (after about a second): it then heals by itself.
 * @throws when a private server cannot be started; the message says what to do
 */
export async function openRedis(target: RedisTarget, logger: Logger): Promise<RedisConnections> {
  let server: PrivateRedis | undefined;
  let address: { redisUrl: string } | { path: string };
  if ('dataDirectory' in target) {
    server = await startPrivateRedis(target.dataDirectory, logger);
    address = { path: server.socketPath };
  } else {
    address = target;
  }
  const commands = connect(address, 'commands', logger);
  commands.on('connect', () => gatherWrites(commands));
  const subscriber = connect(address, 'subscriber', logger);
  const queueConnections = new Set<Redis>();
  const ready = watchReadiness(commands);
  const subscriberReady = watchReadiness(subscriber);

  // A subscriber hears nothing for hours and would not notice that the other end is gone: an unanswered PING ends its socket.
  const heartbeat = setInterval(() => {
    if (subscriber.status === 'ready') subscriber.ping().catch(() => undefined);
  }, heartbeatIntervalMs);
  heartbeat.unref();

  await Promise.all([ready(), subscriberReady()]).catch((error: unknown) =>
    logger.warn({ reason: String(error) }, 'Starting without Redis; it is being connected in the background'),
  );
  return {
    commands,
    subscriber,
    ready,
    subscriberReady,
    openQueueConnection() {
      const connection = connect(address, 'queue', logger, queueOptions);
      queueConnections.add(connection);
      connection.once('end', () => queueConnections.delete(connection));
      return connection;
    },
    async ping() {
      await ready();
      await commands.ping();
    },
    async close() {
      clearInterval(heartbeat);
      for (const connection of queueConnections) connection.disconnect();
      await Promise.all([closeConnection(commands), closeConnection(subscriber)]);
      await server?.stop();
    },
  };
}
