// appendScratchpadEntry over HTTP on 50 connections, against the same mutation in bare Mercurius and in stock Yoga.
import { checkData, graphqlShot, runLoad, type LoadResult, type Shot } from '../http-load.js';
import { interleave, pick, type Plan } from '../rounds.js';
import type { ServerProcess } from '../server-process.js';
import { median, medianRatio, type Row } from '../table.js';
import type { World } from '../world.js';
import { measureRedisLimit } from './redis-limit.js';

const connections = 50;
const work = { warmUp: 20_000, round: 6000 };
const leastShare = 0.5;
/** Of a round of a tenth of a second most would be what a server does once a second, such as asking SQL whether the key still holds. */
export const withLongRounds = (plan: Plan): Plan => ({ ...plan, share: Math.max(plan.share, leastShare) });
const content = 'A finding of ordinary length, as agents write them: one claim, its source, and a date. '.repeat(2);

export const appendDocument = `mutation Append($input: AppendScratchpadEntryInput!) {
  appendScratchpadEntry(input: $input) { entry { id content createdAt } }
}`;

interface Appended {
  appendScratchpadEntry: { entry: { id: string; content: string; createdAt: string } };
}

/** @param secret undefined for baselines, which ask for none */
export const appendShot = (scratchpadId: string, secret?: string): Shot =>
  graphqlShot(
    appendDocument,
    { input: { scratchpadId, content } },
    checkData(({ appendScratchpadEntry: { entry } }: Appended) => entry.content === content && entry.id.length > 20),
    secret === undefined ? {} : { authorization: `Bearer ${secret}` },
  );

const entriesKey = (world: World, pad: string): string => `scratchpad:${world.tenant.userId}:${pad}:entries`;

/** Answers alone prove nothing: as many entries as answers are in the ledgers, for every side. */
async function countEntries(world: World, pads: readonly string[]): Promise<number> {
  const client = world.redis.client();
  const lengths = await Promise.all(pads.map((pad) => client.llen(entriesKey(world, pad))));
  client.disconnect();
  return lengths.reduce((sum, length) => sum + length, 0);
}

export function createAppendLoad(world: World, pads: readonly string[]) {
  return (server: ServerProcess, secret?: string) =>
    async (requests: number): Promise<LoadResult> => {
      const client = world.redis.client();
      await client.del(pads.map((pad) => entriesKey(world, pad)));
      client.disconnect();
      const result = await runLoad({
        server,
        connections,
        requests,
        shotFor: (lane) => appendShot(pads[lane % pads.length]!, secret),
      });
      const entries = await countEntries(world, pads);
      if (entries !== requests) throw new Error(`${requests} answers, but ${entries} entries.`);
      return result;
    };
}

export const beside = (ours: LoadResult[], theirs: LoadResult[]): Record<string, number> => ({
  'ours/s': median(pick(ours, 'perSecond')),
  'theirs/s': median(pick(theirs, 'perSecond')),
  'p50 ms': median(pick(ours, 'p50Ms')),
  'theirs p50': median(pick(theirs, 'p50Ms')),
  'p99 ms': median(pick(ours, 'p99Ms')),
  'theirs p99': median(pick(theirs, 'p99Ms')),
});

export async function measureAppend(world: World, plan: Plan): Promise<Row[]> {
  const [ours, mercurius, yoga] = await Promise.all([
    world.startOurs(),
    world.startBaseline('mercurius'),
    world.startBaseline('yoga'),
  ]);
  const pads = [];
  for (let index = 0; index < 10; index += 1) pads.push(await world.createScratchpad(ours));
  const load = createAppendLoad(world, pads);
  const results = await interleave(withLongRounds(plan), work, {
    ours: load(ours, world.tenant.secret),
    mercurius: load(mercurius),
    yoga: load(yoga),
  });
  const limit = await measureRedisLimit(world.redis.url, connections, content);
  await Promise.all([ours, mercurius, yoga].map((server) => server.stop()));
  const cpu = {
    ours: pick(results.ours, 'cpuMicroseconds'),
    mercurius: pick(results.mercurius, 'cpuMicroseconds'),
    yoga: pick(results.yoga, 'cpuMicroseconds'),
  };
  const what = `append over HTTP, ${connections} connections`;
  const measure = "µs of the server's CPU for each";
  return [
    {
      what,
      against: 'bare Mercurius + JIT',
      measure,
      ours: median(cpu.ours),
      theirs: median(cpu.mercurius),
      result: medianRatio(cpu.mercurius, cpu.ours),
      aim: { atLeast: 1 },
      beside: beside(results.ours, results.mercurius),
    },
    {
      what,
      against: 'bare Mercurius + JIT',
      measure: 'p99 in ms',
      ours: median(pick(results.ours, 'p99Ms')),
      theirs: median(pick(results.mercurius, 'p99Ms')),
      result: medianRatio(pick(results.mercurius, 'p99Ms'), pick(results.ours, 'p99Ms')),
      aim: { atLeast: 1 },
    },
    {
      what,
      against: 'stock graphql-yoga',
      measure,
      ours: median(cpu.ours),
      theirs: median(cpu.yoga),
      result: medianRatio(cpu.yoga, cpu.ours),
      aim: { atLeast: 4 },
      beside: beside(results.ours, results.yoga),
    },
    ...(limit === undefined
      ? []
      : [
          {
            what,
            against: 'redis-benchmark, RPUSH and PUBLISH',
            measure: 'a second',
            ours: median(pick(results.ours, 'perSecond')),
            theirs: limit,
            result: median(pick(results.ours, 'perSecond')) / limit,
            aim: 'none' as const,
          },
        ]),
  ];
}
