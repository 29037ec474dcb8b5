// Subscriptions against a bare ws and ioredis relay: fan-out, idle memory, delivery over two processes.
//   npx tsx bench/fan-out-probe.ts fan-out|idle|delivery [--rounds 3] [--seconds 8] [--subscribers 1000] [--own-ids]
import { Redis } from 'ioredis';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { WebSocketServer, type WebSocket } from 'ws';
import { open, type Counter } from './frame-counter.js';
import { cpuSeconds, rssBytes, start, type Server } from './measured-process.js';
import { startOwnPostgres } from '../test/support/postgres.js';
import { startRedis } from '../test/support/redis.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '8' },
    subscribers: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '50' },
    'own-ids': { type: 'boolean', default: false },
    only: { type: 'string' },
    heap: { type: 'boolean', default: false },
  },
});
const mode = positionals[0] ?? 'fan-out';
const snapshotDirectory = join(tmpdir(), 'fan-out-heap');
const administratorSecret = 'administrator-secret-of-the-bench';

async function post(url: string, secret: string, query: string, variables: object): Promise<Record<string, never>> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = (await response.json()) as { data: Record<string, never>; errors?: unknown };
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

const document =
  'subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id) { cursor operation occurredAt entry { id content author createdAt } } }';
const appendDocument =
  'mutation ($id: ID!, $content: String!, $key: String) { appendScratchpadEntry(input: { scratchpadId: $id, content: $content, idempotencyKey: $key }) { entry { id } } }';
const content = (index: number): string => `${index} `.padEnd(100, 'x');

