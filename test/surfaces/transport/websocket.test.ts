// Subscriptions, queries and mutations over WebSockets, with honest clients and others.
import { createClient, type Client, type ClientOptions } from 'graphql-ws';
import { connect } from 'node:net';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket, type ClientOptions as SocketOptions } from 'ws';
import { aliceSecret, bobSecret, eventually, startToyService, type ToyBody, type ToyService } from './toy-service.js';

let service: ToyService;
let client: Client;
const connectionParams = { Authorization: `Bearer ${aliceSecret}` };

beforeEach(async () => {
  service = await startToyService({
    graphql: { webSocket: { initTimeoutMs: 300, maxOperations: 20, pingIntervalMs: 100 } },
  });
  client = openClient();
});
afterEach(async () => {
  await client.dispose();
  await service.close();
});

function openClient(options: Partial<ClientOptions> = {}): Client {
  return createClient({
    url: service.wsUrl,
    webSocketImpl: WebSocket,
    connectionParams,
    retryAttempts: 0,
    lazyCloseTimeout: 1000,
    ...options,
  });
}

interface Followed {
  results: ToyBody[];
  /** Resolves with "complete" or with what the operation ended with. */
  ended: Promise<unknown>;
  stop: () => void;
}

function follow(query: string, variables?: Record<string, unknown>, through: Client = client): Followed {
  const results: ToyBody[] = [];
  let stop: () => void = () => undefined;
  const ended = new Promise<unknown>((resolve) => {
    stop = through.subscribe(
      { query, variables },
      { next: (result) => results.push(result as ToyBody), error: resolve, complete: () => resolve('complete') },
    );
  });
  return { results, ended, stop };
}

const events = 'subscription { events { number } }';
const sources = (count: number) => eventually(() => service.sources.open.size === count, `${count} sources are open`);

interface Closed {
  code: number;
  reason: string;
}

/** A socket without a client on it: says exactly what a test lets it say. */
function openRaw(options: SocketOptions & { protocol?: string } = {}) {
  const { protocol = 'graphql-transport-ws', ...socketOptions } = options;
  const socket = new WebSocket(service.wsUrl, protocol === '' ? [] : [protocol], socketOptions);
  const messages: { type: string; id?: string; payload?: unknown }[] = [];
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString('utf8')) as { type: string }));
  socket.on('error', () => undefined);
  const opened = new Promise<void>((resolve) => socket.once('open', () => resolve()));
  const closed = new Promise<Closed>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString('utf8') })),
  );
  const send = (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  return {
    socket,
    messages,
    opened,
    closed,
    send,
    async init(payload: unknown = connectionParams) {
      await opened;
      send({ type: 'connection_init', payload });
      await eventually(() => messages.some(({ type }) => type === 'connection_ack'), 'acknowledged');
    },
    subscribe: (id: string, query: string) => send({ type: 'subscribe', id, payload: { query } }),
  };
}

