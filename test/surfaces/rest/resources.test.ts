// Threads, messages and scratchpads over REST: what each route answers, field by field.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createId } from '../../../src/shared/ids.js';
import { startResearch } from '../../support/operations.js';
import { createRestClient, newPad, newThread, nextOf, type RestClient } from '../../support/rest-client.js';
import { createRecordingRunRuntime } from '../../support/run-runtime.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

let service: Service;
let alice: Tenant;
let rest: RestClient;

beforeAll(async () => {
  service = await startService({
    runRuntime: createRecordingRunRuntime(),
    environment: { LLM_BASE_URL: 'http://127.0.0.1:9/v1', LLM_MODEL: 'house-model', MAX_CONTENT_BYTES: '1000' },
  });
  alice = await service.createTenant('Alice');
  rest = createRestClient(service.url, alice.secret);
});
afterAll(() => service.close());

async function newTenant(): Promise<Tenant & { rest: RestClient }> {
  const tenant = await service.createTenant('Somebody');
  return { ...tenant, rest: createRestClient(service.url, tenant.secret) };
}

const newMessage = async (threadId: string, content: string): Promise<string> =>
  (await rest.take<{ id: string }>('POST', '/v1/messages', { thread_id: threadId, content })).id;

const cancelRun = (runId: string): Promise<unknown> =>
  alice.client.run('mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { status } } }', { id: runId });

describe('threads', () => {
  it('are created with the caller as their owner, and found again', async () => {
    const created = await rest.send('POST', '/v1/threads', { body: { meta_data: { topic: 'solar' } } });
    expect(created.status).toBe(201);
    const { id } = created.body as { id: string };
    expect(created.headers.get('location')).toBe(`/v1/threads/${id}`);
    expect(created.body).toEqual({
      id: expect.stringMatching(/^thread_/),
      object: 'thread',
      created_at: expect.closeTo(Date.now() / 1000, -2),
      owner_id: alice.userId,
      meta_data: { topic: 'solar' },
      tool_resources: {},
    });
    const found = await rest.send('GET', `/v1/threads/${id}`);
    expect([found.status, found.body]).toEqual([200, created.body]);
    expect(found.headers.get('cache-control')).toBe('no-store');
    const bare = await rest.send('POST', '/v1/threads');
    expect([bare.status, bare.body.meta_data]).toEqual([201, {}]);
  });

  it('have their metadata replaced as a whole, or left as it is', async () => {
    const { id } = await rest.take<{ id: string }>('POST', '/v1/threads', { meta_data: { a: 1, b: 2 } });
    const changed = await rest.take('PUT', `/v1/threads/${id}`, {
      meta_data: { b: 3 },
      participant_ids: null,
      tool_resources: null,
    });
    expect(changed).toMatchObject({ meta_data: { b: 3 }, participants: [{ id: alice.userId }] });
    const same = await rest.take('PUT', `/v1/threads/${id}`, { meta_data: null });
    expect(same).toEqual(changed);
    expect(await rest.take('PUT', `/v1/threads/${id}/metadata`, { c: 4 })).toMatchObject({ meta_data: { c: 4 } });
    expect(await rest.take('PUT', `/v1/threads/${id}/metadata`, {})).toMatchObject({ meta_data: {} });
  });

  it('are listed in the order of their creation, whole or in pages, without those of delegated workers', async () => {
    const { userId, rest: own } = await newTenant();
    expect(await own.take('GET', `/v1/threads/user/${userId}`)).toEqual([]);
    const ids: string[] = [];
    for (let index = 0; index < 105; index += 1) ids.push(await newThread(own));
    await service.psql('INSERT INTO threads (id, owner_id, ephemeral) VALUES ($1, $2, true)', [
      createId('thread'),
      userId,
    ]);
    expect(await own.take('GET', `/v1/threads/user/${userId}`)).toEqual(ids);
    const records = await own.take<{ id: string; object: string }[]>('GET', `/v1/threads/user/${userId}/records`);
    expect(records.map(({ id }) => id)).toEqual(ids);
    expect(records[0]).toEqual(await own.take('GET', `/v1/threads/${ids[0]}`));

    const walked: string[] = [];
    for (let next: string | undefined = `/v1/threads/user/${userId}?limit=50`; next;) {
      const page = await own.send<string[]>('GET', next);
      walked.push(...page.body);
      next = nextOf(page);
      // A row that goes meanwhile shifts nothing.
      if (walked.length === 50) await own.take('DELETE', `/v1/threads/${walked[49]}`);
    }
    expect(walked).toEqual(ids);
  });

  it('go with their messages and their scratchpad, at once', async () => {
    const threadId = await newThread(rest);
    const [messageId, padId] = [await newMessage(threadId, 'x'), await newPad(rest, threadId)];
    await rest.take('PUT', `/v1/scratchpads/${padId}/content`, { content: 'x' });
    expect(await rest.take('DELETE', `/v1/threads/${threadId}`)).toEqual({
      id: threadId,
      object: 'thread.deleted',
      deleted: true,
    });
    for (const path of [`threads/${threadId}`, `messages/${messageId}`, `scratchpads/${padId}`]) {
      expect((await rest.send('GET', `/v1/${path}`)).status, path).toBe(404);
    }
    for (const path of ['content', 'entries']) {
      expect((await rest.send('GET', `/v1/scratchpads/${padId}/${path}`)).status, path).toBe(404);
    }
    expect((await rest.send('DELETE', `/v1/threads/${threadId}`)).status).toBe(404);
  });
});

