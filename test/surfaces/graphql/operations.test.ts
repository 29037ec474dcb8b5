// Every operation of the contract, as a user calls it over HTTP.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  appendEntry,
  createScratchpad,
  createThread,
  readLedger,
  readState,
  setContent,
  setContentDocument,
} from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

let service: Service;
let alice: Tenant;

beforeAll(async () => {
  service = await startService();
  alice = await service.createTenant('Alice');
});
afterAll(() => service.close());

describe('threads and messages', () => {
  it('keeps a thread with its metadata exactly', async () => {
    const metaData = { topic: 'solar 🌞', nested: { list: [1, 2.5, null, true], empty: [], none: {} }, مرحبا: 'é' };
    const { createThread: created } = await alice.client.run<{
      createThread: { thread: { id: string; metaData: object } };
    }>(
      'mutation ($m: JSONObject) { createThread(input: { metaData: $m }) { thread { id metaData owner { id name } } } }',
      { m: metaData },
    );
    expect(created.thread).toMatchObject({ metaData, owner: { id: alice.userId, name: 'Alice' } });
    const { thread } = await alice.client.run<{ thread: object }>(
      'query ($id: ID!) { thread(id: $id) { metaData scratchpad { id } } }',
      { id: created.thread.id },
    );
    expect(thread).toEqual({ metaData, scratchpad: null });
  });

  it('reads messages in the order of their sequence numbers, whatever the clock says', async () => {
    const threadId = await createThread(alice.client);
    for (const [content, role] of [
      ['one', 'USER'],
      ['two', 'ASSISTANT'],
      ['three', undefined],
    ]) {
      await alice.client.run(
        'mutation ($input: CreateMessageInput!) { createMessage(input: $input) { message { id } } }',
        { input: { threadId, content, role } },
      );
    }
    const { thread } = await alice.client.run<{
      thread: {
        messages: { totalCount: number; edges: { node: { sequenceNo: string; content: string; role: string } }[] };
      };
    }>(
      'query ($id: ID!) { thread(id: $id) { messages { totalCount edges { node { sequenceNo content role createdAt } } } } }',
      { id: threadId },
    );
    const nodes = thread.messages.edges.map((edge) => edge.node);
    expect(nodes.map((node) => [node.content, node.role])).toEqual([
      ['one', 'USER'],
      ['two', 'ASSISTANT'],
      ['three', 'USER'],
    ]);
    const numbers = nodes.map((node) => BigInt(node.sequenceNo));
    expect(numbers.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(numbers);
    expect(thread.messages.totalCount).toBe(3);
  });

  it('refuses messages in roles that only runs may write, blank ones and those on nobody’s thread', async () => {
    const threadId = await createThread(alice.client);
    const document = 'mutation ($input: CreateMessageInput!) { createMessage(input: $input) { message { id } } }';
    for (const input of [
      { threadId, content: 'x', role: 'SYSTEM' },
      { threadId, content: 'x', role: 'TOOL' },
      { threadId, content: ' \n' },
    ]) {
      expect((await alice.client.fail(document, { input })).extensions.code).toBe('BAD_USER_INPUT');
    }
    expect((await alice.client.fail(document, { input: { threadId: 'thread_0', content: 'x' } })).extensions.code).toBe(
      'NOT_FOUND',
    );
  });

  it('replaces the metadata of a thread as a whole', async () => {
    const { id, metaData } = (
      await alice.client.run<{ createThread: { thread: { id: string; metaData: object } } }>(
        'mutation { createThread(input: { metaData: { a: 1, b: 2 } }) { thread { id metaData } } }',
      )
    ).createThread.thread;
    expect(metaData).toEqual({ a: 1, b: 2 });
    const document =
      'mutation ($input: UpdateThreadInput!) { updateThread(input: $input) { thread { id metaData owner { id } } } }';
    expect(await alice.client.run(document, { input: { threadId: id, metaData: { c: 3 } } })).toEqual({
      updateThread: { thread: { id, metaData: { c: 3 }, owner: { id: alice.userId } } },
    });
    const error = await alice.client.fail(document, { input: { threadId: 'thread_0', metaData: {} } });
    expect(error.extensions.code).toBe('NOT_FOUND');
  });

  it('deletes a thread with its scratchpad', async () => {
    const threadId = await createThread(alice.client);
    const scratchpadId = await createScratchpad(alice.client, threadId);
    const { deleteThread } = await alice.client.run<{ deleteThread: object }>(
      'mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedThreadId } }',
      { id: threadId },
    );
    expect(deleteThread).toEqual({ deletedThreadId: threadId });
    expect(
      await alice.client.run(
        'query ($t: ID!, $s: ID!) { thread(id: $t) { id } scratchpad(id: $s) { id } scratchpadByThread(threadId: $t) { id } }',
        { t: threadId, s: scratchpadId },
      ),
    ).toEqual({ thread: null, scratchpad: null, scratchpadByThread: null });
  });
});

describe('the scratchpad', () => {
  it('hangs on its thread and belongs to the user that authentication names', async () => {
    const threadId = await createThread(alice.client);
    const id = await createScratchpad(alice.client, threadId);
    const answer = await alice.client.run(
      `query ($id: ID!, $t: ID!) {
        scratchpad(id: $id) { id owner { id } thread { id scratchpad { id } } metaData content { text version updatedAt } entries { edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } entryCount expiresAt }
        scratchpadByThread(threadId: $t) { id }
        node(id: $id) { __typename id ... on Scratchpad { entryCount } }
      }`,
      { id, t: threadId },
    );
    expect(answer).toEqual({
      scratchpad: {
        id,
        owner: { id: alice.userId },
        thread: { id: threadId, scratchpad: { id } },
        metaData: {},
        content: { text: '', version: '0', updatedAt: null },
        entries: {
          edges: [],
          pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null },
        },
        entryCount: 0,
        expiresAt: null,
      },
      scratchpadByThread: { id },
      node: { __typename: 'Scratchpad', id, entryCount: 0 },
    });
  });

  it('is one for each thread: a second one is a conflict', async () => {
    const threadId = await createThread(alice.client);
    await createScratchpad(alice.client, threadId);
    const error = await alice.client.fail(
      'mutation ($t: ID!) { createScratchpad(input: { threadId: $t }) { scratchpad { id } } }',
      { t: threadId },
    );
    expect(error.extensions.code).toBe('CONFLICT');
  });

  it('replaces metadata as a whole and moves updatedAt', async () => {
    const id = await createScratchpad(alice.client);
    const document =
      'mutation ($input: UpdateScratchpadInput!) { updateScratchpad(input: $input) { scratchpad { metaData createdAt updatedAt } } }';
    await alice.client.run(document, { input: { scratchpadId: id, metaData: { a: 1, b: 2 } } });
    const { updateScratchpad } = await alice.client.run<{
      updateScratchpad: { scratchpad: { metaData: object; createdAt: string; updatedAt: string } };
    }>(document, { input: { scratchpadId: id, metaData: { c: 3 } } });
    expect(updateScratchpad.scratchpad.metaData).toEqual({ c: 3 });
    expect(updateScratchpad.scratchpad.updatedAt > updateScratchpad.scratchpad.createdAt).toBe(true);
  });

  it('keeps text exactly: emoji, right-to-left, combining characters, a mebibyte, nothing at all', async () => {
    const id = await createScratchpad(alice.client);
    for (const text of [
      '👩‍👩‍👧‍👦 🏳️‍🌈',
      'שלום مرحبا \u202eabc',
      'e\u0301 ≠ é',
      ' \t leading and trailing \n ',
      '"quotes" \\ / </script> \u2028',
      '0',
      'x'.repeat(1_048_576),
      '',
    ]) {
      const written = await setContent(alice.client, id, text);
      expect(written.text === text).toBe(true);
      expect((await readState(alice.client, id)).content).toEqual(written);
    }
    const { entry } = await appendEntry(alice.client, id, ' 👩‍👩‍👧‍👦 \u202eabc e\u0301\n');
    expect(entry).toMatchObject({ content: ' 👩‍👩‍👧‍👦 \u202eabc e\u0301\n', author: null, runId: null });
    expect(await readLedger(alice.client, id)).toEqual([entry]);
  });

  it('refuses NUL and lone surrogates everywhere, blank entries, and what is too large', async () => {
    const id = await createScratchpad(alice.client);
    const append =
      'mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { id } } }';
    for (const bad of ['a\u0000b', 'a\ud800b', '\udc00']) {
      for (const [document, input] of [
        [append, { scratchpadId: id, content: bad }],
        [append, { scratchpadId: id, content: 'fine', idempotencyKey: bad }],
        [setContentDocument, { scratchpadId: id, text: bad }],
        [
          'mutation ($input: UpdateScratchpadInput!) { updateScratchpad(input: $input) { scratchpad { id } } }',
          { scratchpadId: id, metaData: { [bad]: 1 } },
        ],
        [
          'mutation ($input: CreateThreadInput!) { createThread(input: $input) { thread { id } } }',
          { metaData: { a: [bad] } },
        ],
        ['mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }', { name: bad }],
      ] as const) {
        expect((await alice.client.fail(document, { input })).extensions.code).toBe('BAD_USER_INPUT');
      }
    }
    for (const content of ['', ' ', '\n\t ']) {
      expect((await alice.client.fail(append, { input: { scratchpadId: id, content } })).extensions).toMatchObject({
        code: 'BAD_USER_INPUT',
        issues: [{ path: ['content'] }],
      });
    }
    expect(
      (await alice.client.fail(append, { input: { scratchpadId: id, content: 'é'.repeat(32_769) } })).extensions.code,
    ).toBe('LIMIT_EXCEEDED');
    expect(
      (await alice.client.fail(setContentDocument, { input: { scratchpadId: id, text: `${'x'.repeat(1_048_576)}y` } }))
        .extensions.code,
    ).toBe('LIMIT_EXCEEDED');
    expect(await readState(alice.client, id)).toMatchObject({ entryCount: 0, content: { version: '0' } });
  });

  it('refuses a lost update with the version that is current', async () => {
    const id = await createScratchpad(alice.client);
    const first = await setContent(alice.client, id, 'one', { expectedVersion: '0' });
    const second = await setContent(alice.client, id, 'two', { expectedVersion: first.version });
    const error = await alice.client.fail(setContentDocument, {
      input: { scratchpadId: id, text: 'three', expectedVersion: first.version },
    });
    expect(error.extensions).toMatchObject({ code: 'CONFLICT', currentVersion: second.version });
    expect((await readState(alice.client, id)).content).toEqual(second);
  });

  it('writes an entry once for one idempotency key, and refuses the key for another input', async () => {
    const id = await createScratchpad(alice.client);
    const first = await appendEntry(alice.client, id, 'found', 'key-1');
    expect(await appendEntry(alice.client, id, 'found', 'key-1')).toEqual(first);
    expect(await readLedger(alice.client, id)).toEqual([first.entry]);
    const error = await alice.client.fail(
      'mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { id } } }',
      { input: { scratchpadId: id, content: 'other', idempotencyKey: 'key-1' } },
    );
    expect(error.extensions.code).toBe('CONFLICT');
  });

  it('clears content, entries or both, and stays itself', async () => {
    const id = await createScratchpad(alice.client);
    const fill = async () => {
      await setContent(alice.client, id, 'plan');
      await appendEntry(alice.client, id, 'finding');
    };
    const clear = async (mutation: string) =>
      (
        await alice.client.run<Record<string, { scratchpad: object }>>(
          `mutation ($id: ID!) { ${mutation}(input: { scratchpadId: $id }) { scratchpad { id content { text } entryCount } } }`,
          { id },
        )
      )[mutation]?.scratchpad;
    await fill();
    expect(await clear('clearScratchpadContent')).toEqual({ id, content: { text: '' }, entryCount: 1 });
    await fill();
    expect(await clear('clearScratchpadEntries')).toEqual({ id, content: { text: 'plan' }, entryCount: 0 });
    await fill();
    expect(await clear('clearScratchpad')).toEqual({ id, content: { text: '' }, entryCount: 0 });
  });

  it('is gone after its deletion, and its thread can have a new one', async () => {
    const threadId = await createThread(alice.client);
    const id = await createScratchpad(alice.client, threadId);
    await appendEntry(alice.client, id, 'finding');
    expect(
      await alice.client.run(
        'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }',
        { id },
      ),
    ).toEqual({ deleteScratchpad: { deletedScratchpadId: id } });
    const append =
      'mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { id } } }';
    expect((await alice.client.fail(append, { input: { scratchpadId: id, content: 'late' } })).extensions.code).toBe(
      'NOT_FOUND',
    );
    const next = await createScratchpad(alice.client, threadId);
    expect(next).not.toBe(id);
    expect(await readLedger(alice.client, next)).toEqual([]);
  });

  it('shows both planes in one text for an agent', async () => {
    const id = await createScratchpad(alice.client);
    await setContent(alice.client, id, 'the plan');
    await appendEntry(alice.client, id, 'the finding');
    const { scratchpad } = await alice.client.run<{ scratchpad: { formattedView: string } }>(
      'query ($id: ID!) { scratchpad(id: $id) { formattedView } }',
      { id },
    );
    expect(scratchpad.formattedView.indexOf('the plan')).toBeGreaterThanOrEqual(0);
    expect(scratchpad.formattedView.indexOf('the finding')).toBeGreaterThan(
      scratchpad.formattedView.indexOf('the plan'),
    );
  });
});

