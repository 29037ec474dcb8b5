// One pad, 1,000 WebSocket subscribers with one document, 50 appends a second: against a bare relay of ws and ioredis.
import { setTimeout as sleep } from 'node:timers/promises';
import { interleave, pick, type Plan } from '../rounds.js';
import type { ServerProcess } from '../server-process.js';
import { startSubscribers, subscription, type Subscribers } from '../subscriber-process.js';
import { stamp, type SocketPlan } from '../subscribers.js';
import { median, medianRatio, type Row } from '../table.js';
import type { World } from '../world.js';

const subscriberCount = 1000;
const appendIntervalMs = 20;
const drainLimitMs = 10_000;
/** Appends before anybody subscribes, and how many of them at a time: what takes an append is compiled by then, on both sides. */
const busyBefore = { appends: 2000, atOnce: 10 };
const text = 'A finding of ordinary length, as agents write them: one claim, its source, and a date.';

interface FanOutResult {
  perCpuSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** Appends at a steady pace, waits until everything has arrived, and says what it cost the server. */
async function runFanOut(
  server: ServerProcess,
  subscribers: Subscribers,
  append: () => Promise<unknown>,
  appends: number,
): Promise<FanOutResult> {
  await subscribers.report();
  const before = await server.usage();
  const startedAt = performance.now();
  for (let index = 0; index < appends; index += 1) {
    // One at a time: a server that cannot keep up slows the pace down instead of refusing.
    await append();
    await sleep(Math.max(startedAt + (index + 1) * appendIntervalMs - performance.now(), 0));
  }
  const expected = appends * subscriberCount;
  let delivered = 0;
  const latencies = { p50Ms: [] as number[], p99Ms: [] as number[] };
  for (const deadline = performance.now() + drainLimitMs; delivered < expected;) {
    await sleep(100);
    const report = await subscribers.report();
    delivered += report.delivered;
    if (report.delivered > expected / 10) {
      latencies.p50Ms.push(report.p50Ms);
      latencies.p99Ms.push(report.p99Ms);
    }
    if (performance.now() > deadline)
      throw new Error(`${delivered} of ${expected} deliveries; ${report.closed} closed.`);
  }
  const after = await server.usage();
  if (delivered !== expected) throw new Error(`${delivered} deliveries instead of ${expected}.`);
  return {
    perCpuSecond: (delivered / (after.cpuMicroseconds - before.cpuMicroseconds)) * 1e6,
    p50Ms: Math.max(...latencies.p50Ms),
    p99Ms: Math.max(...latencies.p99Ms),
  };
}

export async function measureFanOut(world: World, plan: Plan): Promise<Row[]> {
  const [ours, relay] = await Promise.all([world.startOurs(), world.startBaseline('relay')]);
  const subscribers = startSubscribers();
  const pad = await world.createScratchpad(ours);
  const topic = `${relay.url}/events`;

  const appendToOurs = (): Promise<unknown> =>
    world.run(
      ours,
      'mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { id } } }',
      { input: { scratchpadId: pad, content: text + stamp() } },
    );
  const appendToRelay = async (): Promise<void> => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(topic, { method: 'POST', headers, body: JSON.stringify({ content: text + stamp() }) });
    if (!answer.ok) throw new Error(await answer.text());
    await answer.json();
  };
  for (const append of [appendToOurs, appendToRelay]) {
    let left = busyBefore.appends;
    const lane = async (): Promise<void> => {
      for (; left > 0; left -= 1) await append();
    };
    await Promise.all(Array.from({ length: busyBefore.atOnce }, lane));
  }

  const side =
    (server: ServerProcess, plan: SocketPlan, append: () => Promise<unknown>) =>
    async (appends: number): Promise<FanOutResult> => {
      await subscribers.connect(Array.from({ length: subscriberCount }, () => plan));
      try {
        return await runFanOut(server, subscribers, append, appends);
      } finally {
        await subscribers.disconnect();
        await sleep(500);
      }
    };
  const results = await interleave(
    // Appends come one every 20 ms: a longer warm-up is mostly waiting.
    { ...plan, warmUpShare: plan.share },
    { warmUp: 400, round: 150 },
    {
      ours: side(ours, subscription(ours.url, world.tenant.secret, pad), appendToOurs),
      relay: side(relay, { url: topic.replace('http', 'ws'), greetings: [], readyMark: 'ready' }, appendToRelay),
    },
  );
  await subscribers.stop();
  await Promise.all([ours, relay].map((server) => server.stop()));
  const what = `fan-out: ${subscriberCount} WebSockets on one pad, ${1000 / appendIntervalMs} appends/s`;
  const against = 'bare relay: http, ws and ioredis';
  return [
    {
      what,
      against,
      measure: "delivered in a second of the server's CPU",
      ours: median(pick(results.ours, 'perCpuSecond')),
      theirs: median(pick(results.relay, 'perCpuSecond')),
      result: medianRatio(pick(results.ours, 'perCpuSecond'), pick(results.relay, 'perCpuSecond')),
      aim: { atLeast: 0.8 },
    },
    {
      what,
      against,
      measure: 'p99 of delivery in ms',
      ours: median(pick(results.ours, 'p99Ms')),
      theirs: median(pick(results.relay, 'p99Ms')),
      result: medianRatio(pick(results.ours, 'p99Ms'), pick(results.relay, 'p99Ms')),
      aim: { below: 3 },
      beside: { 'p50 ms': median(pick(results.ours, 'p50Ms')), 'theirs p50': median(pick(results.relay, 'p50Ms')) },
    },
  ];
}