describe('an operation on a socket', () => {
  test('is a query, a mutation or a subscription', async () => {
    const query = follow('query Q($n: String) { hello(name: $n) }', { n: 'Ada 😀' });
    expect([await query.ended, query.results]).toEqual(['complete', [{ data: { hello: 'Hello Ada 😀' } }]]);
    const mutation = follow('mutation { increment(by: 3) }');
    expect([await mutation.ended, mutation.results]).toEqual(['complete', [{ data: { increment: 3 } }]]);
    const subscription = follow('subscription { count(to: 3) }');
    expect(await subscription.ended).toBe('complete');
    expect(subscription.results).toEqual([{ data: { count: 1 } }, { data: { count: 2 } }, { data: { count: 3 } }]);
  });

  test('that does not parse or validate ends alone: another subscription on the socket goes on', async () => {
    const running = follow(events);
    await sources(1);
    const syntax = await follow('subscription { events { ').ended;
    expect(syntax).toMatchObject([{ extensions: { code: 'GRAPHQL_PARSE_FAILED' } }]);
    const invalid = await follow('subscription { nothing }').ended;
    expect(invalid).toMatchObject([{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }]);
    const failed = follow('{ bug }');
    expect(await failed.ended).toBe('complete');
    expect(JSON.stringify(failed.results)).toContain('"code":"INTERNAL"');
    const requestId = String(failed.results[0]?.errors?.[0]?.extensions?.requestId);
    expect(service.logLines.some((line) => line.includes(`"${requestId}"`) && line.includes('hunter2'))).toBe(true);
    expect(JSON.stringify(failed.results)).not.toContain('hunter2');
    const refused = follow('subscription { refused(code: "NOT_FOUND") }');
    expect(await refused.ended).toBe('complete');
    expect(refused.results).toMatchObject([{ errors: [{ extensions: { code: 'NOT_FOUND' } }] }]);
    service.sources.push({ event: { number: 9 } });
    await eventually(() => running.results.length === 1, 'the event arrives');
    expect(running.results).toEqual([{ data: { events: { number: 9 } } }]);
    running.stop();
    await sources(0);
    expect(service.sources.counts).toMatchObject({ opened: 1, returned: 1 });
  });

  test('whose source fails ends with one last result and complete, and the socket lives', async () => {
    const running = follow(events);
    await sources(1);
    service.sources.push({ error: new TypeError('password=hunter2') });
    expect(await running.ended).toBe('complete');
    expect(running.results).toMatchObject([{ errors: [{ extensions: { code: 'INTERNAL' } }] }]);
    expect(JSON.stringify(running.results)).not.toContain('hunter2');
    const next = follow('{ hello }');
    expect(await next.ended).toBe('complete');
  });

  test('ends with UNAUTHENTICATED and complete when its key is revoked, and no other begins', async () => {
    const other = openClient({ connectionParams: { 'X-API-Key': bobSecret } });
    const [first, second, bobs] = [follow(events), follow(events), follow(events, undefined, other)];
    await sources(3);
    service.revoke(aliceSecret);
    expect(await Promise.all([first.ended, second.ended])).toEqual(['complete', 'complete']);
    expect(first.results).toMatchObject([
      { errors: [{ message: 'The key was revoked.', extensions: { code: 'UNAUTHENTICATED' } }] },
    ]);
    await sources(1);
    expect(await follow('{ hello }').ended).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
    service.sources.push({ event: { number: 1 } });
    await eventually(() => bobs.results.length === 1, "another key's subscription goes on");
    await other.dispose();
  });

  test('is refused over the number that one socket may run, and the others go on', async () => {
    const running = Array.from({ length: 20 }, () => follow(events));
    await sources(20);
    const refused = await Promise.all(Array.from({ length: 1000 }, () => follow(events).ended));
    expect(refused.every((errors) => JSON.stringify(errors).includes('LIMIT_EXCEEDED'))).toBe(true);
    expect(service.sources.counts.opened).toBe(20);
    service.sources.push({ event: { number: 1 } });
    await eventually(() => running.every(({ results }) => results.length === 1), 'all twenty deliver');
    running[0]?.stop();
    await sources(19);
    const next = follow('{ hello }');
    expect(await next.ended).toBe('complete');
  });

  test('is counted and logged like a request', async () => {
    await follow('query Named { hello }').ended;
    await follow('subscription Counting { count(to: 3) }').ended;
    const { body } = await service.metrics.expose();
    expect(body).toContain('scratchpad_requests_total{surface="graphql-ws",outcome="OK"} 2');
    expect(body).toContain('scratchpad_delivered_events_total{transport="websocket"} 3');
    expect(body).toContain('scratchpad_open_subscriptions{transport="websocket"} 0');
    expect(service.logLines.some((line) => line.includes('"operationName":"Named"'))).toBe(true);
    expect(service.logLines.join('')).not.toMatch(/key_of_alice|hello/);
  });
});

