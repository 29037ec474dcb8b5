// The working state over REST: conditional and idempotent writes, the ledger in pages, clears, and the tool routes.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readState } from '../../support/operations.js';
import { createRestClient, newPad, newThread, nextOf, type RestClient } from '../../support/rest-client.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

interface Content {
  scratchpad_id: string;
  content: string;
  updated_at: string | null;
}
interface Entries {
  object: string;
  data: { scratchpad_id: string; content: string; created_at: string }[];
}

let service: Service;
let alice: Tenant;
let rest: RestClient;

beforeAll(async () => {
  service = await startService({ environment: { MAX_BODY_BYTES: '30000000', MAX_ENTRY_BYTES: '1000000' } });
  alice = await service.createTenant('Alice');
  rest = createRestClient(service.url, alice.secret);
});
afterAll(() => service.close());

const put = (padId: string, content: string, ifMatch?: string) =>
  rest.send<Content & { code?: string; current_version?: string }>('PUT', `/v1/scratchpads/${padId}/content`, {
    body: { content },
    headers: ifMatch === undefined ? {} : { 'if-match': ifMatch },
  });
const get = (padId: string) => rest.send<Content>('GET', `/v1/scratchpads/${padId}/content`);
const post = (padId: string, content: string, key?: string) =>
  rest.send<Entries['data'][0] & { code?: string }>('POST', `/v1/scratchpads/${padId}/entries`, {
    body: { content },
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });
const ledger = async (padId: string): Promise<string[]> =>
  (await rest.take<Entries>('GET', `/v1/scratchpads/${padId}/entries`)).data.map(({ content }) => content);

describe('content', () => {
  it('is empty at first, is replaced, and is the same over GraphQL', async () => {
    const padId = await newPad(rest);
    const empty = await get(padId);
    expect(empty.body).toEqual({ scratchpad_id: padId, content: '', updated_at: null });
    expect(empty.headers.get('etag')).toBe('"0"');
    const written = await put(padId, 'A plan: ∆ 🜂 [] / "x"');
    expect([written.status, written.body.content]).toEqual([200, 'A plan: ∆ 🜂 [] / "x"']);
    const read = await get(padId);
    expect(read.body).toEqual(written.body);
    expect(read.headers.get('etag')).toBe(written.headers.get('etag'));
    const { content } = await readState(alice.client, padId);
    expect(content).toEqual({
      text: written.body.content,
      version: written.headers.get('etag')?.replaceAll('"', ''),
      updatedAt: written.body.updated_at,
    });
    expect((await put(padId, '')).body.content).toBe('');
    const head = await rest.send('HEAD', `/v1/scratchpads/${padId}/content`);
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers.get('etag')).toBe((await get(padId)).headers.get('etag'));
  });

  it('is written only onto the version that If-Match names', async () => {
    const padId = await newPad(rest);
    const first = (await put(padId, 'one', '"0"')).headers.get('etag') ?? '';
    const lost = await put(padId, 'lost', '"0"');
    expect([lost.status, lost.body.code]).toEqual([412, 'CONFLICT']);
    expect(lost.headers.get('etag')).toBe(first);
    expect(`"${lost.body.current_version}"`).toBe(first);
    expect((await get(padId)).body.content).toBe('one');
    const second = await put(padId, 'two', first);
    expect(second.status).toBe(200);
    expect((await put(padId, 'any', '*')).status).toBe(200);
    const third = (await get(padId)).headers.get('etag');
    expect((await put(padId, 'three', `"7", W/"8" ,${third}`)).status).toBe(200);
    // A weak tag matches nothing, and neither does an empty list of strong ones.
    const current = (await get(padId)).headers.get('etag');
    expect((await put(padId, 'lost', `W/${current}`)).status).toBe(412);
    for (const malformed of ['7', '"', '"a" b', ',', 'W/', '"a""b"', '*, "0"', 'w/"0"', "'0'"]) {
      expect((await put(padId, 'lost', malformed)).status, malformed).toBe(422);
    }
    expect((await get(padId)).body.content).toBe('three');
  });

  it('is not sent again to who has it', async () => {
    const padId = await newPad(rest);
    const etag = (await put(padId, 'one')).headers.get('etag') ?? '';
    const ask = (ifNoneMatch: string, method = 'GET') =>
      rest.send(method, `/v1/scratchpads/${padId}/content`, { headers: { 'if-none-match': ifNoneMatch } });
    for (const known of [etag, `W/${etag}`, `"0", ${etag}`, '*']) {
      const { status, text, headers } = await ask(known);
      expect([status, text, headers.get('etag')], known).toEqual([304, '', etag]);
      expect((await ask(known, 'HEAD')).status).toBe(304);
    }
    expect((await ask('nonsense')).status).toBe(422);
    await put(padId, 'two');
    expect([(await ask(etag)).status, (await ask(etag)).body.content]).toEqual([200, 'two']);
  });

  it('loses no update of writers who all use If-Match', async () => {
    const padId = await newPad(rest);
    const addOne = async (): Promise<void> => {
      for (;;) {
        const { body, headers } = await get(padId);
        const written = await put(padId, String(Number(body.content) + 1), headers.get('etag') ?? '');
        if (written.status === 200) return;
        expect(written.status).toBe(412);
      }
    };
    await Promise.all(Array.from({ length: 8 }, addOne));
    expect((await get(padId)).body.content).toBe('8');
  });
});

