// Relay connections, of SQL rows and of the ledger in Redis alike.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendEntry, createScratchpad, createThread } from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

interface ConnectionPage {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null };
  totalCount?: number;
}

interface PageVariables {
  first?: number | null;
  after?: string | null;
  last?: number | null;
  before?: string | null;
}

let service: Service;
let alice: Tenant;
let threadId: string;
let padId: string;

const selection =
  '(first: $first, after: $after, last: $last, before: $before) { edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }';
const variables = '($first: Int, $after: String, $last: Int, $before: String)';

const connections = {
  'viewer.threads': {
    document: () => `query ${variables} { viewer { threads${selection} } }`,
    path: ['viewer', 'threads'],
  },
  'viewer.scratchpads': {
    document: () => `query ${variables} { viewer { scratchpads${selection} } }`,
    path: ['viewer', 'scratchpads'],
  },
  scratchpads: { document: () => `query ${variables} { scratchpads${selection} }`, path: ['scratchpads'] },
  'thread.messages': {
    document: () => `query ${variables} { thread(id: "${threadId}") { messages${selection} } }`,
    path: ['thread', 'messages'],
  },
  'scratchpad.entries': {
    document: () => `query ${variables} { scratchpad(id: "${padId}") { entries${selection} } }`,
    path: ['scratchpad', 'entries'],
  },
};
const rows = 7;

beforeAll(async () => {
  service = await startService();
  alice = await service.createTenant('Alice');
  threadId = await createThread(alice.client);
  padId = await createScratchpad(alice.client, threadId);
  for (let index = 1; index < rows; index += 1) await createScratchpad(alice.client);
  for (let index = 0; index < rows; index += 1) {
    await alice.client.run(
      'mutation ($id: ID!) { createMessage(input: { threadId: $id, content: "hello" }) { message { id } } }',
      { id: threadId },
    );
    await appendEntry(alice.client, padId, `finding ${index}`);
  }
});
afterAll(() => service.close());

describe.each(Object.entries(connections))('%s', (_name, { document, path }) => {
  const read = async (page: PageVariables): Promise<ConnectionPage> => {
    const data = await alice.client.run<Record<string, unknown>>(document(), page);
    return path.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], data) as ConnectionPage;
  };
  const ids = (page: ConnectionPage): string[] => page.edges.map((edge) => edge.node.id);

  it('walks forwards and backwards over the same rows in the same order', async () => {
    const all = await read({});
    expect(all.edges).toHaveLength(rows);
    expect(all.pageInfo).toEqual({
      hasNextPage: false,
      hasPreviousPage: false,
      startCursor: all.edges[0]?.cursor,
      endCursor: all.edges.at(-1)?.cursor,
    });

    const forwards: string[] = [];
    for (let after: string | null = null, more = true; more;) {
      const page = await read({ first: 3, after });
      expect(page.pageInfo.hasPreviousPage).toBe(after !== null);
      forwards.push(...ids(page));
      after = page.pageInfo.endCursor;
      more = page.pageInfo.hasNextPage;
    }
    expect(forwards).toEqual(ids(all));

    const backwards: string[] = [];
    for (let before: string | null = null, more = true; more;) {
      const page = await read({ last: 3, before });
      expect(page.pageInfo.hasNextPage).toBe(before !== null);
      backwards.unshift(...ids(page));
      before = page.pageInfo.startCursor;
      more = page.pageInfo.hasPreviousPage;
    }
    expect(backwards).toEqual(ids(all));
  });

  it('takes what lies between two cursors', async () => {
    const all = await read({});
    const between = await read({ after: all.edges[1]?.cursor ?? null, before: all.edges[5]?.cursor ?? null });
    expect(ids(between)).toEqual(ids(all).slice(2, 5));
    expect(
      ids(await read({ last: 2, after: all.edges[1]?.cursor ?? null, before: all.edges[5]?.cursor ?? null })),
    ).toEqual(ids(all).slice(3, 5));
  });

  it('gives an empty page for a size of zero', async () => {
    for (const page of [{ first: 0 }, { last: 0 }]) {
      expect(await read(page)).toMatchObject({ edges: [], pageInfo: { startCursor: null, endCursor: null } });
    }
  });

  it('refuses negative and too large sizes, both sizes at once, and cursors that are not its own', async () => {
    const foreign = { threads: 'scratchpads', scratchpads: 'threads', messages: 'threads', entries: 'threads' }[
      path.at(-1) ?? ''
    ];
    const { viewer } = await alice.client.run<{ viewer: Record<string, ConnectionPage> }>(
      `{ viewer { ${foreign} { edges { cursor } } } }`,
    );
    const foreignCursor = viewer[foreign ?? '']?.edges[0]?.cursor;
    for (const page of [
      { first: -1 },
      { last: -1 },
      { first: 101 },
      { last: 101 },
      { first: 1, last: 1 },
      { after: 'nonsense' },
      { before: '' },
      { after: foreignCursor },
      { before: Buffer.from('["x","y","z"]').toString('base64url') },
    ]) {
      expect((await alice.client.fail(document(), page)).extensions.code, JSON.stringify(page)).toBe('BAD_USER_INPUT');
    }
  });
});

