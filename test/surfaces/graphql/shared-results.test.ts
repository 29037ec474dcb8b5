// One execution for many subscribers: they are told, byte for byte, what an execution of their own would tell them.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ScratchpadService } from '../../../src/scratchpads/scratchpad-service.js';
import { appendEntry, createScratchpad, createToken, setContent } from '../../support/operations.js';
import {
  overWebSocket,
  transports,
  type Listener,
  type Request,
  type Transport,
} from '../../support/raw-subscriber.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

type Changes = Awaited<ReturnType<ScratchpadService['subscribe']>>;
type Change = { operation: string; entry?: { content: string; createdAt: Date | string } };
type Prepare = (change: Change) => object | undefined;

/** What the executions have read of each change: as often as it was executed. */
let executions: Map<string, number>;
/** What is done with each change for those who share: one function for all who are told the same. */
let preparations: Set<Prepare>;
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
  const shared = source as unknown as { divert?: (prepare: Prepare, seat: object) => void };
  const isShared = !isolate;
  return {
    async next() {
      const step = await source.next();
      return step.done ? step : { done: false, value: viewOf(step.value) };
    },
    return: () => source.return?.(),
    ...(isShared &&
      shared.divert && {
        divert(prepare: Prepare, seat: object) {
          preparations.add(prepare);
          shared.divert?.((change) => prepare(viewOf(change)), seat);
        },
      }),
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
  preparations = new Set();
});
afterAll(async () => {
  for (const one of open) one.close();
  await service.close();
});

const listening = (transport: Transport, secret: string, request: Request): Promise<Listener> =>
  transports[transport](service.url, secret, request);

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
      const listener = await listening(transport, secret, payload);
      open.push(listener);
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
    expect(preparations.size).toBe(isOwn ? 0 : 1);
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
    const requestIds = told.map((messages) => /"requestId":"([^"]+)"/.exec(messages[2] ?? '')?.[1]);
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
  const listeners = await Promise.all(ids.map((one) => overWebSocket(service.url, alice.secret, payload, one)));
  open.push(...listeners);
  await Promise.all(listeners.map((one) => one.received(1)));
  await appendEntry(alice.client, id, 'second');
  const told = await Promise.all(listeners.map((one) => one.received(2)));
  expect(told.map((messages) => (JSON.parse(messages[1]!) as { id: string }).id)).toEqual(ids);
});

it('does not tell a completed operation anything more, and the others on its socket go on', async () => {
  const id = await createScratchpad(alice.client);
  await appendEntry(alice.client, id, 'first');
  const payload = { query: simple.replace('$id)', '$id, after: "")'), variables: { id } };
  const listener = await overWebSocket(service.url, alice.secret, payload, 'a');
  open.push(listener);
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
