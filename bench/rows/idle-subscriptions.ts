// 2,000 subscriptions that wait on one process: what each holds in memory, and what they cost while nothing happens.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Plan } from '../rounds.js';
import { startSubscribers, subscription } from '../subscriber-process.js';
import type { Row } from '../table.js';
import type { World } from '../world.js';

const count = 2000;
const padCount = 100;

export async function measureIdleSubscriptions(world: World, { share }: Plan): Promise<Row[]> {
  const ours = await world.startOurs();
  const subscribers = startSubscribers();
  const pads: string[] = [];
  for (let index = 0; index < padCount; index += 1) pads.push(await world.createScratchpad(ours));
  const sockets = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) =>
      subscription(ours.url, world.tenant.secret, pads[(from + index) % padCount]!),
    );
  // The first ones make what all of them share: compiled code, the channels of Redis.
  await subscribers.connect(sockets(0, padCount));
  const before = await ours.usageAfterCollection();
  await subscribers.connect(sockets(padCount, padCount + count));
  const after = await ours.usageAfterCollection();
  // What the last ones left behind, such as garbage, is not what waiting costs.
  await sleep(2000);
  const windowMs = Math.max(10_000 * share, 2000);
  const idleFrom = await ours.usage();
  await sleep(windowMs);
  const idleTo = await ours.usage();
  const { closed } = await subscribers.report();
  if (closed > 0) throw new Error(`${closed} subscriptions ended.`);
  await subscribers.stop();
  await ours.stop();
  const what = `${count} idle subscriptions, a WebSocket each, on one process`;
  const heapKiB = (after.heapBytes - before.heapBytes) / count / 1024;
  const cpuPercent = (idleTo.cpuMicroseconds - idleFrom.cpuMicroseconds) / windowMs / 10;
  return [
    {
      what,
      against: '-',
      measure: 'KiB of heap and buffers each',
      ours: heapKiB,
      result: heapKiB,
      aim: { below: 20 },
      beside: { 'resident KiB each': (after.residentBytes - before.residentBytes) / count / 1024 },
    },
    { what, against: '-', measure: '% of one CPU', ours: cpuPercent, result: cpuPercent, aim: { below: 5 } },
  ];
}
