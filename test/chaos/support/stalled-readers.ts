// Subscribers that read nothing while others write: each is ended with SUBSCRIBER_TOO_SLOW, and the server's memory stays flat.
import { request, type IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { appendEntry, createScratchpad } from '../../support/operations.js';
import { eventsDocument } from '../../support/subscriber.js';
import type { Arena } from './arena.js';
import { readFootprint } from './inspector.js';
import { markText } from './marked-text.js';
import type { Finding } from './open-and-drop.js';
import { settle } from './settle.js';

interface Reader {
  name: string;
  /** Reads everything that was kept for it, up to the end. */
  readAll(): Promise<string>;
  close(): void;
}

/** For reading everything that was kept, on whatever machine. */
const readLimitMs = 120_000;

/** A WebSocket that is paused as soon as it is subscribed. */
async function stallWebSocket(url: string, secret: string, scratchpadId: string): Promise<Reader> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  let text = '';
  let isOver = false;
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('open', () =>
      socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${secret}` } })),
    );
    socket.on('message', (data: Buffer) => {
      const message = data.toString();
      if (message.includes('connection_ack')) {
        const payload = { query: eventsDocument, variables: { id: scratchpadId, after: '' } };
        socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
      } else if (message.includes('"type":"next"')) {
        text += `${message}\n`;
        if (!socket.isPaused && text.length < message.length + 2) {
          socket.pause();
          resolve();
        }
      } else if (/"type":"(error|complete)"/.test(message)) {
        text += `${message}\n`;
        isOver = true;
      }
    });
    socket.once('close', () => (isOver = true));
  });
  return {
    name: 'WebSocket',
    async readAll() {
      socket.resume();
      await settle(() => isOver, { withinMs: readLimitMs, everyMs: 20 });
      return text;
    },
    close: () => socket.terminate(),
  };
}

/** An event stream of which only the beginning is read. */
async function stallEventStream(url: string, secret: string, scratchpadId: string): Promise<Reader> {
  const body = JSON.stringify({ query: eventsDocument, variables: { id: scratchpadId, after: '' } });
  const headers = {
    authorization: `Bearer ${secret}`,
    accept: 'text/event-stream',
    'content-type': 'application/json',
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(`${url}/graphql`, { method: 'POST', headers, agent: false }, resolve);
    sent.once('error', reject);
    sent.end(body);
  });
  response.pause();
  response.on('error', () => undefined);
  return {
    name: 'SSE',
    async readAll() {
      let text = '';
      const timer = setTimeout(() => response.destroy(), readLimitMs);
      try {
        for await (const chunk of response) text += String(chunk);
      } catch {
        // It was not ended in time: what it said until then tells.
      }
      clearTimeout(timer);
      return text;
    },
    close: () => void response.destroy(),
  };
}

const entryLength = 30_000;
/** More than what one connection and its subscriber may keep waiting together. */
const enoughBytes = 30 * 1024 * 1024;
const writers = 4;
const watchEveryMs = 2000;
const longestMs = 240_000;
/** Two transports, so much each: what one subscriber may keep waiting (8 MB), what its connection may (some MB), and then some. */
const memorySlackBytes = 120 * 1024 * 1024;

/** Writes for so long while nobody reads, and then reads. Needs servers with an inspector. */
export async function starveReaders(arena: Arena, { forMs }: { forMs: number }): Promise<Finding> {
  const tenant = await arena.createTenant('stalled');
  const scratchpadId = await createScratchpad(tenant.client);
  await appendEntry(tenant.client, scratchpadId, 'the first one');
  const server = arena.servers[0]!;
  const other = arena.clientOf(arena.servers.length - 1, tenant.secret);
  const readers = [
    await stallWebSocket(server.url, tenant.secret, scratchpadId),
    await stallEventStream(server.url, tenant.secret, scratchpadId),
  ];
  const before = await readFootprint(server);
  let highestHeap = 0;
  let highestResident = 0;
  const begin = Date.now();
  let written = 0;
  // A slow machine gets more time to write as much.
  const goesOn = (): boolean => {
    const tookMs = Date.now() - begin;
    return tookMs < forMs || (written * entryLength < enoughBytes && tookMs < longestMs);
  };
  const write = async (writer: number): Promise<void> => {
    for (let index = 0; goesOn(); index += 1) {
      await appendEntry(other, scratchpadId, markText(`${writer}-${index}`, entryLength));
      written += 1;
    }
  };
  const watch = async (): Promise<void> => {
    while (goesOn()) {
      const { heapBytes, residentBytes } = await readFootprint(server);
      highestHeap = Math.max(highestHeap, heapBytes);
      highestResident = Math.max(highestResident, residentBytes);
      await delay(watchEveryMs);
    }
  };
  await Promise.all([...Array.from({ length: writers }, (_, writer) => write(writer)), watch()]);

  const problems: string[] = [];
  for (const reader of readers) {
    const text = await reader.readAll();
    reader.close();
    if (!text.includes('SUBSCRIBER_TOO_SLOW')) {
      problems.push(`the stalled ${reader.name} was not ended: it ends with ${text.slice(-300)}`);
    } else if (!/"lastCursor":"[\w.-]+"/.test(text)) {
      problems.push(`the stalled ${reader.name} was ended without its last cursor`);
    }
  }
  const mb = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(0)} MB`;
  const figures =
    `${written} entries of ${entryLength} bytes written past two stalled readers (${mb(written * entryLength)} each); ` +
    `heap ${mb(before.heapBytes)}, at most ${mb(highestHeap)}; resident ${mb(before.residentBytes)}, at most ${mb(highestResident)}`;
  if (highestHeap > before.heapBytes + memorySlackBytes / 2) problems.push(`the heap grew: ${figures}`);
  if (highestResident > before.residentBytes + memorySlackBytes) problems.push(`memory grew: ${figures}`);
  return { problems, figures };
}