describe('the beginning of a connection', () => {
  test.each([
    ['Authorization', { Authorization: `Bearer ${aliceSecret}` }],
    ['authorization in small letters', { authorization: `bearer ${aliceSecret}` }],
    ['X-API-Key', { 'X-API-Key': aliceSecret }],
    ['x-api-key in small letters', { 'x-api-key': aliceSecret }],
  ])('takes the key from %s', async (_name, params) => {
    const opened = openClient({ connectionParams: params });
    const { results, ended } = follow('{ me }', undefined, opened);
    expect([await ended, results]).toEqual(['complete', [{ data: { me: 'user_alice' } }]]);
    await opened.dispose();
  });

  test("takes the key from the upgrade's own headers as well", async () => {
    const raw = openRaw({ headers: { 'x-api-key': bobSecret } });
    await raw.init({});
    raw.subscribe('1', '{ me }');
    await eventually(() => raw.messages.some(({ type }) => type === 'complete'), 'answered');
    expect(raw.messages.find(({ type }) => type === 'next')?.payload).toEqual({ data: { me: 'user_bob' } });
    raw.socket.close();
  });

  test.each([
    ['no key', {}],
    ['an unknown key', { Authorization: 'Bearer key_of_nobody_0123456789abc' }],
    ['two different keys', { Authorization: `Bearer ${aliceSecret}`, 'X-API-Key': bobSecret }],
    ['a key that is no text', { Authorization: { toString: 'x' } }],
  ])('is closed with 4401 for %s, and what was sent with it is not executed', async (_name, payload) => {
    const raw = openRaw();
    await raw.opened;
    raw.send({ type: 'connection_init', payload });
    raw.subscribe('1', events);
    raw.subscribe('2', 'mutation { increment(by: 100) }');
    const { code, reason } = await raw.closed;
    expect(code).toBe(4401);
    expect(reason).not.toBe('');
    expect(raw.messages).toEqual([]);
    expect(service.sources.counts.opened).toBe(0);
    expect((await service.post('mutation { increment(by: 0) }')).body.data).toEqual({ increment: 0 });
  });

  test('is closed with 1013 when keys cannot be checked, so that clients come back', async () => {
    service.stores.authentication = false;
    const raw = openRaw();
    await raw.opened;
    raw.send({ type: 'connection_init', payload: connectionParams });
    const { code, reason } = await raw.closed;
    expect(code).toBe(1013);
    expect(reason).not.toContain('10.0.0.5');
  });

  test('is closed with 4408 without connection_init, 4429 with two, 4401 for an operation before', async () => {
    const silent = openRaw();
    expect((await silent.closed).code).toBe(4408);
    const twice = openRaw();
    await twice.init();
    twice.send({ type: 'connection_init', payload: connectionParams });
    expect((await twice.closed).code).toBe(4429);
    const early = openRaw();
    await early.opened;
    early.subscribe('1', '{ hello }');
    expect((await early.closed).code).toBe(4401);
  });

  test('is refused to pages of foreign origins at the upgrade, and open to the own and the configured', async () => {
    for (const origin of ['https://evil.example', 'null']) {
      const status = await new Promise((resolve) => {
        const socket = new WebSocket(service.wsUrl, 'graphql-transport-ws', { origin });
        socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
        socket.on('error', () => undefined);
        socket.on('open', () => resolve('open'));
      });
      expect({ origin, status }).toEqual({ origin, status: 403 });
    }
    for (const origin of ['https://app.example.com', service.url]) {
      const raw = openRaw({ origin });
      await raw.init();
      raw.socket.close();
    }
  });

  test('is closed with 4406 without our protocol', async () => {
    expect((await openRaw({ protocol: '' }).closed).code).toBe(4406);
    const refused = openRaw({ protocol: 'graphql-ws' });
    await refused.closed;
    expect(refused.messages).toEqual([]);
  });
});

