// Subscriptions that are opened and dropped, at any moment of their life and over both transports, a thousand times: afterwards the
// servers hold what they held before.
import { connect, type Socket } from 'node:net';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { createScratchpad } from '../../support/operations.js';
import { eventsDocument, subscribe, transports } from '../../support/subscriber.js';
import type { Arena } from './arena.js';
import { readFootprint, type Footprint } from './inspector.js';
import { createRandom } from './random.js';
import { settle } from './settle.js';

export interface Finding {
  problems: string[];
  /** One line for a person. */
  figures: string;
}

interface Target {
  url: string;
  secret: string;
  scratchpadId: string;
}

/** Writes raw bytes and cuts the connection a moment later, with whatever the server has begun. */
async function sendAndCut(url: string, bytes: string, afterMs: number): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    socket.once('connect', () => socket.write(bytes, () => resolve()));
    socket.once('close', () => resolve());
  });
  await delay(afterMs);
  socket.resetAndDestroy();
}

const upgrade = ({ url }: Target): string =>
  [
    'GET /graphql HTTP/1.1',
    `Host: ${new URL(url).host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Protocol: graphql-transport-ws',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    '',
    '',
  ].join('\r\n');

const eventStreamRequest = ({ url, secret, scratchpadId }: Target): string => {
  const body = JSON.stringify({ query: eventsDocument, variables: { id: scratchpadId, after: '' } });
  return [
    'POST /graphql HTTP/1.1',
    `Host: ${new URL(url).host}`,
    `Authorization: Bearer ${secret}`,
    'Accept: text/event-stream',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
};

/** Says what it wants without waiting for any answer, and cuts the line a moment later. */
async function rushAndCut({ url, secret, scratchpadId }: Target, afterMs: number): Promise<void> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.once('open', () => {
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${secret}` } }));
    const cut = (): void => socket.terminate();
    socket.once('message', () => {
      const payload = { query: eventsDocument, variables: { id: scratchpadId } };
      socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
      setTimeout(cut, afterMs);
    });
    // Sometimes before the acknowledgement has come.
    if (afterMs % 3 === 0) setTimeout(cut, afterMs);
  });
  await closed;
}

/** Until the first event, or a refusal, as a client would that behaves. */
async function readOneAndLeave(target: Target, index: number): Promise<void> {
  const transport = transports[index % transports.length]!;
  const subscriber = await subscribe({ ...target, transport, after: '' });
  await settle(() => subscriber.events.length > 0 || subscriber.isOver, { withinMs: settleMs, everyMs: 5 });
  subscriber.close();
}

/** Each way to open and to drop. */
const ways: ((target: Target, moment: number, index: number) => Promise<void>)[] = [
  (target, moment) => sendAndCut(target.url, upgrade(target), moment),
  (target, moment) => sendAndCut(target.url, upgrade(target).slice(0, 60 + moment), moment),
  (target, moment) => sendAndCut(target.url, eventStreamRequest(target), moment),
  (target, moment) => sendAndCut(target.url, eventStreamRequest(target).slice(0, -1 - moment), moment),
  (target, moment) => rushAndCut(target, moment),
  (target, _moment, index) => readOneAndLeave(target, index),
];

const atOnce = 10;
const warmUpCycles = 100;
/** Caches and compiled code may still grow a little; a thousand leaked subscriptions would be far more. */
const heapSlackBytes = 6 * 1024 * 1024;
const settleMs = 30_000;
/** Of one turn of the event loop, or of a request under way: no sign of anything that stays. */
const momentary = new Set([
  'Immediate',
  'TickObject',
  'ConnectWrap',
  'GetAddrInfoReqWrap',
  'WriteWrap',
  'ShutdownWrap',
  'SimpleShutdownWrap',
]);

async function openChannels({ cluster }: Arena): Promise<string[]> {
  const client = cluster.redis.client();
  try {
    return (await client.call('PUBSUB', 'CHANNELS', 'events:*')) as string[];
  } finally {
    client.disconnect();
  }
}

async function openSubscriptions(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return [...text.matchAll(/^scratchpad_open_subscriptions\{.*\} (\d+)$/gm)].reduce(
    (sum, match) => sum + Number(match[1]),
    0,
  );
}

const describeFootprint = ({ heapBytes, resources }: Footprint): string =>
  `heap ${(heapBytes / 1024 / 1024).toFixed(1)} MB, ${JSON.stringify(resources)}`;

/** Needs servers with an inspector. */
export async function cycleSubscriptions(
  arena: Arena,
  { cycles, seed }: { cycles: number; seed: number },
): Promise<Finding> {
  const random = createRandom(seed).fork('open and drop');
  const tenant = await arena.createTenant('dropper');
  const pads = await Promise.all(Array.from({ length: 5 }, () => createScratchpad(tenant.client)));
  for (const id of pads) {
    const document =
      'mutation ($id: ID!) { appendScratchpadEntry(input: { scratchpadId: $id, content: "x" }) { entry { id } } }';
    await tenant.client.run(document, { id });
  }
  const cycle = async (index: number): Promise<void> => {
    const target: Target = {
      url: random.pick(arena.servers).url,
      secret: tenant.secret,
      scratchpadId: random.pick(pads),
    };
    await ways[index % ways.length]!(target, random.whole(0, 15), random.whole(0, 100));
  };
  const cycleAll = async (count: number): Promise<void> => {
    let next = 0;
    const work = async (): Promise<void> => {
      for (let index = next++; index < count; index = next++) await cycle(index);
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  };
  const measure = (): Promise<Footprint[]> => Promise.all(arena.servers.map(readFootprint));

  await cycleAll(warmUpCycles);
  await delay(6000); // idle keep-alive connections of fetch, and timers of half-open handshakes
  const before = await measure();
  await cycleAll(cycles);

  const problems: string[] = [];
  const isQuiet = async (): Promise<boolean> => {
    const counts = await Promise.all(arena.servers.map(({ url }) => openSubscriptions(url)));
    return counts.every((count) => count === 0) && (await openChannels(arena)).length === 0;
  };
  if (!(await settle(isQuiet, { withinMs: settleMs }))) {
    problems.push(
      `channels are left in Redis, or subscriptions in a server: ${(await openChannels(arena)).join(', ')}`,
    );
  }
  const isBack = (after: Footprint, index: number): boolean => {
    const { heapBytes, resources } = before[index]!;
    const names = new Set([...Object.keys(resources), ...Object.keys(after.resources)]);
    return (
      after.heapBytes <= heapBytes + heapSlackBytes &&
      [...names].every((name) => momentary.has(name) || (after.resources[name] ?? 0) <= (resources[name] ?? 0))
    );
  };
  let after: Footprint[] = [];
  const areAllBack = await settle(
    async () => {
      after = await measure();
      return after.every(isBack);
    },
    { withinMs: settleMs, everyMs: 1000 },
  );
  const compared = before.map(
    (footprint, index) => `${describeFootprint(footprint)} → ${describeFootprint(after[index]!)}`,
  );
  if (!areAllBack) problems.push(`a server holds more than before: ${compared.join('; ')}`);
  return { problems, figures: `${cycles} cycles; no channel left; ${compared.join('; ')}` };
}