describe('users and keys', () => {
  it('shows the viewer, its keys without secrets, and everything it owns', async () => {
    const { viewer } = await alice.client.run<{ viewer: { id: string; apiKeys: { prefix: string; name: string }[] } }>(
      '{ viewer { id name createdAt apiKeys { id name prefix createdAt expiresAt lastUsedAt revokedAt } } }',
    );
    expect(viewer).toMatchObject({ id: alice.userId, name: 'Alice' });
    expect(viewer.apiKeys.map((key) => alice.secret.startsWith(key.prefix))).toContain(true);
    expect(JSON.stringify(viewer)).not.toContain(alice.secret);
  });

  it('makes a key that works until it is revoked', async () => {
    const { createApiKey } = await alice.client.run<{
      createApiKey: { secret: string; apiKey: { id: string; revokedAt: null } };
    }>('mutation { createApiKey(input: { name: "second" }) { secret apiKey { id name revokedAt } } }');
    const second = service.clientFor(createApiKey.secret);
    expect(await second.run('{ viewer { id } }')).toEqual({ viewer: { id: alice.userId } });
    const { revokeApiKey } = await alice.client.run<{ revokeApiKey: { apiKey: { revokedAt: string } } }>(
      'mutation ($id: ID!) { revokeApiKey(input: { apiKeyId: $id }) { apiKey { id revokedAt } } }',
      { id: createApiKey.apiKey.id },
    );
    expect(revokeApiKey.apiKey.revokedAt).toMatch(/^\d{4}-.*Z$/);
    await expect.poll(async () => (await second.send('{ viewer { id } }')).status, { timeout: 2000 }).toBe(401);
  });

  it('refuses an expiry that no clock could give back, and stores no key for it', async () => {
    for (const expiresAt of ['9999-12-31T23:59:59.999-12:00', '2020-01-01T00:00:00.000Z', 'tomorrow']) {
      const error = await alice.client.fail(
        'mutation ($e: DateTime) { createApiKey(input: { name: "odd", expiresAt: $e }) { secret } }',
        { e: expiresAt },
      );
      expect(error.extensions.code, expiresAt).toBe('BAD_USER_INPUT');
    }
    const { viewer } = await alice.client.run<{ viewer: { apiKeys: { name: string }[] } }>(
      '{ viewer { apiKeys { name expiresAt } } }',
    );
    expect(viewer.apiKeys.map((key) => key.name)).not.toContain('odd');
  });

  it('lets the administrator create and delete users and nothing else', async () => {
    const { createUser } = await service.administrator.run<{ createUser: { secret: string; user: { id: string } } }>(
      'mutation { createUser(input: { name: "Carol" }) { secret user { id name createdAt } } }',
    );
    const carol = service.clientFor(createUser.secret);
    const id = await createScratchpad(carol);
    expect((await service.administrator.send<{ viewer: null }>('{ viewer { id } }')).data).toEqual({ viewer: null });
    for (const document of [
      `{ scratchpad(id: "${id}") { id } }`,
      `{ node(id: "${id}") { id } }`,
      '{ scratchpads { edges { node { id } } } }',
      'mutation { createThread(input: {}) { thread { id } } }',
      `mutation { appendScratchpadEntry(input: { scratchpadId: "${id}", content: "x" }) { entry { id } } }`,
      'mutation { createApiKey(input: { name: "x" }) { secret } }',
      'mutation { createUser(input: { name: "Dave" }) { user { threads { totalCount } } } }',
    ]) {
      expect((await service.administrator.fail(document)).extensions.code, document).toBe('FORBIDDEN');
    }
    expect((await carol.fail('mutation { createUser(input: { name: "x" }) { secret } }')).extensions.code).toBe(
      'FORBIDDEN',
    );
    expect(
      await service.administrator.run('mutation ($id: ID!) { deleteUser(input: { userId: $id }) { deletedUserId } }', {
        id: createUser.user.id,
      }),
    ).toEqual({ deleteUser: { deletedUserId: createUser.user.id } });
    await expect.poll(async () => (await carol.send('{ viewer { id } }')).status, { timeout: 2000 }).toBe(401);
  });

  it('lets a user delete itself only when it types its own id', async () => {
    const eve = await service.createTenant('Eve');
    const document = 'mutation ($id: ID!) { deleteViewer(input: { confirmUserId: $id }) { deletedUserId } }';
    expect((await eve.client.fail(document, { id: alice.userId })).extensions.code).toBe('BAD_USER_INPUT');
    expect(await eve.client.run(document, { id: eve.userId })).toEqual({ deleteViewer: { deletedUserId: eve.userId } });
    await expect.poll(async () => (await eve.client.send('{ viewer { id } }')).status, { timeout: 2000 }).toBe(401);
  });
});
