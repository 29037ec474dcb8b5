// One append as a script against the same as MULTI, which cannot give it most of what the script does. npx tsx bench/append-by-script.ts
import { openRedis } from '../src/infra/redis.js';
import { createDataPlane } from '../src/scratchpads/data-plane.js';
import { contentKey, entriesKey, eventChannel, sequenceKey } from '../src/redis/redis-keys.js';
import { createLogger } from '../src/shared/logger.js';
import { startRedis } from '../test/support/redis.js';

const appendsPerRound = 20_000;
const concurrency = 50;
const rounds = 7;
const content = 'x'.repeat(200);

const server = await startRedis();
const redis = await openRedis({ redisUrl: server.url }, createLogger('silent'));
const dataPlane = createDataPlane({
  redis,
  limits: {
    scratchpadTtlSeconds: 86_400,
    maxContentBytes: 1_048_576,
    maxEntryBytes: 65_536,
    maxEntries: 10_000_000,
    formattedViewMaxBytes: 65_536,
  },
});

const byScript = async (pad: { ownerId: string; scratchpadId: string }): Promise<void> => {
  await dataPlane.appendEntry(pad, { content });
};
/** No tombstone, no limit, no place in the order, no idempotency: MULTI cannot decide anything. */
const byMulti = async (pad: { ownerId: string; scratchpadId: string }): Promise<void> => {
  const row = JSON.stringify({ id: 'entry_01HZZZZZZZZZZZZZZZZZZZZZZZ', content, created_at: new Date().toISOString() });
  const ttlSeconds = 86_400;
  await redis.ready();
  await redis.commands
    .multi()
    .rpush(entriesKey(pad), row)
    .hincrby(sequenceKey(pad), 'last', 1)
    .expire(entriesKey(pad), ttlSeconds)
    .expire(contentKey(pad), ttlSeconds)
    .expire(sequenceKey(pad), ttlSeconds)
    .publish(eventChannel(pad), `{"operation":"APPEND","entry":${row}}`)
    .exec();
};

interface Cost {
  perSecond: number;
  clientMicroseconds: number;
  redisMicroseconds: number;
}

async function redisCpuMicroseconds(): Promise<number> {
  const info = await redis.commands.info('cpu');
  const seconds = [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].map(([, text]) => Number(text));
  return seconds.reduce((sum, value) => sum + value, 0) * 1e6;
}

async function measure(append: typeof byScript, round: number): Promise<Cost> {
  const pad = { ownerId: 'user_bench', scratchpadId: `sp_${append.name}_${round}` };
  const redisBefore = await redisCpuMicroseconds();
  const cpuBefore = process.cpuUsage();
  const begin = performance.now();
  let started = 0;
  const lane = async (): Promise<void> => {
    while (started < appendsPerRound) {
      started += 1;
      await append(pad);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  const seconds = (performance.now() - begin) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  const redisCpu = (await redisCpuMicroseconds()) - redisBefore;
  await redis.commands.flushall();
  return {
    perSecond: appendsPerRound / seconds,
    clientMicroseconds: (cpu.user + cpu.system) / appendsPerRound,
    redisMicroseconds: redisCpu / appendsPerRound,
  };
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const results = new Map<string, Cost[]>([
  ['script', []],
  ['MULTI', []],
]);
for (let round = -1; round < rounds; round += 1) {
  for (const [name, append] of [
    ['script', byScript],
    ['MULTI', byMulti],
  ] as const) {
    const cost = await measure(append, round);
    if (round >= 0) results.get(name)!.push(cost); // the first round warms up
  }
}
const row = (name: string): Record<string, string | number> => ({
  append: name,
  'appends a second': Math.round(median(results.get(name)!.map(({ perSecond }) => perSecond))),
  'our CPU, µs each': Number(median(results.get(name)!.map(({ clientMicroseconds }) => clientMicroseconds)).toFixed(1)),
  "Redis's CPU, µs each": Number(
    median(results.get(name)!.map(({ redisMicroseconds }) => redisMicroseconds)).toFixed(1),
  ),
});
console.table([row('script'), row('MULTI')]);
await redis.close();
await server.stop();
