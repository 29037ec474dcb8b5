// A server's memory under full append load: after two minutes against after 30 seconds.
import type { Plan } from '../rounds.js';
import { runLoad } from '../http-load.js';
import type { ServerProcess, Usage } from '../server-process.js';
import type { Row } from '../table.js';
import type { World } from '../world.js';
import { appendShot } from './append.js';

const totalMs = 120_000;
const firstMs = 30_000;
/** Before that the heap has not grown to its size, however little time there is. */
const earliestMs = 10_000;
const batch = 2000;

export async function measureMemory(world: World, { share }: Plan): Promise<Row[]> {
  const ours = await world.startOurs();
  const pads: string[] = [];
  for (let index = 0; index < 50; index += 1) pads.push(await world.createScratchpad(ours));
  const earlyMs = Math.max(firstMs * share, earliestMs);
  const startedAt = performance.now();
  const loadUntil = async (server: ServerProcess, endsAt: number): Promise<Usage> => {
    do {
      await runLoad({
        server,
        connections: 50,
        requests: batch,
        shotFor: (lane) => appendShot(pads[lane]!, world.tenant.secret),
      });
    } while (performance.now() < endsAt);
    return server.usage();
  };
  const early = await loadUntil(ours, startedAt + earlyMs);
  const late = await loadUntil(ours, startedAt + totalMs * share);
  await ours.stop();
  const megabytes = (bytes: number): number => bytes / 2 ** 20;
  return [
    {
      what: `resident memory after ${Math.round((totalMs * share) / 1000)} s of full append load`,
      against: `after ${Math.round(earlyMs / 1000)} s`,
      measure: 'MiB',
      ours: megabytes(late.residentBytes),
      theirs: megabytes(early.residentBytes),
      result: late.residentBytes / early.residentBytes,
      aim: { atMost: 1.1 },
      beside: { 'heap MiB': megabytes(late.heapBytes), 'early heap MiB': megabytes(early.heapBytes) },
    },
  ];
}