describe('entries', () => {
  it('keep their order, and every one of many that are appended at once', async () => {
    const padId = await newPad(rest);
    const first = await post(padId, 'found');
    expect(first.status).toBe(201);
    const created_at = expect.stringMatching(/Z$/) as string;
    expect(first.body).toEqual({ scratchpad_id: padId, content: 'found', created_at });
    const worker = async (name: string): Promise<void> => {
      for (let index = 0; index < 50; index += 1) await post(padId, `${name}${index}`);
    };
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map(worker));
    const whole = await rest.take<Entries>('GET', `/v1/scratchpads/${padId}/entries`);
    expect(whole.object).toBe('list');
    expect(whole.data[0]).toEqual(first.body);
    expect(whole.data).toHaveLength(251);
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const own = whole.data.map(({ content }) => content).filter((content) => content.startsWith(name));
      expect(own).toEqual(Array.from({ length: 50 }, (_, index) => `${name}${index}`));
    }

    const walked: Entries['data'] = [];
    for (let next: string | undefined = `/v1/scratchpads/${padId}/entries?limit=100`; next;) {
      const page = await rest.send<Entries>('GET', next);
      walked.push(...page.body.data);
      next = nextOf(page);
    }
    expect(walked).toEqual(whole.data);
    const { edges } = (await readState(alice.client, padId, { first: 1 })).entries;
    const rest1 = await rest.take<Entries>('GET', `/v1/scratchpads/${padId}/entries?after=${edges[0]?.cursor}`);
    expect(rest1.data).toEqual(whole.data.slice(1));
  });

  it('are written once however often a key is sent, and refused when it comes with another content', async () => {
    const padId = await newPad(rest);
    const [one, again] = [await post(padId, 'once', 'job-7'), await post(padId, 'once', 'job-7')];
    expect([again.status, again.body]).toEqual([201, one.body]);
    const other = await post(padId, 'twice', 'job-7');
    expect([other.status, other.body.code]).toEqual([409, 'CONFLICT']);
    expect(await ledger(padId)).toEqual(['once']);
    expect((await post(padId, 'x', '')).status).toBe(422);
    expect((await post(padId, 'x', 'k'.repeat(201))).status).toBe(422);
    await Promise.all(Array.from({ length: 10 }, () => post(padId, 'many', 'job-8')));
    expect(await ledger(padId)).toEqual(['once', 'many']);
  });

  it('of a page whose entry was cleared cannot be continued', async () => {
    const padId = await newPad(rest);
    for (const content of ['a', 'b', 'c']) await post(padId, content);
    const next = nextOf(await rest.send('GET', `/v1/scratchpads/${padId}/entries?limit=2`)) ?? '';
    await rest.take('DELETE', `/v1/scratchpads/${padId}/entries`);
    const gone = await rest.send('GET', next);
    expect([gone.status, gone.body.code]).toEqual([422, 'INVALID_INPUT']);
  });

  it('that are too many for one answer have to be read in pages', async () => {
    const padId = await newPad(rest);
    for (let index = 0; index < 18; index += 1) await post(padId, 'x'.repeat(1_000_000));
    const refused = await rest.send('GET', `/v1/scratchpads/${padId}/entries`);
    expect([refused.status, refused.body.code]).toEqual([413, 'LIMIT_EXCEEDED']);
    expect((await rest.take<Entries>('GET', `/v1/scratchpads/${padId}/entries?limit=2`)).data).toHaveLength(2);
  });
});

