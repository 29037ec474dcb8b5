// From an append on one process to its delivery by another one, both idle: against raw pub/sub of the same Redis.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { WebSocket } from 'ws';
import { graphqlShot } from '../http-load.js';
import { interleave, pick, type Plan } from '../rounds.js';
import { subscription } from '../subscriber-process.js';
import { median, percentile, type Row } from '../table.js';
import type { World } from '../world.js';

const pauseMs = 10;
const answerLimitMs = 5000;
/** Appends one after the other, before anything is measured: the other rows warm up with as much or more. */
const busyBefore = 2000;

/** Hands every message to whoever waits for the next one. */
function createMailbox() {
  let take: ((text: string) => void) | undefined;
  return {
    put: (text: string) => take?.(text),
    /** The first message with this text in it. */
    next: (mark: string): Promise<void> =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error('Nothing was delivered.')), answerLimitMs);
        take = (text) => {
          if (!text.includes(mark)) return;
          clearTimeout(timer);
          resolve();
        };
      }),
  };
}

export async function measureDelivery(world: World, plan: Plan): Promise<Row[]> {
  const [writer, reader] = await Promise.all([world.startOurs(), world.startOurs()]);
  const pad = await world.createScratchpad(writer);
  const ours = createMailbox();
  const { url, protocol, greetings } = subscription(reader.url, world.tenant.secret, pad);
  const socket = new WebSocket(url, protocol);
  const left = [...greetings];
  const greet = (): void => {
    const next = left.shift();
    if (next !== undefined) socket.send(next);
  };
  socket.on('open', greet);
  socket.on('message', (data: Buffer) => {
    greet();
    ours.put(data.toString());
  });
  const raw = createMailbox();
  const [publisher, listener] = [world.redis.client(), world.redis.client()];
  await listener.subscribe('raw');
  listener.on('message', (_channel, text) => raw.put(text));
  await sleep(1000);

  // A connection that stays open, as an agent's does; what a client costs itself is nobody's delivery.
  const client = new Client(writer.url, { pipelining: 1 });
  const append = async (mark: string): Promise<void> => {
    const { body, headers } = graphqlShot(
      'mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { id } } }',
      { input: { scratchpadId: pad, content: mark } },
      () => undefined,
      { authorization: `Bearer ${world.tenant.secret}` },
    );
    const answer = await client.request({ path: '/graphql', method: 'POST', headers, body });
    const text = await answer.body.text();
    if (answer.statusCode !== 200 || text.includes('"errors"')) throw new Error(text.slice(0, 500));
  };

  let sent = 0;
  /** @returns ms */
  const deliver = async (mailbox: typeof ours, send: (mark: string) => Promise<unknown>): Promise<number> => {
    const mark = `mark-${(sent += 1)}-`;
    const delivered = mailbox.next(mark);
    const sentAt = performance.now();
    const sending = send(mark);
    await delivered;
    const latency = performance.now() - sentAt;
    await sending;
    return latency;
  };
  const side =
    (mailbox: typeof ours, send: (mark: string) => Promise<unknown>) =>
    async (times: number): Promise<{ p50Ms: number; p99Ms: number }> => {
      const latencies: number[] = [];
      for (let index = 0; index < times; index += 1) {
        latencies.push(await deliver(mailbox, send));
        await sleep(pauseMs);
      }
      return { p50Ms: percentile(latencies, 0.5), p99Ms: percentile(latencies, 0.99) };
    };
  const sendRaw = (mark: string): Promise<number> => publisher.publish('raw', mark);
  const fresh = await side(ours, append)(100);
  // Idle means that nothing else runs, not that nothing ever ran: compilers are done with a server that has been at work for a minute.
  for (let index = 0; index < busyBefore * plan.share; index += 1) {
    await deliver(ours, append);
    await deliver(raw, sendRaw);
  }
  const results = await interleave(
    plan,
    { warmUp: 100, round: 100 },
    { ours: side(ours, append), raw: side(raw, sendRaw) },
  );
  socket.terminate();
  await client.close();
  await Promise.all([writer.stop(), reader.stop()]);
  const p50 = { ours: pick(results.ours, 'p50Ms'), raw: pick(results.raw, 'p50Ms') };
  return [
    {
      what: 'append to delivery, two idle processes, p50',
      against: 'raw Redis pub/sub',
      measure: 'ms',
      ours: median(p50.ours),
      theirs: median(p50.raw),
      result: median(p50.ours.map((value, round) => value - p50.raw[round]!)),
      aim: { atMost: 1 },
      beside: {
        'fresh p50': fresh.p50Ms,
        'p99 ms': median(pick(results.ours, 'p99Ms')),
        'theirs p99': median(pick(results.raw, 'p99Ms')),
      },
    },
  ];
}