it('refuses the cursor of another parent’s connection of the same kind', async () => {
  const { thread, scratchpad } = await alice.client.run<{
    thread: { messages: ConnectionPage };
    scratchpad: { entries: ConnectionPage };
  }>(
    `{ thread(id: "${threadId}") { messages { edges { cursor } } } scratchpad(id: "${padId}") { entries { edges { cursor } } } }`,
  );
  const otherThread = await createThread(alice.client);
  const otherPad = await createScratchpad(alice.client, otherThread);
  await appendEntry(alice.client, otherPad, 'another');
  const queries = [
    [
      `query ($c: String) { thread(id: "${otherThread}") { messages(after: $c) { edges { cursor } } } }`,
      thread.messages.edges[0]?.cursor,
    ],
    [
      `query ($c: String) { scratchpad(id: "${otherPad}") { entries(after: $c) { edges { cursor } } } }`,
      scratchpad.entries.edges[0]?.cursor,
    ],
  ] as const;
  for (const [document, c] of queries) {
    expect((await alice.client.fail(document, { c })).extensions.code).toBe('BAD_USER_INPUT');
  }
});

it('is not cut or shifted by rows that are deleted during a walk', async () => {
  const bob = await service.createTenant('Bob');
  const threads: string[] = [];
  for (let index = 0; index < 6; index += 1) threads.push(await createThread(bob.client));
  const page = async (after: string | null) =>
    (
      await bob.client.run<{ viewer: { threads: ConnectionPage } }>(
        'query ($after: String) { viewer { threads(first: 2, after: $after) { edges { cursor node { id } } pageInfo { hasNextPage endCursor } } } }',
        { after },
      )
    ).viewer.threads;
  const first = await page(null);
  const last = first.edges.at(-1)?.node.id;
  await bob.client.run('mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedThreadId } }', {
    id: last,
  });
  const second = await page(first.pageInfo.endCursor);
  expect(second.edges.map((edge) => edge.node.id)).toEqual(threads.slice(2, 4));
});

it('refuses an entries cursor whose entry was cleared, also when new entries took its place', async () => {
  const id = await createScratchpad(alice.client);
  await appendEntry(alice.client, id, 'one');
  const { entryEdge } = await appendEntry(alice.client, id, 'two');
  await alice.client.run(
    'mutation ($id: ID!) { clearScratchpadEntries(input: { scratchpadId: $id }) { scratchpad { id } } }',
    { id },
  );
  for (const content of ['three', 'four', 'five']) await appendEntry(alice.client, id, content);
  const error = await alice.client.fail(
    'query ($id: ID!, $after: String) { scratchpad(id: $id) { entries(after: $after) { edges { cursor } } } }',
    { id, after: entryEdge.cursor },
  );
  expect(error).toMatchObject({ path: ['scratchpad', 'entries'], extensions: { code: 'BAD_USER_INPUT' } });
});

it('answers with the cursor at which the ledger shows the appended entry', async () => {
  const id = await createScratchpad(alice.client);
  await appendEntry(alice.client, id, 'one');
  const two = await appendEntry(alice.client, id, 'two');
  const { scratchpad } = await alice.client.run<{ scratchpad: { entries: ConnectionPage } }>(
    'query ($id: ID!) { scratchpad(id: $id) { entries(last: 1) { edges { cursor node { id } } } } }',
    { id },
  );
  expect(scratchpad.entries.edges).toEqual([{ cursor: two.entryEdge.cursor, node: { id: two.entry.id } }]);
});
