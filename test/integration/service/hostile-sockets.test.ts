// Hostile sockets against the real service: each is refused or closed, what else runs on it goes on, and everybody else is served.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { slownessBeside } from '../../support/bystander.js';
import { appendEntry, createScratchpad, setContent } from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';
import { subscribe } from '../../support/subscriber.js';
import { bearer } from '../../support/wire.js';

/** Tells also what came before it was open. */
const replayDocument = 'subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id, after: "") { operation } }';
const eventsDocument = 'subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id) { operation } }';

let service: Service;
let alice: Tenant;
let mallory: Tenant;
let padId: string;
let malloryPadId: string;

beforeAll(async () => {
  service = await startService({ environment: { INTROSPECTION: 'false' } });
  [alice, mallory] = [await service.createTenant('Alice'), await service.createTenant('Mallory')];
  [padId, malloryPadId] = [await createScratchpad(alice.client), await createScratchpad(mallory.client)];
  await setContent(alice.client, padId, 'plan');
});
afterAll(() => service.close());

const beside = (attack: () => Promise<unknown>): Promise<number> =>
  slownessBeside(attack, { client: alice.client, scratchpadId: padId, text: 'plan' });

interface Message {
  id?: string;
  type: string;
  payload?: unknown;
}

interface Attacker {
  socket: WebSocket;
  messages: Message[];
  closed: Promise<number>;
  send(this: void, message: unknown): void;
}

async function attacker({ init = true } = {}): Promise<Attacker> {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const messages: Message[] = [];
  socket.on('message', (data) => messages.push(JSON.parse((data as Buffer).toString('utf8')) as Message));
  socket.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  await once(socket, 'open');
  const send = (message: unknown): void => socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  if (init) {
    send({ type: 'connection_init', payload: bearer(mallory.secret) });
    while (messages.length === 0 && socket.readyState === WebSocket.OPEN) await delay(2);
  }
  return { socket, messages, closed, send };
}

const subscribeMessage = (id: string, query: string, variables?: object): object => ({
  id,
  type: 'subscribe',
  payload: { query, variables },
});

async function rawSocket(head: string): Promise<Socket> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(head);
  return socket;
}

const upgradeHead = (): string =>
  `GET /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString('base64')}\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n`;

