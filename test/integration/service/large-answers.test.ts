// Little that is asked may not become much that is answered: aliases, names and ids that come again and again are bounded before an answer is made.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { appendEntry, createScratchpad, setContent } from '../../support/operations.js';
import { until } from '../../support/raw-subscriber.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

const mib = 2 ** 20;
const aliases = Array.from({ length: 29 }, (_, index) => `a${index}: content { text }`).join(' ');
const amplified = `{ scratchpads(first: 5) { edges { node { ${aliases} } } } }`;

let service: Service;
let alice: Tenant;
let bob: Tenant;
let pad: string;

beforeAll(async () => {
  service = await startService({ environment: { INTROSPECTION: 'true' } });
  [alice, bob] = [await service.createTenant('Alice'), await service.createTenant('Bob')];
  for (let index = 0; index < 5; index += 1) {
    pad = await createScratchpad(alice.client);
    await setContent(alice.client, pad, 'x'.repeat(mib - 10));
  }
});
afterAll(() => service.close());

interface Answer {
  status: number;
  text: string;
}

async function post(query: string, variables?: object): Promise<Answer> {
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${alice.secret}` },
    body: JSON.stringify({ query, variables }),
  });
  return { status: response.status, text: await response.text() };
}

interface Socket {
  socket: WebSocket;
  messages: { id?: string; type: string; payload?: unknown }[];
  closed: number[];
  send: (message: object) => void;
}

async function connect(secret: string, headers: Record<string, string> = {}): Promise<Socket> {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', { headers });
  const connection: Socket = {
    socket,
    messages: [],
    closed: [],
    send: (message) => socket.send(JSON.stringify(message)),
  };
  socket.on('message', (data: Buffer) => connection.messages.push(JSON.parse(data.toString('utf8')) as never));
  socket.on('close', (code) => connection.closed.push(code));
  await new Promise((resolve) => socket.once('open', resolve));
  connection.send({ type: 'connection_init', payload: { authorization: `Bearer ${secret}` } });
  await until(
    () => connection.messages.length + connection.closed.length > 0,
    () => 'an answer to connection_init',
  );
  return connection;
}

describe('an answer that would be larger than may be', () => {
  it('is refused over HTTP, and half as much is not', async () => {
    const refused = await post(amplified);
    expect(refused.text.length).toBeLessThan(1000);
    expect(JSON.parse(refused.text)).toMatchObject({
      data: null,
      errors: [{ extensions: { code: 'LIMIT_EXCEEDED' } }],
    });
    const fits = await post(`{ scratchpads(first: 5) { edges { node { ${aliases.split(' a5')[0]} } } } }`);
    expect(fits.text.length).toBeGreaterThan(20 * mib);
    expect(fits.text).not.toContain('"errors"');
  });

  it('is refused for what its characters become in JSON', async () => {
    const id = await createScratchpad(alice.client);
    await setContent(alice.client, id, '\u0001'.repeat(mib - 10));
    const read = (count: number) => {
      const fields = Array.from({ length: count }, (_, index) => `a${index}: content { text }`).join(' ');
      return post(`query ($id: ID!) { scratchpad(id: $id) { ${fields} } }`, { id });
    };
    expect((await read(6)).text).toContain('"LIMIT_EXCEEDED"');
    const fits = await read(4);
    expect(fits.text.length).toBeGreaterThan(20 * mib);
    expect(fits.text).not.toContain('"errors"');
  });

  it('is refused on a WebSocket, whose other operations go on', async () => {
    const { socket, messages, closed, send } = await connect(alice.secret);
    const query = 'subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id) { operation } }';
    send({ id: 'live', type: 'subscribe', payload: { query, variables: { id: pad } } });
    send({ id: 'large', type: 'subscribe', payload: { query: amplified } });
    await until(
      () => messages.some(({ id, type }) => id === 'large' && type === 'complete'),
      () => JSON.stringify(messages).slice(0, 500),
    );
    expect(messages.find(({ id }) => id === 'large')).toMatchObject({
      type: 'next',
      payload: { data: null, errors: [{ extensions: { code: 'LIMIT_EXCEEDED' } }] },
    });
    await appendEntry(alice.client, pad, 'still told');
    await until(
      () => messages.some(({ id, type }) => id === 'live' && type === 'next'),
      () => JSON.stringify(messages).slice(-500),
    );
    expect(closed).toEqual([]);
    socket.terminate();
  });
});

describe('many large answers on one WebSocket', () => {
  const heldMib = (): number => {
    const { heapUsed, external } = process.memoryUsage();
    return (heapUsed + external) / mib;
  };
  /** The most that was held while `action` went on. */
  async function mostHeldDuring(action: () => Promise<unknown>): Promise<number> {
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, heldMib())), 20);
    await action();
    clearInterval(timer);
    return most;
  }
  const large = aliases.split(' a24')[0]!;
  const count = 30;

  it.each([
    ['queries', `{ scratchpads(first: 1) { edges { node { ${large} } } } }`],
    ['events', `subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id) { ${large} } }`],
  ])('are made one after the other, as the client takes them: %s', async (kind, query) => {
    const { socket, messages, send } = await connect(alice.secret);
    const ids = Array.from({ length: count }, (_, index) => `operation ${index}`);
    const sendAll = (): void => {
      for (const id of ids) send({ id, type: 'subscribe', payload: { query, variables: { id: pad } } });
    };
    const before = heldMib();
    const most = await mostHeldDuring(async () => {
      if (kind === 'events') {
        sendAll();
        await delay(500);
        socket.pause();
        await setContent(alice.client, pad, 'y'.repeat(mib - 10));
      } else {
        socket.pause();
        sendAll();
      }
      await delay(3000);
    });
    // One is made, and as much again may be on its way; all of them would be 700 MiB.
    expect(most - before).toBeLessThan(250);
    const answered = new Set<string>();
    socket.removeAllListeners('message');
    socket.on('message', (data: Buffer) => {
      const id = /"id":"(operation \d+)"/.exec(data.toString('latin1', 0, 100))?.[1];
      if (id !== undefined) answered.add(id);
    });
    socket.resume();
    await until(
      () => answered.size === count,
      () => `${answered.size} of ${count}; ${messages.length}`,
    );
    socket.terminate();
  });
});

describe('a name that would come again and again', () => {
  const long = 'n'.repeat(mib);
  it.each([
    ['an alias', `{ viewer { ${long}: id } }`, {}],
    ['an operation', `query ${long} ($one: Int, $two: Int) { viewer { id } }`, {}],
    ['a variable', `query ($${long}: [Int]) { viewer { id } }`, { [long]: Array.from({ length: 60 }, () => 'x') }],
    ['a fragment', `{ viewer { ...${long} } } fragment ${long} on User { id }`, {}],
    ['a field', `{ viewer { ${long} } }`, {}],
    ['a type', `{ viewer { ... on ${long} { id } } }`, {}],
  ])('is refused as %s, in few words and at once', async (_what, query, variables) => {
    const startedAt = performance.now();
    const { status, text } = await post(query, variables);
    expect(performance.now() - startedAt).toBeLessThan(2000);
    expect([200, 400]).toContain(status);
    expect(JSON.parse(text)).toMatchObject({ errors: [{ extensions: { code: 'GRAPHQL_PARSE_FAILED' } }] });
    expect(text.length).toBeLessThan(2000);
  });

  it('is refused as the id of an operation', async () => {
    const { socket, messages, send } = await connect(alice.secret);
    send({ id: 'i'.repeat(257), type: 'subscribe', payload: { query: '{ viewer { id } }' } });
    send({ id: 'j'.repeat(256), type: 'subscribe', payload: { query: '{ viewer { id } }' } });
    await until(
      () => messages.some(({ type }) => type === 'complete'),
      () => JSON.stringify(messages),
    );
    expect(messages.find(({ id }) => id?.startsWith('i'))).toMatchObject({
      type: 'error',
      payload: [{ extensions: { code: 'LIMIT_EXCEEDED' } }],
    });
    expect(messages.find(({ id }) => id?.startsWith('j'))).toMatchObject({ type: 'next' });
    socket.terminate();
  });

  it('is repeated by its beginning where it is a mistake in an input', async () => {
    const answer = await fetch(`${service.url}/v1/threads`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${alice.secret}` },
      body: JSON.stringify({ [long]: 1 }),
    });
    expect(answer.status).toBe(422);
    expect((await answer.text()).length).toBeLessThan(5000);
    const wrong = await post('query ($n: Int) { viewer { threads(first: $n) { totalCount } } }', { n: long });
    expect(wrong.text.length).toBeLessThan(5000);
  });
});

it('takes no two keys that differ, one in a header and one in connection_init', async () => {
  const { closed } = await connect(alice.secret, { authorization: `Bearer ${bob.secret}` });
  await until(
    () => closed.length > 0,
    () => 'closed',
  );
  expect(closed).toEqual([4401]);
  const { socket, messages } = await connect(alice.secret, { authorization: `Bearer ${alice.secret}` });
  expect(messages).toMatchObject([{ type: 'connection_ack' }]);
  socket.terminate();
});