describe('a peer that breaks the protocol', () => {
  test.each([
    ['text that is no JSON', 'secret-word{'],
    ['JSON that is no message', '[1,2]'],
    ['a message without a type', '{}'],
    ['an unknown type', '{"type":"start","id":"1"}'],
    ['a message that only servers send', '{"type":"next","id":"1","payload":{}}'],
    ['a query that is no text', '{"type":"subscribe","id":"1","payload":{"query":5}}'],
  ])('is closed with 4400 for %s', async (_name, text) => {
    const raw = openRaw();
    await raw.init();
    raw.send(text);
    const { code, reason } = await raw.closed;
    expect(code).toBe(4400);
    expect(reason).not.toContain('secret-word');
  });

  test('is closed for a message over the limit, for a binary one and for text that is no UTF-8', async () => {
    const [large, binary, broken] = [openRaw(), openRaw(), openRaw()];
    await Promise.all([large.init(), binary.init(), broken.init()]);
    large.send({ type: 'ping', payload: { text: 'x'.repeat(100_000) } });
    binary.socket.send(Buffer.from('{"type":"ping"}'), { binary: true });
    broken.socket.send(Buffer.from([0xff, 0xfe]), { binary: false });
    expect([(await large.closed).code, (await binary.closed).code, (await broken.closed).code]).toEqual([
      1009, 4400, 1007,
    ]);
  });

  test('is closed with 4409 for one id twice', async () => {
    const raw = openRaw();
    await raw.init();
    raw.subscribe('same', events);
    await sources(1);
    raw.subscribe('same', events);
    expect((await raw.closed).code).toBe(4409);
    await sources(0);
    expect(service.sources.counts).toMatchObject({ opened: 1, returned: 1 });
  });

  test('is refused an operation that could mean two things, and the others on its socket go on', async () => {
    const raw = openRaw();
    await raw.init();
    raw.subscribe('running', events);
    await sources(1);
    const ambiguous = [
      '{"id":"a","type":"subscribe","payload":{"query":"{ hello }","query":"mutation { increment(by: 100) }"}}',
      '{"id":"b","type":"subscribe","payload":{"query":"query ($n: String) { hello(name: $n) }","variables":{"n":"x","\\u006e":"y"}}}',
      '{"id":"c","type":"subscribe","payload":{"query":"{ hello }","variables":{"deep":[{"x":12345678901234567890}]}}}',
    ];
    for (const text of ambiguous) raw.send(text);
    await eventually(() => raw.messages.filter(({ type }) => type === 'error').length === 3, 'all three are refused');
    for (const { id, type, payload } of raw.messages.filter((message) => message.type !== 'connection_ack')) {
      expect([id, type, payload]).toMatchObject([
        expect.stringMatching(/^[abc]$/) as string,
        'error',
        [{ message: expect.stringMatching(/twice|rounded/) as string, extensions: { code: 'BAD_USER_INPUT' } }],
      ]);
    }
    service.sources.push({ event: { number: 1 } });
    await eventually(() => raw.messages.some(({ type }) => type === 'next'), 'the running one delivers');
    raw.subscribe('a', '{ hello }');
    await eventually(() => raw.messages.some(({ id, type }) => id === 'a' && type === 'next'), 'its id is free again');
    expect((await service.post('mutation { increment(by: 0) }')).body.data).toEqual({ increment: 0 });
    raw.socket.close();
  });

  test.each([
    ['an id', '{"id":"a","id":"b","type":"subscribe","payload":{"query":"{ hello }"}}'],
    ['a type', '{"id":"a","type":"ping","type":"subscribe","payload":{"query":"{ hello }"}}'],
    ['a payload', '{"id":"a","type":"subscribe","payload":{"query":"{ hello }"},"payload":{"query":"{ me }"}}'],
    ['a member of a ping', '{"type":"ping","payload":{"a":1,"a":2}}'],
  ])('is closed with 4400 for a message that has %s twice', async (_name, text) => {
    const raw = openRaw();
    await raw.init();
    raw.send(text);
    const { code, reason } = await raw.closed;
    expect([code, reason]).toEqual([4400, expect.stringContaining('twice')]);
  });

  test('is closed with 4400 for two keys under one name at the beginning', async () => {
    const raw = openRaw();
    await raw.opened;
    raw.send(
      `{"type":"connection_init","payload":{"authorization":"Bearer ${aliceSecret}","authorization":"Bearer ${bobSecret}"}}`,
    );
    const { code, reason } = await raw.closed;
    expect(code).toBe(4400);
    expect(reason).not.toContain(bobSecret);
    expect(raw.messages).toEqual([]);
  });

  test('that sends malformed frames is closed, frees its subscriptions and disturbs nobody', async () => {
    const neighbour = follow(events);
    await sources(1);
    for (const frame of [Buffer.from([0x81, 0x05, 1, 2, 3]), Buffer.from([0xf1, 0x80, 0, 0, 0, 0]), randomBytes(64)]) {
      const socket = connect(service.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(
        `GET /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString('base64')}\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n`,
      );
      await new Promise((resolve) => socket.once('data', resolve));
      socket.write(frame);
      await new Promise((resolve) => socket.resume().once('close', resolve));
    }
    service.sources.push({ event: { number: 1 } });
    await eventually(() => neighbour.results.length === 1, 'the neighbour is served');
    expect((await service.post('{ hello }')).status).toBe(200);
  });

  test('that asks for another path is refused', async () => {
    const status = await new Promise((resolve) => {
      const socket = new WebSocket(`${service.url.replace('http', 'ws')}/elsewhere`, 'graphql-transport-ws');
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
      socket.on('error', () => undefined);
    });
    expect(status).toBe(404);
  });
});

describe('sockets that come and go', () => {
  test('200 that are opened and dropped leave nothing behind', async () => {
    for (let round = 0; round < 20; round += 1) {
      const raws = Array.from({ length: 10 }, () => openRaw());
      await Promise.all(raws.map((raw) => raw.init()));
      for (const raw of raws) raw.subscribe('1', events);
      if (round % 2 === 0) await sources(10);
      for (const raw of raws) raw.socket.terminate();
      await Promise.all(raws.map((raw) => raw.closed));
    }
    await sources(0);
    await eventually(
      () => service.sources.counts.opened === service.sources.counts.returned,
      'every source is returned once',
    );
    expect((await service.metrics.expose()).body).toContain('scratchpad_open_subscriptions{transport="websocket"} 0');
    expect([...service.watchers.values()].every((set) => set.size === 0)).toBe(true);
  });

  test('one that closes before its source has opened does not leave it behind', async () => {
    const raw = openRaw();
    await raw.init();
    raw.subscribe('1', 'subscription { late(milliseconds: 200) }');
    await eventually(() => service.sources.counts.slow === 1, 'it is about to open');
    raw.socket.terminate();
    await eventually(() => service.sources.counts.opened === 1, 'the source opens late');
    await sources(0);
    expect(service.sources.counts.returned).toBe(1);
  });

  test('a silent one is pinged, and ended when nothing comes back', async () => {
    const impatient = await startToyService({ graphql: { webSocket: { pingIntervalMs: 50, silenceTimeoutMs: 300 } } });
    const open = (autoPong: boolean) => {
      const socket = new WebSocket(impatient.wsUrl, 'graphql-transport-ws', { autoPong });
      socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init', payload: connectionParams })));
      return socket;
    };
    const [alive, dead] = [open(true), open(false)];
    const code = await new Promise((resolve) => dead.once('close', resolve));
    expect(code).toBe(1006);
    expect(alive.readyState).toBe(WebSocket.OPEN);
    alive.terminate();
    await impatient.close();
  });

  test('one that does not read is not sent more than the buffers hold, and goes on when it reads again', async () => {
    const raw = openRaw();
    await raw.init();
    raw.socket.pause();
    raw.subscribe('1', 'subscription { large(bytes: 100000) }');
    await eventually(() => service.sources.counts.pulled > 5, 'it begins');
    let pulled = -1;
    await eventually(
      async () => {
        const before = service.sources.counts.pulled;
        await new Promise((resolve) => setTimeout(resolve, 300));
        pulled = service.sources.counts.pulled;
        return pulled === before;
      },
      'it stands still',
      10_000,
    );
    expect(pulled).toBeLessThan(300);
    raw.socket.resume();
    await eventually(() => service.sources.counts.pulled > pulled + 5, 'it goes on');
    raw.socket.terminate();
    await sources(0);
  });

  test('one that asks without reading is not listened to until it reads', async () => {
    const raw = openRaw();
    await raw.init();
    raw.socket.pause();
    const text = 'x'.repeat(90_000);
    for (let number = 0; number < 400; number += 1) raw.send({ type: 'ping', payload: { text } });
    // The answers to these 36 MB would have to wait in the server's memory; so the questions wait in the client's.
    await eventually(
      async () => {
        const before = raw.socket.bufferedAmount;
        await new Promise((resolve) => setTimeout(resolve, 500));
        return raw.socket.bufferedAmount === before;
      },
      'it stands still',
      15_000,
    );
    expect(raw.socket.bufferedAmount).toBeGreaterThan(5_000_000);
    raw.socket.resume();
    const pongs = () => raw.messages.filter(({ type }) => type === 'pong').length;
    await eventually(() => pongs() === 400, 'every ping is answered in the end', 15_000);
  });
});