describe('clearing', () => {
  it('empties one plane or both, and the scratchpad stays', async () => {
    const padId = await newPad(rest);
    const fill = async (): Promise<void> => void (await Promise.all([put(padId, 'plan'), post(padId, 'found')]));
    const state = async () => [(await get(padId)).body.content, await ledger(padId)];
    const cleared = (scope: string) => ({ id: padId, object: 'scratchpad.state.cleared', scope, cleared: true });
    await fill();
    expect(await rest.take('DELETE', `/v1/scratchpads/${padId}/content`)).toEqual(cleared('content'));
    expect(await state()).toEqual(['', ['found']]);
    await put(padId, 'plan');
    expect(await rest.take('DELETE', `/v1/scratchpads/${padId}/entries`)).toEqual(cleared('entries'));
    expect(await state()).toEqual(['plan', []]);
    await fill();
    // Who asks for less than everything does not lose everything.
    const narrowed = await rest.send('POST', `/v1/scratchpads/${padId}/clear`, { body: { scope: 'content' } });
    expect(narrowed.status).toBe(422);
    expect(await state()).toEqual(['plan', ['found']]);
    expect(await rest.take('POST', `/v1/scratchpads/${padId}/clear`)).toEqual(cleared('all'));
    expect(await state()).toEqual(['', []]);
    expect((await rest.send('GET', `/v1/scratchpads/${padId}`)).status).toBe(200);
  });
});

describe('the tool routes', () => {
  const tool = (name: string, body: object) => rest.take('POST', `/v1/tools/scratchpad/${name}`, body);

  it('make the thread’s scratchpad if there is none, exactly one, and write into it', async () => {
    const threadId = await newThread(rest);
    const notes = Array.from({ length: 8 }, (_, index) => `note ${index}`);
    await Promise.all(notes.map((note) => tool('append', { thread_id: threadId, note })));
    expect(await tool('update', { thread_id: threadId, content: 'plan' })).toEqual({ message: expect.any(String) });
    const { id } = await rest.take<{ id: string }>('GET', `/v1/threads/${threadId}/scratchpad`);
    expect((await get(id)).body.content).toBe('plan');
    expect((await ledger(id)).sort()).toEqual(notes);
    const { content } = (await tool('read', { thread_id: threadId })) as { content: string };
    const { scratchpad } = await alice.client.run<{ scratchpad: { formattedView: string } }>(
      'query ($id: ID!) { scratchpad(id: $id) { formattedView } }',
      { id },
    );
    expect(content).toBe(scratchpad.formattedView);
    expect(content).toContain('note 7');
  });

  it('find what was kept for the thread before scratchpads had ids', async () => {
    const threadId = await newThread(rest);
    const notebook = JSON.stringify({ content: 'an old plan', last_updated: 1_700_000_000.5 });
    await service.redis.client().set(`scratchpad:${threadId}:notebook`, notebook);
    const { content } = (await tool('read', { thread_id: threadId })) as { content: string };
    expect(content).toContain('an old plan');
    expect(await service.redis.client().exists(`scratchpad:${threadId}:notebook`)).toBe(0);
  });

  it('refuse a blank note, and any other name for the pad than its thread', async () => {
    const threadId = await newThread(rest);
    for (const [name, body] of [
      ['append', { thread_id: threadId, note: ' \n' }],
      ['append', { thread_id: threadId, content: 'x' }],
      ['update', { thread_id: threadId, content: 'x', scratchpad_id: 'sp_x' }],
      ['read', {}],
    ] as const) {
      const answer = await rest.send('POST', `/v1/tools/scratchpad/${name}`, { body });
      expect(answer.status, JSON.stringify(body)).toBe(422);
    }
    expect((await rest.send('GET', `/v1/threads/${threadId}/scratchpad`)).status).toBe(404);
  });
});