describe('a socket', () => {
  it('with a thousand operations at once gets a hundred of them, and a refusal for each of the others', async () => {
    const { socket, messages, send } = await attacker();
    const attack = async (): Promise<void> => {
      for (let index = 0; index < 1000; index += 1) {
        send(subscribeMessage(String(index), replayDocument, { id: malloryPadId }));
      }
      await expect.poll(() => messages.filter(({ type }) => type === 'error').length, { timeout: 20_000 }).toBe(900);
      await appendEntry(mallory.client, malloryPadId, 'found');
      await expect.poll(() => messages.filter(({ type }) => type === 'next').length, { timeout: 20_000 }).toBe(100);
    };
    expect(await beside(attack)).toBeLessThan(1);
    expect(JSON.stringify(messages.find(({ type }) => type === 'error'))).toContain('LIMIT_EXCEEDED');
    socket.terminate();
  });

  it('whose operations are all refused keeps the one that runs', async () => {
    const { socket, messages, send } = await attacker();
    send(subscribeMessage('running', eventsDocument, { id: malloryPadId }));
    const channel = `events:${mallory.userId}:${malloryPadId}`;
    await expect.poll(async () => (await service.redis.client().pubsub('NUMSUB', channel))[1]).toBe(1);
    const hostile = [
      '{',
      '{ nothing }',
      `{ ${'a { '.repeat(500)}`,
      `{ ${Array.from({ length: 100 }, (_, index) => `a${index}: viewer { id }`).join(' ')} }`,
      `{ viewer { id ${'@skip(if: false) '.repeat(100)} } }`,
      '{ __schema { types { name } } }',
      `{ ${'viewer '.repeat(50_000)} }`,
      'subscription { scratchpadEvents(scratchpadId: "x") { cursor } }',
      'mutation ($m: JSONObject) { createThread(input: { metaData: $m }) { thread { id } } }',
    ];
    const attack = async (): Promise<void> => {
      for (const [index, query] of hostile.entries()) {
        send(subscribeMessage(`hostile ${index}`, query, { m: JSON.parse('{"__proto__":{}}') as object }));
      }
      send('{"id":"twice","type":"subscribe","payload":{"query":"{ viewer { id } }","variables":{"a":1,"a":2}}}');
      const ended = (): number => messages.filter(({ type }) => type === 'error' || type === 'complete').length;
      await expect.poll(ended, { timeout: 20_000 }).toBe(hostile.length + 1);
    };
    expect(await beside(attack)).toBeLessThan(1);
    expect(socket.readyState).toBe(WebSocket.OPEN);
    await appendEntry(mallory.client, malloryPadId, 'found');
    await expect.poll(() => messages.filter(({ id, type }) => id === 'running' && type === 'next').length).toBe(1);
    socket.terminate();
  });

  const attackWithFive = async (attack: (attacker: Attacker) => void, init: boolean): Promise<number[]> => {
    const attackers = await Promise.all(Array.from({ length: 5 }, () => attacker({ init })));
    const codes: number[] = [];
    const slowness = await beside(async () => {
      for (const one of attackers) attack(one);
      for (const one of attackers) codes.push(await one.closed);
    });
    expect(slowness).toBeLessThan(1);
    return codes;
  };
  const initMessage = (): object => ({ type: 'connection_init', payload: bearer(mallory.secret) });

  it.each<[string, number, (attacker: Attacker) => void]>([
    ['never sends connection_init', 4408, () => undefined],
    [
      'sends pings before it, and a megabyte of them',
      4408,
      ({ send }) => {
        for (let index = 0; index < 10; index += 1) send({ type: 'ping', payload: { text: 'x'.repeat(100_000) } });
      },
    ],
    ['sends operations before it', 4401, ({ send }) => send(subscribeMessage('1', '{ viewer { id } }'))],
  ])('that %s is closed with %i, and others are served', async (_what, code, attack) => {
    const codes = await attackWithFive(attack, false);
    // Where a message takes longer to arrive than connection_init may, it is that.
    expect(codes.filter((one) => one !== code && one !== 4408)).toEqual([]);
  });

  it.each<[string, number, (attacker: Attacker) => void]>([
    ['sends a second connection_init', 4429, ({ send }) => send(initMessage())],
    [
      'sends a thousand of them',
      4429,
      ({ send }) => {
        for (let index = 0; index < 1000; index += 1) send(initMessage());
      },
    ],
    ['sends a message of nine megabytes', 1009, ({ socket }) => socket.send('x'.repeat(9_000_000))],
    ['sends binary', 4400, ({ socket }) => socket.send(randomBytes(1000), { binary: true })],
    ['sends text that is no UTF-8', 1007, ({ socket }) => socket.send(Buffer.from([0xc3, 0x28]), { binary: false })],
    ['sends nested lists', 4400, ({ send }) => send('['.repeat(4_000_000))],
    ['sends nested objects', 4400, ({ send }) => send('{"type":'.repeat(500_000))],
  ])('that %s is closed with %i, and others are served', async (_what, code, attack) => {
    expect(new Set(await attackWithFive(attack, true))).toEqual(new Set([code]));
  });

  it('that uses one id twice is closed with 4409', async () => {
    const { send, closed } = await attacker();
    for (let index = 0; index < 2; index += 1) send(subscribeMessage('same', eventsDocument, { id: malloryPadId }));
    expect(await closed).toBe(4409);
  });

  it('that sends malformed frames is closed, and the subscription of another one goes on', async () => {
    const subscriber = await subscribe({
      transport: 'WebSocket',
      url: service.url,
      secret: alice.secret,
      scratchpadId: padId,
      after: '',
    });
    await subscriber.received(1);
    const attack = async (): Promise<void> => {
      const frames = [
        [0x81, 0x05, 1, 2, 3], // not masked
        [0xf1, 0x80, 0, 0, 0, 0], // reserved bits
        [0x83, 0x80, 0, 0, 0, 0], // an opcode that there is not
        [0x89, 0xff, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0], // a ping that is too long
        [0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], // 2^64 bytes announced
        [0x80, 0x80, 0, 0, 0, 0], // a continuation of nothing
      ];
      for (let round = 0; round < 5; round += 1) {
        for (const frame of [...frames.map((bytes) => Buffer.from(bytes)), randomBytes(200)]) {
          const socket = await rawSocket(upgradeHead());
          await once(socket, 'data');
          socket.write(frame);
          socket.resume();
          const isClosed = await Promise.race([once(socket, 'close').then(() => true), delay(7000, false)]);
          expect(isClosed).toBe(true);
        }
      }
    };
    expect(await beside(attack)).toBeLessThan(1);
    await appendEntry(alice.client, padId, 'found');
    await subscriber.received(2);
    subscriber.close();
  });
});

it('two hundred requests that never arrive in full keep nobody from being served', async () => {
  const head = `POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer ${mallory.secret}\r\ncontent-length: 1000000\r\n\r\n{"query":"`;
  const sockets = await Promise.all(Array.from({ length: 200 }, () => rawSocket(head)));
  const drip = async (): Promise<void> => {
    for (let round = 0; round < 20; round += 1) {
      for (const socket of sockets) socket.write('x');
      await delay(50);
    }
  };
  expect(await beside(drip)).toBeLessThan(1);
  for (const socket of sockets) socket.destroy();
});
