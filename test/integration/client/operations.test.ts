// Every method of the client against the whole service, over real HTTP.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient, ScratchpadError, type Client } from '../../../src/client/index.js';
import { createToken } from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

let service: Service;
let alice: Tenant;
let client: Client;

const clientFor = (apiKey: string): Client => createClient({ url: service.url, apiKey });

beforeAll(async () => {
  service = await startService({ environment: { MAX_ENTRY_BYTES: '1000' } });
  alice = await service.createTenant('Alice');
  client = clientFor(alice.secret);
});
afterAll(() => service.close());

async function failure(call: Promise<unknown>): Promise<ScratchpadError> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ScratchpadError);
  return error as ScratchpadError;
}

const newPad = async () => client.scratchpads.create({ threadId: (await client.threads.create()).id });

describe('threads', () => {
  it('are created, retrieved, updated, listed and deleted', async () => {
    const created = await client.threads.create({ metaData: { topic: ['a', 1, null] } });
    expect(created).toEqual({
      id: expect.stringMatching(/^thread_/),
      ownerId: alice.userId,
      metaData: { topic: ['a', 1, null] },
      createdAt: expect.stringMatching(/^20.*Z$/),
    });
    expect(await client.threads.retrieve(created.id)).toEqual(created);
    const updated = await client.threads.update(created.id, { metaData: { done: true } });
    expect(updated).toEqual({ ...created, metaData: { done: true } });
    const second = await client.threads.create();
    expect(second.metaData).toEqual({});
    const page = await client.threads.list({ first: 1 });
    expect(page).toMatchObject({ items: [updated], totalCount: 2, hasNextPage: true, hasPreviousPage: false });
    const next = await client.threads.list({ after: page.endCursor });
    expect(next).toMatchObject({ items: [second], hasNextPage: false });
    await client.threads.delete(created.id);
    expect(await failure(client.threads.retrieve(created.id))).toMatchObject({ code: 'NOT_FOUND' });
    expect(await failure(client.threads.delete(created.id))).toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('scratchpads', () => {
  it('are created, retrieved by both ids, updated, listed and deleted', async () => {
    const thread = await client.threads.create();
    expect(await failure(client.scratchpads.retrieveByThread(thread.id))).toMatchObject({ code: 'NOT_FOUND' });
    const created = await client.scratchpads.create({ threadId: thread.id, metaData: { a: 1 } });
    expect(created).toMatchObject({ threadId: thread.id, ownerId: alice.userId, metaData: { a: 1 } });
    expect(created.id).toMatch(/^sp_/);
    expect(await client.scratchpads.retrieve(created.id)).toEqual(created);
    expect(await client.scratchpads.retrieveByThread(thread.id)).toEqual(created);
    const updated = await client.scratchpads.update(created.id, { metaData: { b: 2 } });
    expect(updated.metaData).toEqual({ b: 2 });
    expect((await client.scratchpads.list()).items).toContainEqual(updated);
    expect(await failure(client.scratchpads.create({ threadId: thread.id }))).toMatchObject({ code: 'CONFLICT' });
    await client.scratchpads.delete(created.id);
    expect(await failure(client.scratchpads.retrieve(created.id))).toMatchObject({ code: 'NOT_FOUND' });
    expect((await client.threads.retrieve(thread.id)).id).toBe(thread.id);
  });

  it('hold a content that is set, compared, read and cleared', async () => {
    const { id } = await newPad();
    expect(await client.scratchpads.getContent(id)).toEqual({ text: '', version: '0', updatedAt: null });
    const first = await client.scratchpads.setContent(id, { text: 'Plan 👩‍👩‍👧 "a"\n' });
    expect(first.text).toBe('Plan 👩‍👩‍👧 "a"\n');
    expect(await client.scratchpads.getContent(id)).toEqual(first);
    const second = await client.scratchpads.setContent(id, { text: 'B', expectedVersion: first.version });
    const refused = await failure(client.scratchpads.setContent(id, { text: 'C', expectedVersion: first.version }));
    expect(refused).toMatchObject({ code: 'CONFLICT', currentVersion: second.version });
    expect(await client.scratchpads.getContent(id)).toEqual(second);
    await client.scratchpads.clearContent(id);
    expect((await client.scratchpads.getContent(id)).text).toBe('');
  });

  it('hold a ledger that is appended to, paged through and cleared', async () => {
    const { id } = await newPad();
    const entries = [];
    for (const content of ['1', '2', '3']) entries.push(await client.scratchpads.appendEntry(id, { content }));
    expect(entries[0]).toMatchObject({ content: '1', author: null, runId: null });
    const page = await client.scratchpads.listEntries(id, { first: 2 });
    expect(page).toMatchObject({ items: entries.slice(0, 2), totalCount: 3, hasNextPage: true });
    expect((await client.scratchpads.listEntries(id, { after: page.endCursor })).items).toEqual([entries[2]]);
    expect((await client.scratchpads.listEntries(id, { last: 1 })).items).toEqual([entries[2]]);
    await client.scratchpads.clearEntries(id);
    expect(await client.scratchpads.listEntries(id)).toMatchObject({ items: [], totalCount: 0 });
  });

  it('take the same append with the same key once, and tell all of their state at one moment', async () => {
    const { id } = await newPad();
    const input = { content: 'Once', idempotencyKey: 'job-7' };
    const entry = await client.scratchpads.appendEntry(id, input);
    expect(await client.scratchpads.appendEntry(id, input)).toEqual(entry);
    const content = await client.scratchpads.setContent(id, { text: 'Body' });
    const state = await client.scratchpads.getState(id);
    expect(state).toMatchObject({ content, entryCount: 1, formattedView: expect.stringContaining('Once') });
    const events = client.scratchpads.events(id, { after: state.eventCursor });
    await client.scratchpads.clear(id);
    expect((await events.next()).value).toMatchObject({ operation: 'CLEAR', entry: null, content: null });
    await events.return(undefined);
    expect(await client.scratchpads.getState(id)).toMatchObject({ entryCount: 0, expiresAt: null });
  });
});

describe('an error', () => {
  it('says what is wrong with an input', async () => {
    const { id } = await newPad();
    const blank = await failure(client.scratchpads.appendEntry(id, { content: ' ' }));
    expect(blank).toMatchObject({ name: 'ScratchpadError', code: 'BAD_USER_INPUT', status: 200 });
    expect(blank.issues).toEqual([{ path: ['content'], message: 'must not be blank' }]);
    expect(blank.requestId).toMatch(/\S{8,}/);
    const large = await failure(client.scratchpads.appendEntry(id, { content: 'x'.repeat(1001) }));
    expect(large).toMatchObject({ code: 'LIMIT_EXCEEDED', issues: [] });
    const cursor = await failure(client.scratchpads.listEntries(id, { after: 'nonsense' }));
    expect(cursor.code).toBe('BAD_USER_INPUT');
    const circular: Record<string, never> = {};
    Object.assign(circular, { circular });
    expect(await failure(client.threads.create({ metaData: circular }))).toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  it('says who may not come in, and tells nothing of what is somebody else’s', async () => {
    const { id } = await newPad();
    expect(await failure(clientFor('no-such-key').threads.create())).toMatchObject({
      code: 'UNAUTHENTICATED',
      status: 401,
    });
    const mallory = clientFor((await service.createTenant('Mallory')).secret);
    const calls = [
      mallory.scratchpads.retrieve(id),
      mallory.scratchpads.getContent(id),
      mallory.scratchpads.listEntries(id),
      mallory.scratchpads.appendEntry(id, { content: 'x' }),
      mallory.scratchpads.setContent(id, { text: 'x' }),
      mallory.scratchpads.delete(id),
      mallory.scratchpads.events(id).next(),
      mallory.scratchpads.events(id, { after: '' }).next(),
      mallory.scratchpads.entries(id).next(),
    ];
    const codes = (await Promise.all(calls.map(failure))).map(({ code }) => code);
    expect(codes).toEqual(calls.map(() => 'NOT_FOUND'));
  });

  it('is thrown for an aborted call, with the reason', async () => {
    const reason = new Error('enough');
    const error = await failure(client.threads.list({ signal: AbortSignal.abort(reason) }));
    expect(error).toMatchObject({ code: 'ABORTED', cause: reason });
  });

  it('ends an iteration whose beginning can not be mended', async () => {
    const { id } = await newPad();
    expect(await failure(client.scratchpads.events(id, { after: 'nonsense' }).next())).toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(await failure(clientFor('no-such-key').scratchpads.events(id).next())).toMatchObject({
      code: 'UNAUTHENTICATED',
    });
  });
});

describe('an agent token', () => {
  it('is a key to one scratchpad, and what its role forbids is FORBIDDEN', async () => {
    const pad = await newPad();
    const agent = clientFor((await createToken(alice.client, pad.id, 'WORKER', { name: 'Worker A' })).secret);
    expect(await agent.scratchpads.retrieve(pad.id)).toEqual({ ...pad, ownerId: null, threadId: null });
    const entry = await agent.scratchpads.appendEntry(pad.id, { content: 'Found' });
    expect(entry.author).toBe('Worker A');
    for await (const followed of agent.scratchpads.entries(pad.id)) {
      expect(followed).toEqual({ ...entry, cursor: expect.any(String) });
      break;
    }
    expect(await failure(agent.scratchpads.setContent(pad.id, { text: 'x' }))).toMatchObject({ code: 'FORBIDDEN' });
    expect(await failure(agent.scratchpads.delete(pad.id))).toMatchObject({ code: 'FORBIDDEN' });
    expect(await agent.threads.list()).toMatchObject({ items: [], totalCount: 0 });
    expect((await agent.scratchpads.list()).items.map(({ id }) => id)).toEqual([pad.id]);
  });
});

describe('research', () => {
  it('is UNAVAILABLE without a model, and unknown runs are NOT_FOUND', async () => {
    expect(await failure(client.research.start({ question: 'Which?' }))).toMatchObject({ code: 'UNAVAILABLE' });
    expect(await failure(client.research.retrieve('run_0'))).toMatchObject({ code: 'NOT_FOUND' });
    expect(await failure(client.research.cancel('run_0'))).toMatchObject({ code: 'NOT_FOUND' });
    expect(await failure(client.research.events('run_0').next())).toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('anything else of the schema', () => {
  it('is asked for with a document', async () => {
    const document = 'query ($id: ID!) { thread(id: $id) { messages { totalCount } } }';
    const { id } = await client.threads.create();
    expect(await client.request(document, { id })).toEqual({ thread: { messages: { totalCount: 0 } } });
  });
});
