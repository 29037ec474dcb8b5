// A ledger of 100,000 entries: its last page against its first one.
import { checkData, graphqlShot, runLoad, type LoadResult } from '../http-load.js';
import { interleave, pick, type Plan } from '../rounds.js';
import { median, medianRatio, type Row } from '../table.js';
import type { World } from '../world.js';
import { appendShot } from './append.js';

const entries = 100_000;

const pageDocument = `query Ledger($id: ID!, $first: Int, $last: Int) {
  scratchpad(id: $id) { entries(first: $first, last: $last) { edges { node { id content createdAt } } totalCount } }
}`;

export async function measureLedger(world: World, plan: Plan): Promise<Row[]> {
  const ours = await world.startOurs();
  const pad = await world.createScratchpad(ours);
  const size = Math.round(entries * Math.min(plan.share * 2, 1));
  await runLoad({ server: ours, connections: 50, requests: size, shotFor: () => appendShot(pad, world.tenant.secret) });
  const redis = world.redis.client();

  async function redisCpuMicroseconds(): Promise<number> {
    const info = await redis.info('cpu');
    const seconds = [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].map(([, text]) => Number(text));
    return seconds.reduce((sum, value) => sum + value, 0) * 1e6;
  }
  const side =
    (page: { first?: number; last?: number }) =>
    async (requests: number): Promise<LoadResult & { allCpu: number }> => {
      const before = await redisCpuMicroseconds();
      const result = await runLoad({
        server: ours,
        connections: 4,
        requests,
        shotFor: () =>
          graphqlShot(
            pageDocument,
            { id: pad, ...page },
            checkData(
              ({ scratchpad }: { scratchpad: { entries: { edges: unknown[]; totalCount: number } } }) =>
                scratchpad.entries.edges.length === 20 && scratchpad.entries.totalCount === size,
            ),
            { authorization: `Bearer ${world.tenant.secret}` },
          ),
      });
      return { ...result, allCpu: result.cpuMicroseconds + ((await redisCpuMicroseconds()) - before) / requests };
    };
  const results = await interleave(
    plan,
    { warmUp: 2000, round: 1000 },
    { first: side({ first: 20 }), last: side({ last: 20 }) },
  );
  await ours.stop();
  const cpu = { first: pick(results.first, 'allCpu'), last: pick(results.last, 'allCpu') };
  return [
    {
      what: `ledger of ${size.toLocaleString('en-US')} entries: last page`,
      against: 'its first page',
      measure: "µs of the server's and Redis's CPU",
      ours: median(cpu.last),
      theirs: median(cpu.first),
      result: medianRatio(cpu.last, cpu.first),
      aim: { atMost: 1.5 },
      beside: {
        'p50 ms': median(pick(results.last, 'p50Ms')),
        'first page p50': median(pick(results.first, 'p50Ms')),
      },
    },
  ];
}
