// One execution for many subscribers: they are told, byte for byte, what an execution of their own would tell them.
import { get } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { ScratchpadService } from '../../../src/scratchpads/scratchpad-service.js';
import { appendEntry, createScratchpad, createToken, setContent } from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

type Changes = Awaited<ReturnType<ScratchpadService['subscribe']>>;
type Change = { operation: string; entry?: { content: string; createdAt: Date } };
type Take = (change: Change) => boolean;

/** What the executions have read of each change: as often as it was executed. */
let executions: Map<string, number>;
/** While true, subscriptions that open share nothing. */
let isolate = false;

/** The same changes at the same pace, each counted when it is executed; an entry "broken" has a date that is none. */
function watched(source: Changes, views: WeakMap<object, Change>): Changes {
  const viewOf = (change: Change): Change => {
    let view = views.get(change);
    if (!view) {
      const isBroken = change.entry?.content === 'broken';
      const { operation } = change;
      const copy = { ...change, ...(isBroken && { entry: { ...change.entry!, createdAt: new Date(NaN) } }) };
      view = Object.defineProperty(copy, 'operation', {
        enumerable: true,
        get() {
          const name = `${operation} ${change.entry?.content ?? ''}`;
          executions.set(name, (executions.get(name) ?? 0) + 1);
          return operation;
        },
      });
      views.set(change, view);
    }
    return view;
  };
  const shared = source as unknown as { divert?: (take: Take) => void };
  const isShared = !isolate;
  return {
    async next() {
      const step = await source.next();
      return step.done ? step : { done: false, value: viewOf(step.value as Change) };
    },
    return: () => source.return?.(),
    ...(isShared && shared.divert && { divert: (take: Take) => shared.divert?.((change) => take(viewOf(change))) }),
    [Symbol.asyncIterator]() {
      return this;
    },
  } as unknown as Changes;
}

let service: Service;
let alice: Tenant;
const open: { close(): void }[] = [];

beforeAll(async () => {
  const views = new WeakMap<object, Change>();
  service = await startService({
    overrideServices: (services) => ({
      ...services,
      scratchpads: {
        ...services.scratchpads,
        subscribe: async (...parameters) => watched(await services.scratchpads.subscribe(...parameters), views),
      },
    }),
  });
  alice = await service.createTenant('Alice');
});
beforeEach(() => {
  executions = new Map();
});
afterAll(async () => {
  for (const one of open) one.close();
  await service.close();
});

interface Listener {
  /** Messages as they came over the wire. */
  readonly messages: string[];
  received(count: number): Promise<string[]>;
  readonly socket?: WebSocket;
}

const until = async (isTrue: () => boolean, what: () => string): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error(`not within 20 s: ${what()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

const listenerOf = (messages: string[], socket?: WebSocket): Listener => ({
  messages,
  ...(socket && { socket }),
  async received(count) {
    await until(
      () => messages.length >= count,
      () => `${messages.length} of ${count}: ${messages.join('\n').slice(0, 500)}`,
    );
    return messages;
  },
});

interface Request {
  query: string;
  variables: Record<string, unknown>;
}

/** Subscribes over a raw WebSocket; resolves once the server listens on its behalf: EXECUTED is what a query after it says. */
async function overWebSocket(secret: string, payload: Request, id = '1'): Promise<Listener> {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  open.push({ close: () => socket.terminate() });
  const messages: string[] = [];
  let acknowledged = false;
  socket.on('message', (data: Buffer) => {
    const text = data.toString('utf8');
    if (text === '{"type":"connection_ack"}') acknowledged = true;
    else messages.push(text);
  });
  await new Promise((resolve) => socket.once('open', resolve));
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${secret}` } }));
  await until(
    () => acknowledged,
    () => 'acknowledged',
  );
  socket.send(JSON.stringify({ id, type: 'subscribe', payload }));
  return listenerOf(messages, socket);
}

