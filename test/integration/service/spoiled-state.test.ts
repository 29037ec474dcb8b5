// What another program has left in Redis harms the field that shows it, and nothing beside it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  appendEntry,
  createScratchpad,
  createThread,
  createToken,
  readState,
  setContent,
} from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

let service: Service;
let alice: Tenant;

beforeAll(async () => {
  service = await startService({ appendFsync: 'always', environment: { MAX_CONTENT_BYTES: '1000' } });
  alice = await service.createTenant('Alice');
});
afterAll(() => service.close());

const page = `{ scratchpads(first: 10) { edges { node {
  id entryCount expiresAt eventCursor content { text } formattedView entries(first: 5) { edges { node { content } } }
} } } }`;

describe('a payload that is none of ours', () => {
  const texts = ['secret words', '{"content": 5}', '[]', 'null', '{"content":"x","updated_at":"y"}'];

  it.each(
    texts.flatMap(
      (text) =>
        [
          ['content', text],
          ['entries', text],
        ] as const,
    ),
  )('in the %s of one scratchpad, such as %s, fails the fields that show it and no other', async (plane, text) => {
    const [spoiled, whole] = [await createScratchpad(alice.client), await createScratchpad(alice.client)];
    for (const id of [spoiled, whole]) {
      await setContent(alice.client, id, 'plan');
      await appendEntry(alice.client, id, 'found');
    }
    const redis = service.redis.client();
    const key = `scratchpad:${alice.userId}:${spoiled}:${plane}`;
    if (plane === 'content') await redis.set(key, text, 'KEEPTTL');
    else await redis.rpush(key, text);
    const { data, errors } = await alice.client.send<{ scratchpads: { edges: { node: Record<string, unknown> }[] } }>(
      page,
    );
    const nodes = data?.scratchpads.edges.map(({ node }) => node) ?? [];
    const nodeOf = (id: string): Record<string, unknown> | undefined => nodes.find((node) => node['id'] === id);
    expect(nodeOf(whole)).toMatchObject({
      content: { text: 'plan' },
      entryCount: 1,
      formattedView: expect.any(String) as string,
    });
    const failing = plane === 'content' ? ['content', 'formattedView'] : ['entries', 'formattedView'];
    const index = nodes.findIndex((node) => node['id'] === spoiled);
    expect(errors.map(({ path }) => String(path?.at(-1))).toSorted()).toEqual(failing);
    for (const error of errors) {
      expect(error.path?.slice(0, 3)).toEqual(['scratchpads', 'edges', index]);
      expect(error.extensions).toEqual({ code: 'INTERNAL', requestId: expect.any(String) as string });
      expect(error.message).not.toContain('secret');
    }
    expect(nodeOf(spoiled)).toMatchObject({
      entryCount: plane === 'entries' ? 2 : 1,
      expiresAt: expect.any(String) as string,
      eventCursor: expect.any(String) as string,
      [plane]: null,
    });
    // A token of the scratchpad sees the same, and its owner can make it good.
    const { secret } = await createToken(alice.client, spoiled);
    expect(
      (await service.clientFor(secret).send(`{ scratchpad(id: "${spoiled}") { entryCount ${plane} { __typename } } }`))
        .errors,
    ).toHaveLength(1);
    if (plane === 'content') await setContent(alice.client, spoiled, 'mended');
    else
      await alice.client.run(
        `mutation { clearScratchpadEntries(input: { scratchpadId: "${spoiled}" }) { scratchpad { id } } }`,
      );
    expect((await alice.client.send(page)).errors).toEqual([]);
    for (const id of [spoiled, whole]) {
      await alice.client.run(`mutation { deleteScratchpad(input: { scratchpadId: "${id}" }) { deletedScratchpadId } }`);
    }
  });
});

describe('a legacy notebook', () => {
  const leaveNotebook = async (content: string): Promise<string> => {
    const threadId = await createThread(alice.client);
    await service.redis.client().set(`scratchpad:${threadId}:notebook`, JSON.stringify({ content }));
    return threadId;
  };

  it.each(['x'.repeat(5000), '💥é'.repeat(2000)])(
    'over MAX_CONTENT_BYTES is cut to it, and the content says so',
    async (old) => {
      const id = await createScratchpad(alice.client, await leaveNotebook(old));
      const { text } = (await readState(alice.client, id)).content;
      const bytes = Buffer.byteLength(text);
      expect(bytes).toBeLessThanOrEqual(1000);
      expect(bytes).toBeGreaterThan(990);
      expect(text).toMatch(new RegExp(`\n\\(cut here: the legacy notebook had ${Buffer.byteLength(old)} bytes\\)$`));
      expect(old.startsWith(text.slice(0, text.indexOf('\n')))).toBe(true);
    },
  );

  it('of exactly MAX_CONTENT_BYTES is kept whole', async () => {
    const id = await createScratchpad(alice.client, await leaveNotebook('é'.repeat(500)));
    expect((await readState(alice.client, id)).content.text).toBe('é'.repeat(500));
  });

  it('of a scratchpad that was made while Redis was away is there before anything is written to it', async () => {
    const threads = await Promise.all(['one', 'two', 'three'].map(leaveNotebook));
    await service.redis.kill();
    const pads: string[] = [];
    try {
      for (const threadId of threads) pads.push(await createScratchpad(alice.client, threadId));
    } finally {
      await service.redis.restart();
    }
    await expect.poll(async () => (await fetch(`${service.url}/readyz`)).status, { timeout: 15_000 }).toBe(200);
    const [appended = '', replaced = '', untouched = ''] = pads;
    await Promise.all([
      appendEntry(alice.client, appended, 'new'),
      alice.client.fail(
        'mutation ($id: ID!) { setScratchpadContent(input: { scratchpadId: $id, text: "new", expectedVersion: "0" }) { content { text } } }',
        { id: replaced },
      ),
    ]);
    const textOf = async (id: string): Promise<string> => (await readState(alice.client, id)).content.text;
    expect([await textOf(appended), await textOf(replaced)]).toEqual(['one', 'two']);
    expect((await readState(alice.client, appended)).entryCount).toBe(1);
    // The first write has shown that Redis is back.
    await expect.poll(() => textOf(untouched)).toBe('three');
    expect(await service.redis.client().keys('scratchpad:*:notebook')).toEqual([]);
  });
});