describe('messages', () => {
  it('are created with everything that the SDK sends, and found again', async () => {
    const threadId = await newThread(rest);
    const created = await rest.send('POST', '/v1/messages', {
      body: {
        thread_id: threadId,
        content: 'How far is the Moon?',
        role: 'User',
        assistant_id: 'asst_of_somebody',
        meta_data: { lang: 'en' },
        attachments: [],
        is_last_chunk: false,
        sender_id: null,
        tool_id: null,
        tool_call_id: null,
      },
    });
    expect(created.status).toBe(201);
    const { id } = created.body as { id: string };
    expect(created.headers.get('location')).toBe(`/v1/messages/${id}`);
    expect(created.body).toEqual({
      id: expect.stringMatching(/^msg_/),
      object: 'thread.message',
      thread_id: threadId,
      role: 'user',
      content: 'How far is the Moon?',
      created_at: expect.closeTo(Date.now() / 1000, -2),
      completed_at: (created.body as { created_at: number }).created_at,
      status: 'completed',
      meta_data: { lang: 'en' },
      assistant_id: 'asst_of_somebody',
      tool_call_id: null,
      attachments: [],
      incomplete_at: null,
      incomplete_details: null,
      run_id: null,
      tool_id: null,
      sender_id: null,
    });
    expect(await rest.take('GET', `/v1/messages/${id}`)).toEqual(created.body);
    const short = await rest.take('POST', '/v1/messages', { thread_id: threadId, content: 'x' });
    expect(short).toMatchObject({ role: 'user', assistant_id: null, meta_data: {} });
  });

  it.each([
    ['a blank content', { content: ' ' }, 422],
    ['a role that runs write', { role: 'tool' }, 422],
    ['an attachment', { attachments: [{ type: 'image', file_id: 'file_1' }] }, 422],
    ['a label that is too long', { assistant_id: 'x'.repeat(201) }, 422],
    ['a content over the limit', { content: 'x'.repeat(1001) }, 413],
  ])('are refused with %s', async (_what, fields, status) => {
    const body = { thread_id: await newThread(rest), content: 'x', ...fields };
    expect((await rest.send('POST', '/v1/messages', { body })).status).toBe(status);
  });

  it('are listed in persistence order from either end, in pages', async () => {
    const threadId = await newThread(rest);
    const ids: string[] = [];
    for (let index = 0; index < 25; index += 1) ids.push(await newMessage(threadId, `m${index}`));
    const path = `/v1/threads/${threadId}/messages`;
    const first = await rest.take<{ data: { id: string }[] }>('GET', path);
    expect(first).toMatchObject({ object: 'list', first_id: ids[0], last_id: ids[19], has_more: true });
    expect(first.data.map(({ id }) => id)).toEqual(ids.slice(0, 20));
    for (const order of ['asc', 'desc']) {
      const walked: string[] = [];
      for (let next: string | undefined = `${path}?order=${order}&limit=10`; next;) {
        const page = await rest.send<{ data: { id: string }[]; has_more: boolean }>('GET', next);
        walked.push(...page.body.data.map(({ id }) => id));
        next = nextOf(page);
        expect(page.body.has_more).toBe(next !== undefined);
      }
      expect(walked).toEqual(order === 'asc' ? ids : ids.toReversed());
    }
    const forward = nextOf(await rest.send('GET', `${path}?limit=10`)) ?? '';
    expect((await rest.send('GET', forward.replace('?', '?order=desc&'))).status).toBe(422);
    expect(await rest.take('GET', `/v1/threads/${await newThread(rest)}/messages`)).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    });
  });

  it('are deleted one by one, and are neither written nor deleted while a run is active on the thread', async () => {
    const threadId = await newThread(rest);
    const [kept, deleted] = [await newMessage(threadId, 'kept'), await newMessage(threadId, 'deleted')];
    expect(await rest.take('DELETE', `/v1/messages/${deleted}`)).toEqual({
      id: deleted,
      object: 'thread.message.deleted',
      deleted: true,
    });
    expect((await rest.send('DELETE', `/v1/messages/${deleted}`)).status).toBe(404);

    const runId = await startResearch(alice.client, threadId);
    const refused = await rest.send('DELETE', `/v1/messages/${kept}`);
    expect([refused.status, refused.body.code]).toEqual([409, 'CONFLICT']);
    const body = { thread_id: threadId, content: 'x' };
    expect((await rest.send('POST', '/v1/messages', { body })).status).toBe(409);
    expect((await rest.send('GET', `/v1/messages/${kept}`)).status).toBe(200);
    await cancelRun(runId);
    expect((await rest.send('DELETE', `/v1/messages/${kept}`)).status).toBe(200);
  });

  it('of a delegated worker’s private thread are not there, and neither is the thread', async () => {
    const [threadId, messageId] = [createId('thread'), createId('message')];
    await service.psql('INSERT INTO threads (id, owner_id, ephemeral) VALUES ($1, $2, true)', [threadId, alice.userId]);
    await service.psql(`INSERT INTO messages (id, thread_id, role, content) VALUES ($1, $2, 'USER', 'private')`, [
      messageId,
      threadId,
    ]);
    const attempts: [string, string, object?][] = [
      ['GET', `/v1/threads/${threadId}`],
      ['PUT', `/v1/threads/${threadId}`, { meta_data: { a: 1 } }],
      ['PUT', `/v1/threads/${threadId}/metadata`, { a: 1 }],
      ['DELETE', `/v1/threads/${threadId}`],
      ['GET', `/v1/threads/${threadId}/messages`],
      ['GET', `/v1/threads/${threadId}/scratchpad`],
      ['POST', '/v1/messages', { thread_id: threadId, content: 'x' }],
      ['POST', '/v1/scratchpads', { thread_id: threadId }],
      ['POST', '/v1/tools/scratchpad/read', { thread_id: threadId }],
      ['GET', `/v1/messages/${messageId}`],
      ['DELETE', `/v1/messages/${messageId}`],
    ];
    for (const [method, path, body] of attempts) {
      expect((await rest.send(method, path, { body })).status, `${method} ${path}`).toBe(404);
    }
    expect(await service.psql('SELECT meta_data FROM threads WHERE id = $1', [threadId])).toEqual([{ meta_data: {} }]);
    expect(await service.psql('SELECT content FROM messages WHERE id = $1', [messageId])).toHaveLength(1);
  });
});