/** Subscribes `count` sockets. */
async function subscribeAll(
  url: string,
  count: number,
  hello: { secret: string; scratchpadId: (index: number) => string } | undefined,
  onEvent: (counter: Counter, body: Buffer) => void,
): Promise<Counter[]> {
  const counters: Counter[] = [];
  for (let begin = 0; begin < count; begin += 50) {
    const some = await Promise.all(
      Array.from({ length: Math.min(50, count - begin) }, async (_, index) => {
        let acknowledge: () => void = () => undefined;
        const acknowledged = new Promise<void>((resolve) => (acknowledge = resolve));
        const counter = await open(url, (self, body) => {
          if (body.includes('connection_ack') || body.includes('"ready"')) acknowledge();
          else onEvent(self, body);
        });
        if (hello)
          counter.send(
            JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${hello.secret}` } }),
          );
        await acknowledged;
        if (hello) {
          const payload = { query: document, variables: { id: hello.scratchpadId(begin + index) } };
          counter.send(JSON.stringify({ id: values['own-ids'] ? randomUUID() : '1', type: 'subscribe', payload }));
        }
        return counter;
      }),
    );
    counters.push(...some);
  }
  return counters;
}

const quantile = (samples: number[], share: number): number =>
  samples.toSorted((a, b) => a - b)[Math.min(samples.length - 1, Math.floor(samples.length * share))] ?? NaN;

async function main(): Promise<void> {
  const postgres = await startOwnPostgres();
  const redisServer = await startRedis({});
  const environment = {
    PORT: '0',
    DATABASE_URL: await postgres.createDatabase(),
    REDIS_URL: redisServer.url,
    ADMIN_API_KEY: administratorSecret,
  };
  const snapshots = ['--heapsnapshot-signal=SIGUSR2', `--diagnostic-dir=${snapshotDirectory}`];
  const program = [...(values.heap ? snapshots : []), 'dist/main.js'];
  const running: Server[] = [];
  try {
    const ours = await start(program, environment);
    running.push(ours);
    const user = (await post(
      ours.url,
      administratorSecret,
      'mutation { createUser(input: { name: "bench" }) { secret } }',
      {},
    )) as unknown as { createUser: { secret: string } };
    const { secret } = user.createUser;
    const createPad = async (): Promise<string> => {
      const thread = (await post(
        ours.url,
        secret,
        'mutation { createThread(input: {}) { thread { id } } }',
        {},
      )) as unknown as { createThread: { thread: { id: string } } };
      const pad = (await post(
        ours.url,
        secret,
        'mutation ($id: ID!) { createScratchpad(input: { threadId: $id }) { scratchpad { id } } }',
        { id: thread.createThread.thread.id },
      )) as unknown as { createScratchpad: { scratchpad: { id: string } } };
      return pad.createScratchpad.scratchpad.id;
    };
    const padId = await createPad();
    if (mode === 'fan-out') await fanOut();
    else if (mode === 'idle') await idle();
    else await delivery();

    async function fanOut(): Promise<void> {
      const relay = await start(['--import', 'tsx', fileURLToPath(import.meta.url), 'relay', redisServer.url]);
      running.push(relay);
      const publisher = new Redis(redisServer.url);
      const rows: Record<string, Record<string, number>[]> = { relay: [], ours: [] };
      for (let round = -1; round < Number(values.rounds); round += 1) {
        for (const name of ['relay', 'ours'] as const) {
          if (values.only && values.only !== name) continue;
          const server = name === 'relay' ? relay : ours;
          const append =
            name === 'relay'
              ? async (index: number) => {
                  // As large as what a subscriber of ours gets.
                  const entry = {
                    id: 'entry_01HZZZZZZZZZZZZZZZZZZZZZZZ',
                    content: content(index),
                    author: null,
                    createdAt: new Date().toISOString(),
                  };
                  const event = {
                    cursor: 'h7ox4mzvi9.0.abcdef',
                    operation: 'APPEND',
                    occurredAt: entry.createdAt,
                    entry,
                  };
                  const message = { id: '1', type: 'next', payload: { data: { scratchpadEvents: event } } };
                  await publisher
                    .multi()
                    .rpush('relay:list', JSON.stringify(entry))
                    .publish('relay', JSON.stringify(message))
                    .exec();
                }
              : async (index: number) => {
                  for (let attempt = 0; attempt < 20; attempt += 1) {
                    try {
                      return await post(ours.url, secret, appendDocument, {
                        id: padId,
                        content: content(index),
                        key: `${round} ${index}`,
                      });
                    } catch {
                      await sleep(200);
                    }
                  }
                  throw new Error('could not append');
                };
          const seconds = round < 0 ? 3 : Number(values.seconds);
          const row = await measure(server, name === 'ours', append, seconds);
          if (round >= 0) rows[name]!.push(row);
          console.log(round, name, JSON.stringify(row));
        }
      }
      await publisher.quit();
      const median = (name: string, key: string): number =>
        quantile(
          rows[name]!.map((row) => row[key]!),
          0.5,
        );
      if (!values.only) {
        console.log(
          `ratio of deliveries per CPU second: ${(median('ours', 'perCpuSecond') / median('relay', 'perCpuSecond')).toFixed(2)}`,
        );
        console.log(`ratio of p99: ${(median('ours', 'p99') / median('relay', 'p99')).toFixed(2)}`);
      }
    }

    async function measure(
      server: Server,
      isOurs: boolean,
      append: (index: number) => Promise<unknown>,
      seconds: number,
    ) {
      const count = Number(values.subscribers);
      const intervalMs = 1000 / Number(values.rate);
      const sentAt: number[] = [];
      const samples: number[] = [];
      const bodies: string[] = [];
      let reference: Counter | undefined;
      const counters = await subscribeAll(
        server.url,
        count,
        isOurs ? { secret, scratchpadId: () => padId } : undefined,
        (counter, body) => {
          samples.push(performance.now() - sentAt[counter.messages]!);
          counter.messages += 1;
          if (body.includes('"errors"')) console.error(body.toString('utf8'));
          if (counter === reference) bodies.push(body.toString('utf8'));
        },
      );
      reference = counters[Math.floor(count / 2)];
      if (isOurs) await untilOpen(server, count);
      await sleep(1000);
      const cpuBefore = cpuSeconds(server.pid);
      const begin = performance.now();
      const appends: Promise<unknown>[] = [];
      for (let index = 0; index < seconds * Number(values.rate); index += 1) {
        const waitMs = begin + index * intervalMs - performance.now();
        if (waitMs > 0) await sleep(waitMs);
        sentAt.push(performance.now());
        appends.push(append(index));
      }
      await Promise.all(appends);
      // Looks without progress, not time: a machine that stands still is no loss.
      for (
        let looks = 0, before = -1;
        looks < 1000 && counters.some(({ messages }) => messages < sentAt.length);
        looks += 1
      ) {
        await sleep(20);
        if (samples.length !== before) looks = 0;
        before = samples.length;
      }
      const tookMs = performance.now() - begin;
      const cpu = cpuSeconds(server.pid) - cpuBefore;
      if (counters.some(({ messages }) => messages !== sentAt.length)) {
        const counts = new Map<number, number>();
        for (const { messages } of counters) counts.set(messages, (counts.get(messages) ?? 0) + 1);
        throw new Error(
          `${isOurs ? 'ours' : 'relay'}: ${JSON.stringify([...counts])} of ${sentAt.length}; closed ${counters.filter(({ socket }) => socket.destroyed || socket.readableEnded).length}; cpu ${cpuSeconds(server.pid) - cpuBefore}`,
        );
      }
      const order = bodies.map((body) => Number(/"content":"(\d+) /.exec(body)?.[1]));
      if (order.length !== sentAt.length || new Set(order).size !== order.length) throw new Error('bodies are wrong');
      for (const { socket } of counters) socket.destroy();
      await sleep(500);
      return {
        perCpuSecond: Math.round(samples.length / cpu),
        microsecondsEach: Number(((cpu / samples.length) * 1e6).toFixed(2)),
        cpuShare: Number((cpu / (tookMs / 1000)).toFixed(2)),
        p50: Number(quantile(samples, 0.5).toFixed(2)),
        p99: Number(quantile(samples, 0.99).toFixed(2)),
        bytes: bodies[0]!.length,
      };
    }

    async function untilOpen(server: Server, count: number): Promise<void> {
      for (;;) {
        const text = await (await fetch(`${server.url}/metrics`)).text();
        const open = Number(/^scratchpad_open_subscriptions\{transport="websocket"\} (\d+)/m.exec(text)?.[1]);
        if (open === count) return;
        await sleep(200);
      }
    }

    async function idle(): Promise<void> {
      const count = Number(values.subscribers) === 1000 ? 2000 : Number(values.subscribers);
      const heap = async (): Promise<{ heap: number; external: number }> => {
        const text = await (await fetch(`${ours.url}/metrics`)).text();
        const read = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1]);
        return { heap: read('nodejs_heap_size_used_bytes'), external: read('nodejs_external_memory_bytes') };
      };
      const pads: string[] = [];
      for (let index = 0; index < 20; index += 1) pads.push(await createPad());
      // A snapshot collects garbage first, so that what is counted is held.
      const settle = async (): Promise<void> => {
        await sleep(1000);
        if (!values.heap) return;
        mkdirSync(snapshotDirectory, { recursive: true });
        const known = readdirSync(snapshotDirectory).length;
        ours.child.kill('SIGUSR2');
        while (readdirSync(snapshotDirectory).length === known) await sleep(200);
        // Answered behind the snapshot; a connection that waited for longer than the server's limits is reset.
        await fetch(`${ours.url}/livez`).catch(() => undefined);
        await sleep(2000);
      };
      // A first generation of subscribers brings the process to its working size.
      for (let generation = 0; generation < (values.heap ? 1 : 2); generation += 1) {
        await settle();
        const before = { rss: rssBytes(ours.pid), ...(await heap()) };
        const counters = await subscribeAll(
          ours.url,
          count,
          { secret, scratchpadId: (index) => pads[index % pads.length]! },
          () => undefined,
        );
        await settle();
        const after = { rss: rssBytes(ours.pid), ...(await heap()) };
        const cpuBefore = cpuSeconds(ours.pid);
        await sleep(values.heap ? 100 : 24_000);
        const cpu = (cpuSeconds(ours.pid) - cpuBefore) / 24;
        const each = (key: 'rss' | 'heap' | 'external'): string =>
          ((after[key] - before[key]) / count / 1024).toFixed(1);
        console.log(
          `${count} idle: rss ${each('rss')} KB, heap ${each('heap')} KB, external ${each('external')} KB each; CPU ${(cpu * 100).toFixed(2)} %`,
        );
        for (const { socket } of counters) socket.destroy();
        await sleep(1000);
      }
    }

    async function delivery(): Promise<void> {
      const second = await start(['dist/main.js'], environment);
      running.push(second);
      const publisher = new Redis(redisServer.url);
      const rawSubscriber = spawn(
        process.execPath,
        [
          '-e',
          `
        const { Redis } = require('ioredis'); const s = new Redis(${JSON.stringify(redisServer.url)});
        s.subscribe('raw').then(() => console.log('ready'));
        s.on('message', (_c, m) => process.stdout.write(m + '\\n'));`,
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      );
      let onRaw: (text: string) => void = () => undefined;
      rawSubscriber.stdout.on('data', (chunk: Buffer) => onRaw(chunk.toString()));
      await new Promise<void>((resolve) => (onRaw = () => resolve()));
      let onEvent: () => void = () => undefined;
      await subscribeAll(second.url, 1, { secret, scratchpadId: () => padId }, () => onEvent());
      await sleep(1000);
      const rows = { ours: [] as number[], raw: [] as number[], answer: [] as number[] };
      for (let index = 0; index < 400; index += 1) {
        for (const name of ['raw', 'ours'] as const) {
          const begin = performance.now();
          const told = new Promise<void>((resolve) => {
            onRaw = () => resolve();
            onEvent = () => resolve();
          });
          const sent =
            name === 'raw'
              ? publisher.publish('raw', content(index))
              : post(ours.url, secret, appendDocument, { id: padId, content: content(index) });
          const answered = sent.then(() => performance.now() - begin);
          await told;
          if (index >= 50) rows[name].push(performance.now() - begin);
          const answerMs = await answered;
          if (name === 'ours' && index >= 50) rows.answer.push(answerMs);
          await sleep(15);
        }
      }
      for (const name of ['raw', 'ours', 'answer'] as const)
        console.log(
          `${name}: p50 ${quantile(rows[name], 0.5).toFixed(2)} ms, p99 ${quantile(rows[name], 0.99).toFixed(2)} ms`,
        );
      rawSubscriber.kill();
      await publisher.quit();
    }
  } catch (error) {
    console.error(error);
  } finally {
    for (const { child } of running) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await redisServer.stop();
    await postgres.close();
    process.exit();
  }
}

if (mode === 'relay') {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  const clients = new Set<WebSocket>();
  server.on('connection', (socket) => {
    clients.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => clients.delete(socket));
    socket.send('{"type":"ready"}');
  });
  const subscriber = new Redis(positionals[1]!);
  await subscriber.subscribe('relay');
  subscriber.on('message', (_channel, message) => {
    for (const socket of clients) socket.send(message);
  });
  const { port } = server.address() as { port: number };
  console.log(`"url":"http://127.0.0.1:${port}","msg":"listening"`);
} else {
  await main();
}
