// Nobody reaches what another tenant owns: every REST operation is called with foreign, unknown and wrong ids in each place that takes one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createId, type IdKind } from '../../src/shared/ids.js';
import { createRestClient, newPad, newThread, type RestAnswer, type RestClient } from '../support/rest-client.js';
import { administratorSecret, startService, type Service, type Tenant } from '../support/service.js';

interface World extends Tenant {
  rest: RestClient;
  ids: Record<'user' | 'thread' | 'message' | 'scratchpad' | 'apiKey', string>;
}

/** The body of an operation, with the place for an id in its body if it has one. */
interface Recipe {
  kind: keyof World['ids'];
  body?: object;
  bodyId?: 'thread_id';
  headers?: Record<string, string>;
  /** A fresh thing of the caller's own, for operations that work once. */
  fresh?: (rest: RestClient) => Promise<string>;
}

const recipes: Record<string, Recipe> = {
  retrieveThread: { kind: 'thread' },
  updateThread: { kind: 'thread', body: { meta_data: { an: 'intrusion' } } },
  replaceThreadMetaData: { kind: 'thread', body: { an: 'intrusion' } },
  deleteThread: { kind: 'thread', fresh: newThread },
  listThreadIds: { kind: 'user' },
  listThreads: { kind: 'user' },
  createMessage: { kind: 'thread', body: { content: 'an intrusion' }, bodyId: 'thread_id' },
  listMessages: { kind: 'thread' },
  retrieveMessage: { kind: 'message' },
  deleteMessage: {
    kind: 'message',
    fresh: async (rest) =>
      (await rest.take<{ id: string }>('POST', '/v1/messages', { thread_id: await newThread(rest), content: 'x' })).id,
  },
  createScratchpad: { kind: 'thread', body: {}, bodyId: 'thread_id', fresh: newThread },
  retrieveScratchpad: { kind: 'scratchpad' },
  retrieveScratchpadByThread: { kind: 'thread' },
  updateScratchpad: { kind: 'scratchpad', body: { meta_data: { an: 'intrusion' } } },
  deleteScratchpad: { kind: 'scratchpad', fresh: (rest) => newPad(rest) },
  getContent: { kind: 'scratchpad' },
  setContent: { kind: 'scratchpad', body: { content: 'an intrusion' }, headers: { 'if-match': '*' } },
  clearContent: { kind: 'scratchpad' },
  appendEntry: {
    kind: 'scratchpad',
    body: { content: 'alice found' },
    headers: { 'idempotency-key': 'append' },
    fresh: (rest) => newPad(rest),
  },
  listEntries: { kind: 'scratchpad' },
  clearEntries: { kind: 'scratchpad' },
  clearScratchpad: { kind: 'scratchpad', body: {} },
  readScratchpadTool: { kind: 'thread', body: {}, bodyId: 'thread_id' },
  updateScratchpadTool: { kind: 'thread', body: { content: 'an intrusion' }, bodyId: 'thread_id' },
  appendScratchpadTool: { kind: 'thread', body: { note: 'an intrusion' }, bodyId: 'thread_id' },
};

/** They take no id at all. */
const takeNone = ['createThread', 'listScratchpads'];

interface Target {
  method: string;
  path: string;
}

let service: Service;
let alice: World;
let bob: World;
let targets: Map<string, Target>;
let aliceBefore: unknown;

async function createWorld(name: string): Promise<World> {
  const tenant = await service.createTenant(name);
  const rest = createRestClient(service.url, tenant.secret);
  const thread = (await rest.take<{ id: string }>('POST', '/v1/threads', { meta_data: { name: `${name} ` } })).id;
  const body = { thread_id: thread, content: `${name} said` };
  const message = (await rest.take<{ id: string }>('POST', '/v1/messages', body)).id;
  const scratchpad = await newPad(rest, thread);
  await rest.take('PUT', `/v1/scratchpads/${scratchpad}/content`, { content: `${name} planned` });
  await rest.send('POST', `/v1/scratchpads/${scratchpad}/entries`, {
    body: { content: `${name} found` },
    headers: { 'idempotency-key': 'append' },
  });
  return {
    ...tenant,
    rest,
    ids: { user: tenant.userId, thread, message, scratchpad, apiKey: createId('apiKey') },
  };
}