describe('scratchpads', () => {
  it('are created once for each thread, and found by id and by thread', async () => {
    const threadId = await newThread(rest);
    expect((await rest.send('GET', `/v1/threads/${threadId}/scratchpad`)).status).toBe(404);
    const created = await rest.send('POST', '/v1/scratchpads', { body: { thread_id: threadId } });
    expect(created.status).toBe(201);
    const { id } = created.body as { id: string };
    expect(created.headers.get('location')).toBe(`/v1/scratchpads/${id}`);
    const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;
    expect(created.body).toEqual({
      id: expect.stringMatching(/^sp_/),
      owner_id: alice.userId,
      thread_id: threadId,
      created_at: instant,
      updated_at: instant,
      meta_data: {},
    });
    expect(await rest.take('GET', `/v1/scratchpads/${id}`)).toEqual(created.body);
    expect(await rest.take('GET', `/v1/threads/${threadId}/scratchpad`)).toEqual(created.body);
    const second = await rest.send('POST', '/v1/scratchpads', { body: { thread_id: threadId } });
    expect([second.status, second.body.code]).toEqual([409, 'CONFLICT']);
    const labelled = { thread_id: await newThread(rest), meta_data: { team: 'north' } };
    expect(await rest.take('POST', '/v1/scratchpads', labelled)).toMatchObject(labelled);
  });

  it('are listed, changed and deleted', async () => {
    const { rest: own } = await newTenant();
    expect(await own.take('GET', '/v1/scratchpads')).toEqual({ object: 'list', data: [] });
    const ids = [await newPad(own), await newPad(own), await newPad(own)];
    const listed = await own.take<{ data: { id: string }[] }>('GET', '/v1/scratchpads');
    expect(listed.data.map(({ id }) => id)).toEqual(ids);
    const page = await own.send<{ data: { id: string }[] }>('GET', '/v1/scratchpads?limit=2');
    expect(page.body.data.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    const last = await own.send<{ data: { id: string }[] }>('GET', nextOf(page) ?? '');
    expect([last.body.data.map(({ id }) => id), nextOf(last)]).toEqual([ids.slice(2), undefined]);

    const path = `/v1/scratchpads/${ids[0]}`;
    const changed = await own.take('PATCH', path, { meta_data: { team: 'north' } });
    expect(changed).toEqual({ ...listed.data[0], meta_data: { team: 'north' }, updated_at: changed.updated_at });
    expect(await own.take('PATCH', path, {})).toEqual(changed);
    expect(await own.take('DELETE', path)).toEqual({ id: ids[0], object: 'scratchpad.deleted', deleted: true });
    expect((await own.send('GET', path)).status).toBe(404);
  });
});
