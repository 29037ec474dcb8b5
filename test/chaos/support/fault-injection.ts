// Makes the planned faults happen to real processes, and brings back what they took away.
import { setTimeout as delay } from 'node:timers/promises';
import type { ControllablePostgresServer } from '../../support/postgres.js';
import type { TestRedis } from '../../support/redis.js';
import type { Fault, FaultKind } from './fault-schedule.js';
import type { ServerSlot } from './server-slot.js';

export interface Victims {
  redis: TestRedis;
  postgres: Pick<ControllablePostgresServer, 'stop' | 'start'>;
  servers: readonly ServerSlot[];
}

/** Runs what is given to it one after the other. */
function createQueue(): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work);
    last = next.catch(() => undefined);
    return next;
  };
}

async function tellRedis(redis: TestRedis, command: string, ...words: string[]): Promise<void> {
  const client = redis.client({ maxRetriesPerRequest: 3 });
  try {
    await client.call(command, ...words);
  } finally {
    client.disconnect();
  }
}

/** @returns does one fault; resolves when what it took away is back. Faults of one victim wait for each other, others overlap. */
export function createFaultInjection({ redis, postgres, servers }: Victims): (fault: Fault) => Promise<void> {
  const inRedis = createQueue();
  const inPostgres = createQueue();
  const inServers = servers.map(createQueue);

  const toServer = (fault: Fault, end: (server: ServerSlot) => Promise<void>): Promise<void> =>
    inServers[fault.server]!(async () => {
      const server = servers[fault.server]!;
      await end(server);
      await delay(fault.lastsMs);
      await server.start();
    });

  const effects: Record<FaultKind, (fault: Fault) => Promise<void>> = {
    'server killed': (fault) => toServer(fault, (server) => server.kill()),
    'server stopped': (fault) => toServer(fault, (server) => server.stop()),
    'Redis killed': ({ lastsMs }) =>
      inRedis(async () => {
        await redis.kill();
        await delay(lastsMs);
        await redis.restart();
      }),
    'Redis paused': ({ lastsMs }) =>
      inRedis(async () => {
        await tellRedis(redis, 'CLIENT', 'PAUSE', String(lastsMs));
        await delay(lastsMs);
      }),
    'Redis frozen': ({ lastsMs }) =>
      inRedis(async () => {
        redis.freeze();
        await delay(lastsMs);
        redis.thaw();
      }),
    'Redis pubsub cut': () => inRedis(() => tellRedis(redis, 'CLIENT', 'KILL', 'TYPE', 'pubsub')),
    'Redis clients cut': () => inRedis(() => tellRedis(redis, 'CLIENT', 'KILL', 'TYPE', 'normal')),
    'PostgreSQL restarted': ({ lastsMs }) =>
      inPostgres(async () => {
        await postgres.stop('immediate');
        await delay(lastsMs);
        await postgres.start();
      }),
  };
  return (fault) => effects[fault.kind](fault);
}
