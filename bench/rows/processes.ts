// The same append load on one process and on two over one Redis: how far a second process carries, and what each request costs then.
import { type LoadResult } from '../http-load.js';
import { interleave, pick, type Plan } from '../rounds.js';
import { median, medianRatio, type Row } from '../table.js';
import type { World } from '../world.js';
import { createAppendLoad } from './append.js';

interface Grown {
  perSecond: number;
  cpuMicroseconds: number;
}

export async function measureProcesses(world: World, plan: Plan): Promise<Row[]> {
  const [one, two] = await Promise.all([world.startOurs(), world.startOurs()]);
  const pads = [[], []] as string[][];
  for (let index = 0; index < 20; index += 1) pads[index % 2]!.push(await world.createScratchpad(one));
  const first = createAppendLoad(world, pads[0]!)(one, world.tenant.secret);
  const second = createAppendLoad(world, pads[1]!)(two, world.tenant.secret);
  const results = await interleave(
    plan,
    { warmUp: 20_000, round: 6000 },
    {
      one: async (amount): Promise<Grown> => first(amount),
      two: async (amount): Promise<Grown> => {
        const both: LoadResult[] = await Promise.all([first(amount), second(amount)]);
        return {
          perSecond: both.reduce((sum, { perSecond }) => sum + perSecond, 0),
          cpuMicroseconds: median(pick(both, 'cpuMicroseconds')),
        };
      },
    },
  );
  await Promise.all([one.stop(), two.stop()]);
  return [
    {
      what: 'append, two processes over one Redis',
      against: 'one process',
      measure: 'a second',
      ours: median(pick(results.two, 'perSecond')),
      theirs: median(pick(results.one, 'perSecond')),
      result: medianRatio(pick(results.two, 'perSecond'), pick(results.one, 'perSecond')),
      aim: 'none',
      beside: {
        'CPU µs each': median(pick(results.two, 'cpuMicroseconds')),
        'with one': median(pick(results.one, 'cpuMicroseconds')),
      },
    },
  ];
}