async function overEventStream(secret: string, { query, variables }: Request): Promise<Listener> {
  const messages: string[] = [];
  const parameters = new URLSearchParams({ query, variables: JSON.stringify(variables) });
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${secret}` };
  await new Promise<void>((resolve, reject) => {
    const request = get(`${service.url}/graphql?${parameters.toString()}`, { headers }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8');
        const parts = text.split('\n\n');
        text = parts.pop() ?? '';
        messages.push(...parts.filter((part) => part !== ':'));
      });
      response.on('error', () => undefined);
      resolve();
    });
    request.on('error', reject);
    open.push({ close: () => request.destroy() });
  });
  return listenerOf(messages);
}

const transports = { WebSocket: overWebSocket, SSE: overEventStream };
type Transport = keyof typeof transports;

const fields =
  'cursor operation occurredAt expiresAt replayed entry { id content author createdAt } content { text version }';
const simple = `subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id) { ${fields} } }`;

/** Pads are read from the beginning, so that no listener can miss what comes before it listens. */
const documents: Record<string, { query: string; variables?: Record<string, unknown>; isOwn?: boolean }> = {
  'every field of an event': {
    query: `subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id, after: "") {
      __typename scratchpadId state activity tool runId originRunId assistantId ${fields} entry { runId } content { updatedAt } } }`,
  },
  aliases: {
    query: `subscription ($id: ID!) { told: scratchpadEvents(scratchpadId: $id, after: "") {
      what: operation it: entry { words: content again: content } } }`,
  },
  'fragments, also of the interface': {
    query: `subscription S($id: ID!) { scratchpadEvents(scratchpadId: $id, after: "") { ...Base ... on ScratchpadEvent { ...More } } }
      fragment Base on RunEvent { cursor occurredAt runId }
      fragment More on ScratchpadEvent { operation entry { ...Entry } }
      fragment Entry on ScratchpadEntry { __typename content }`,
  },
  'variables that include': {
    query: `subscription ($id: ID!, $with: Boolean!, $after: String) { scratchpadEvents(scratchpadId: $id, after: $after) {
      operation entry @include(if: $with) { content } content @skip(if: $with) { text } } }`,
    variables: { with: true, after: '' },
  },
  'variables that skip': {
    query: `subscription ($id: ID!, $with: Boolean!, $after: String) { scratchpadEvents(scratchpadId: $id, after: $after) {
      operation entry @include(if: $with) { content } content @skip(if: $with) { text } } }`,
    variables: { with: false, after: '' },
  },
  'variables with defaults': {
    query: `subscription ($id: ID!, $with: Boolean = false) { scratchpadEvents(scratchpadId: $id, after: "") {
      operation entry @include(if: $with) { content } } }`,
  },
  'one operation of several': {
    query: `subscription S($id: ID!) { scratchpadEvents(scratchpadId: $id, after: "") { operation content { text } } }`,
  },
  'the pad, which depends on who asks': {
    query: `subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id, after: "") {
      operation entry { content } scratchpad { id metaData thread { id } } } }`,
    isOwn: true,
  },
};

describe.each(Object.keys(transports) as Transport[])('over %s', (transport) => {
  const listen = async (secret: string, payload: Request, alone = false): Promise<Listener> => {
    isolate = alone;
    try {
      const listener = await transports[transport](secret, payload);
      // Its subscription is open once it is told of what there is already.
      await listener.received(1);
      return listener;
    } finally {
      isolate = false;
    }
  };

  it.each(Object.entries(documents))('tells the same with %s', async (_name, { query, variables = {}, isOwn }) => {
    const id = await createScratchpad(alice.client);
    const token = await createToken(alice.client, id);
    await appendEntry(alice.client, id, 'first');
    const payload = { query, variables: { ...variables, id } };
    const own = [await listen(alice.secret, payload, true), await listen(token.secret, payload, true)];
    const shared = [];
    for (const secret of [alice.secret, alice.secret, alice.secret, token.secret, token.secret]) {
      shared.push(await listen(secret, payload));
    }
    executions.clear();
    await appendEntry(alice.client, id, 'plain "quoted" \n ünïcode 😀 \u2028');
    await appendEntry(alice.client, id, 'x'.repeat(200));
    await setContent(alice.client, id, 'y'.repeat(20_000));
    await setContent(alice.client, id, 'z'.repeat(70_000));
    await appendEntry(alice.client, id, 'last');
    await alice.client.run(
      'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }',
      { id },
    );
    const told = 8; // with "first" and the completion
    const [ofOwner, ofAgent] = await Promise.all(own.map((one) => one.received(told)));
    expect(ofOwner).toHaveLength(told);
    for (const [index, one] of shared.entries()) {
      expect(await one.received(told)).toEqual(index < 3 ? ofOwner : ofAgent);
    }
    // Two listeners for themselves; and one execution each for the owner's others and for the agent's.
    expect(executions.get('APPEND last')).toBe(isOwn ? 7 : 4);
  });

  it('tells each subscriber of an error in a field with its own request id', async () => {
    const id = await createScratchpad(alice.client);
    await appendEntry(alice.client, id, 'first');
    const payload = { query: simple.replace('$id)', '$id, after: "")'), variables: { id } };
    const listeners = [await listen(alice.secret, payload, true), await listen(alice.secret, payload)];
    listeners.push(await listen(alice.secret, payload), await listen(alice.secret, payload));
    await appendEntry(alice.client, id, 'before');
    await appendEntry(alice.client, id, 'broken');
    await appendEntry(alice.client, id, 'after');
    const told = await Promise.all(listeners.map((one) => one.received(4)));
    const requestIds = told.map((messages) => /request id ([\w.-]+)/.exec(messages[2] ?? '')?.[1]);
    expect(new Set(requestIds).size).toBe(4);
    expect(requestIds).not.toContain(undefined);
    const anonymous = told.map((messages, index) => messages.map((one) => one.replaceAll(requestIds[index]!, 'ID')));
    for (const messages of anonymous) expect(messages).toEqual(anonymous[0]);
    expect(anonymous[0]?.[2]).toContain('"code":"INTERNAL"');
    expect(anonymous[0]?.[3]).toContain('"content":"after"');
  });

  it('shares between subscribers that resumed at different places', async () => {
    const id = await createScratchpad(alice.client);
    await appendEntry(alice.client, id, 'first');
    const query = `subscription ($id: ID!, $after: String) { scratchpadEvents(scratchpadId: $id, after: $after) { ${fields} } }`;
    const whole = await listen(alice.secret, { query, variables: { id, after: '' } });
    await appendEntry(alice.client, id, 'second');
    const cursor = /"cursor":"([^"]+)"/.exec((await whole.received(2))[0]!)?.[1];
    const resumed = await listen(alice.secret, { query, variables: { id, after: cursor } });
    executions.clear();
    await appendEntry(alice.client, id, 'third');
    await whole.received(3);
    await resumed.received(2);
    expect(resumed.messages[1]).toBe(whole.messages[2]);
    expect(executions.get('APPEND third')).toBe(1);
  });
});

it('gives each operation its own id, also where the ids need escaping', async () => {
  const id = await createScratchpad(alice.client);
  await appendEntry(alice.client, id, 'first');
  const payload = { query: simple.replace('$id)', '$id, after: "")'), variables: { id } };
  const ids = ['1', '"quoted"', 'ü 😀', '1'];
  const listeners = await Promise.all(ids.map((one) => overWebSocket(alice.secret, payload, one)));
  await Promise.all(listeners.map((one) => one.received(1)));
  await appendEntry(alice.client, id, 'second');
  const told = await Promise.all(listeners.map((one) => one.received(2)));
  expect(told.map((messages) => (JSON.parse(messages[1]!) as { id: string }).id)).toEqual(ids);
});

it('does not tell a completed operation anything more, and the others on its socket go on', async () => {
  const id = await createScratchpad(alice.client);
  await appendEntry(alice.client, id, 'first');
  const payload = { query: simple.replace('$id)', '$id, after: "")'), variables: { id } };
  const listener = await overWebSocket(alice.secret, payload, 'a');
  listener.socket?.send(JSON.stringify({ id: 'b', type: 'subscribe', payload }));
  await listener.received(2);
  listener.socket?.send(JSON.stringify({ id: 'a', type: 'complete' }));
  listener.socket?.send('{"type":"ping"}');
  await listener.received(3); // the pong: what came before it was read
  await appendEntry(alice.client, id, 'second');
  await listener.received(4);
  expect(listener.messages[2]).toContain('pong');
  expect(listener.messages.slice(3).map((one) => (JSON.parse(one) as { id: string }).id)).toEqual(['b']);
});

describe('a subscriber that does not read', () => {
  const entry = 'x'.repeat(60_000);
  const query = `subscription ($id: ID!, $after: String) { scratchpadEvents(scratchpadId: $id, after: $after) { cursor entry { content } } }`;
  const append = async (id: string, from: number, count: number): Promise<void> => {
    for (let index = from; index < from + count; index += 1) await appendEntry(alice.client, id, `${index} ${entry}`);
  };
  const numbersOf = (messages: string[]): number[] =>
    messages.flatMap((message) => {
      const number = /"content":"(\d+) /.exec(message)?.[1];
      return number === undefined ? [] : [Number(number)];
    });
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

  it('gets everything in its order once it reads, and holds nobody up', async () => {
    const id = await createScratchpad(alice.client);
    await append(id, 0, 1);
    const payload = { query, variables: { id, after: '' } };
    const [slow, quick] = [await overWebSocket(alice.secret, payload), await overWebSocket(alice.secret, payload)];
    await Promise.all([slow.received(1), quick.received(1)]);
    slow.socket?.pause();
    await append(id, 1, 200);
    await quick.received(201);
    slow.socket?.resume();
    await slow.received(201);
    expect(numbersOf(slow.messages)).toEqual(upTo(201));
    expect(numbersOf(quick.messages)).toEqual(upTo(201));
  });

  it('is ended as too slow over its bound, and resumes where it was', async () => {
    const id = await createScratchpad(alice.client);
    await append(id, 0, 1);
    const payload = { query, variables: { id, after: '' } };
    const slow = await overWebSocket(alice.secret, payload);
    await slow.received(1);
    slow.socket?.pause();
    await append(id, 1, 400);
    slow.socket?.resume();
    await until(
      () => slow.messages.some((one) => one.includes('SUBSCRIBER_TOO_SLOW')),
      () => `${slow.messages.length} messages`,
    );
    const seen = numbersOf(slow.messages);
    expect(seen).toEqual(upTo(seen.length));
    expect(seen.length).toBeLessThan(401);
    const lastCursor = /"lastCursor":"([^"]+)"/.exec(slow.messages.find((one) => one.includes('TOO_SLOW'))!)?.[1];
    const resumed = await overWebSocket(alice.secret, { query, variables: { id, after: lastCursor } });
    await resumed.received(401 - seen.length);
    expect([...seen, ...numbersOf(resumed.messages)]).toEqual(upTo(401));
  });
});