/** All that the stores hold of alice, but when her key was last used. */
async function storedState(): Promise<unknown> {
  const { ids, userId } = alice;
  const client = service.redis.client();
  const keys = (await client.keys('*')).filter((key) => Object.values(ids).some((id) => key.includes(id))).sort();
  return {
    threads: await service.psql('SELECT * FROM threads WHERE owner_id = $1', [userId]),
    pads: await service.psql('SELECT * FROM scratchpads WHERE owner_id = $1', [userId]),
    messages: await service.psql('SELECT * FROM messages WHERE thread_id = $1', [ids.thread]),
    values: await Promise.all(
      keys.map(async (key) => [key, await client.dumpBuffer(key), await client.pexpiretime(key)]),
    ),
  };
}

beforeAll(async () => {
  service = await startService();
  [alice, bob] = [await createWorld('alice'), await createWorld('bob')];
  const { paths } = await bob.rest.take<{ paths: Record<string, Record<string, { operationId: string }>> }>(
    'GET',
    '/v1/openapi.json',
  );
  targets = new Map(
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => [operationId, { method: method.toUpperCase(), path }]),
    ),
  );
  aliceBefore = await storedState();
});
afterAll(() => service.close());

const call = (rest: RestClient, name: string, { body, bodyId, headers }: Recipe, id: string): Promise<RestAnswer> => {
  const { method, path } = targets.get(name)!;
  const target = path.replaceAll(/\{\w+\}/g, encodeURIComponent(id));
  return rest.send(method, target, { body: bodyId === undefined ? body : { ...body, [bodyId]: id }, headers });
};

function strangeIds(kind: keyof World['ids'], own: World): Map<string, string> {
  const foreign = alice.ids[kind];
  const strange = new Map([
    ['foreign', foreign],
    ['unknown', createId(kind)],
    ['lower case', foreign.toLowerCase()],
    ['and a space', `${foreign} `],
    ['and NUL', `${foreign}\u0000`],
    ['nonsense', 'nonsense'],
    ['SQL', "' OR 1=1 --"],
    ['__proto__', '__proto__'],
    ['emoji', '💥'],
    ['long', 'x'.repeat(5000)],
    ['slash', `${foreign}/x`],
  ]);
  for (const other of ['user', 'apiKey', 'thread', 'message', 'scratchpad'] as const satisfies IdKind[]) {
    if (other === kind) continue;
    strange.set(`foreign ${other}`, alice.ids[other]);
    strange.set(`own ${other}`, own.ids[other]);
  }
  return strange;
}

it('knows every operation', () => {
  expect([...targets.keys()].sort()).toEqual([...Object.keys(recipes), ...takeNone].sort());
});

describe.each(Object.entries(recipes))('%s', (name, recipe) => {
  it('answers for one’s own id: what is asked below is a real question', async () => {
    const id = (await recipe.fresh?.(bob.rest)) ?? bob.ids[recipe.kind];
    const answer = await call(bob.rest, name, recipe, id);
    expect(answer.status, answer.text).toBeLessThan(300);
    for (const foreign of Object.values(alice.ids)) expect(answer.text).not.toContain(foreign);
  });

  it.each(['another tenant', 'the administrator'])(
    'answers %s the same to the byte for every other id',
    async (who) => {
      const secret = who === 'the administrator' ? administratorSecret : bob.secret;
      const caller = createRestClient(service.url, secret);
      const answers = new Map<string, string[]>();
      for (const [what, id] of strangeIds(recipe.kind, bob)) {
        const { status, headers, text } = await call(caller, name, recipe, id);
        const requestId = headers.get('x-request-id') ?? '';
        const shown = [...headers].filter(([header]) => !['date', 'x-request-id'].includes(header));
        const bytes = JSON.stringify([status, shown, text.replace(requestId, 'REQUEST')]);
        answers.set(bytes, [...(answers.get(bytes) ?? []), what]);
      }
      expect(Object.fromEntries(answers)).toEqual({
        [[...answers.keys()][0] ?? '']: [...strangeIds(recipe.kind, bob).keys()],
      });
      expect([...answers.keys()][0]).toMatch(who === 'the administrator' ? /^\[403,/ : /^\[404,/);
    },
  );
});

it('leaves everything of the other tenant as it was, and shows nothing of it in lists', async () => {
  expect(await storedState()).toEqual(aliceBefore);
  for (const path of ['/v1/scratchpads', `/v1/threads/user/${bob.userId}`, `/v1/threads/user/${bob.userId}/records`]) {
    const { text } = await bob.rest.send('GET', path);
    for (const id of Object.values(alice.ids)) expect(text).not.toContain(id);
  }
});
