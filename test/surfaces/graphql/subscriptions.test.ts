// scratchpadEvents over both transports and over two server processes' worth of service.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendEntry, createScratchpad, createThread, readState, setContent } from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';
import { subscribe, transports, type Subscriber } from '../../support/subscriber.js';

let service: Service;
let alice: Tenant;
const open: Subscriber[] = [];

beforeAll(async () => {
  service = await startService({ environment: { REDIS_SCRATCHPAD_TTL_SECONDS: '3' } });
  alice = await service.createTenant('Alice');
});
afterAll(async () => {
  for (const subscriber of open) subscriber.close();
  await service.close();
});

describe.each(transports)('over %s', (transport) => {
  const listen = async (scratchpadId: string, after?: string, secret = alice.secret): Promise<Subscriber> => {
    const subscriber = await subscribe({
      transport,
      url: service.url,
      secret,
      scratchpadId,
      ...(after !== undefined && { after }),
    });
    open.push(subscriber);
    return subscriber;
  };

  it('goes on from exactly the state that a query showed', async () => {
    const id = await createScratchpad(alice.client);
    await setContent(alice.client, id, 'plan');
    await appendEntry(alice.client, id, 'before the query');
    const { eventCursor } = await readState(alice.client, id);
    const missed = await appendEntry(alice.client, id, 'between query and subscription');
    const subscriber = await listen(id, eventCursor);
    await subscriber.received(1);
    const live = await appendEntry(alice.client, id, 'live');
    const content = await setContent(alice.client, id, 'new plan');
    const events = await subscriber.received(3);
    expect(events.map((event) => [event.operation, event.replayed])).toEqual([
      ['APPEND', true],
      ['APPEND', false],
      ['UPDATE', false],
    ]);
    expect(events[0]?.entry).toEqual(missed.entry);
    expect(events[1]?.entry).toEqual(live.entry);
    expect(events[2]?.content).toEqual(content);
    expect(
      events.every((event) => event.state === 'SUCCESS' && event.scratchpadId === id && event.expiresAt !== null),
    ).toBe(true);
  });

  it('replays the whole state for an empty cursor, and tells what was cleared to an old one', async () => {
    const id = await createScratchpad(alice.client);
    await appendEntry(alice.client, id, 'one');
    const { eventCursor } = await readState(alice.client, id);
    await alice.client.run(
      'mutation ($id: ID!) { clearScratchpadEntries(input: { scratchpadId: $id }) { scratchpad { id } } }',
      { id },
    );
    await appendEntry(alice.client, id, 'two');
    await setContent(alice.client, id, 'plan');
    const fresh = await listen(id, '');
    expect((await fresh.received(2)).map((event) => event.operation)).toEqual(['APPEND', 'UPDATE']);
    const old = await listen(id, eventCursor);
    expect((await old.received(3)).map((event) => [event.operation, event.replayed])).toEqual([
      ['CLEAR_ENTRIES', true],
      ['APPEND', true],
      ['UPDATE', true],
    ]);
  });

  it('resumes behind any cursor without a gap and without a duplicate', async () => {
    const id = await createScratchpad(alice.client);
    const first = await listen(id, '');
    const contents = ['one', 'two', 'three', 'four'];
    for (const content of contents) await appendEntry(alice.client, id, content);
    const events = await first.received(4);
    for (const [index, event] of events.entries()) {
      const resumed = await listen(id, event.cursor);
      const rest = contents.slice(index + 1);
      expect((await resumed.received(rest.length)).map((one) => one.entry?.content)).toEqual(rest);
    }
  });

  it('completes after DELETE, whether the pad, its thread or a raw SQL statement went', async () => {
    const remove = {
      pad: (id: string) =>
        alice.client.run(
          'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }',
          { id },
        ),
      thread: (_id: string, threadId: string) =>
        alice.client.run('mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedThreadId } }', {
          id: threadId,
        }),
      row: (id: string) => service.psql('DELETE FROM scratchpads WHERE id = $1', [id]),
    };
    for (const [name, action] of Object.entries(remove)) {
      const threadId = await createThread(alice.client);
      const id = await createScratchpad(alice.client, threadId);
      const subscriber = await listen(id, '');
      await appendEntry(alice.client, id, 'a finding');
      await subscriber.received(1);
      await action(id, threadId);
      await subscriber.ended;
      expect(
        subscriber.events.map((event) => event.operation),
        name,
      ).toEqual(['APPEND', 'DELETE']);
      expect(subscriber.errors).toEqual([]);
    }
  });

  it('tells a client that comes back with its cursor that the pad was deleted meanwhile, and nobody else', async () => {
    const bob = await service.createTenant('Bob');
    const id = await createScratchpad(alice.client);
    await appendEntry(alice.client, id, 'a finding');
    const { eventCursor } = await readState(alice.client, id);
    await service.psql('DELETE FROM scratchpads WHERE id = $1', [id]);
    await expect
      .poll(() => alice.client.run('query ($id: ID!) { scratchpad(id: $id) { id } }', { id }))
      .toEqual({ scratchpad: null });
    const returning = await listen(id, eventCursor);
    await returning.ended;
    expect(returning.events.map((event) => event.operation)).toEqual(['DELETE']);
    expect(returning.errors).toEqual([]);
    for (const [after, secret] of [
      [undefined, alice.secret],
      ['', alice.secret],
      ['nonsense', alice.secret],
      [eventCursor, bob.secret],
    ] as const) {
      const stranger = await listen(id, after, secret);
      await stranger.ended;
      expect(stranger.events).toEqual([]);
      expect(stranger.errors.map((error) => error.extensions?.code)).toEqual(['NOT_FOUND']);
    }
  });

  it('emits EXPIRE when the time of the state runs out', async () => {
    const id = await createScratchpad(alice.client);
    const subscriber = await listen(id, '');
    await appendEntry(alice.client, id, 'short-lived');
    const events = await subscriber.received(2);
    expect(events.map((event) => event.operation)).toEqual(['APPEND', 'EXPIRE']);
    expect(await readState(alice.client, id)).toMatchObject({ entryCount: 0, expiresAt: null });
    await appendEntry(alice.client, id, 'again');
    expect((await subscriber.received(3))[2]).toMatchObject({ operation: 'APPEND', entry: { content: 'again' } });
    const resumed = await listen(id, events[1]?.cursor);
    expect((await resumed.received(1))[0]).toMatchObject({ operation: 'APPEND', replayed: true });
  });

  it('answers another tenant’s pad, a missing one and an id of another kind alike', async () => {
    const bob = await service.createTenant('Bob');
    const id = await createScratchpad(alice.client);
    const answers = [];
    for (const target of [id, 'sp_01ARZ3NDEKTSV4RRFFQ69G5FAV', await createThread(alice.client), 'nonsense']) {
      const subscriber = await listen(target, undefined, bob.secret);
      await subscriber.ended;
      answers.push(
        JSON.stringify(subscriber.errors.map(({ message, extensions }) => ({ message, code: extensions?.code }))),
      );
    }
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toContain('NOT_FOUND');
  });

  it('refuses a cursor that it did not make', async () => {
    const id = await createScratchpad(alice.client);
    const subscriber = await listen(id, 'nonsense');
    await subscriber.ended;
    expect(subscriber.errors[0]?.extensions?.code).toBe('BAD_USER_INPUT');
  });

  it('ends within two seconds of the revocation of its key', async () => {
    const { createApiKey } = await alice.client.run<{ createApiKey: { secret: string; apiKey: { id: string } } }>(
      'mutation { createApiKey(input: { name: "short" }) { secret apiKey { id } } }',
    );
    const id = await createScratchpad(alice.client);
    const subscriber = await listen(id, '', createApiKey.secret);
    await appendEntry(alice.client, id, 'a finding');
    await subscriber.received(1);
    const revokedAt = Date.now();
    await alice.client.run('mutation ($id: ID!) { revokeApiKey(input: { apiKeyId: $id }) { apiKey { id } } }', {
      id: createApiKey.apiKey.id,
    });
    await subscriber.ended;
    expect(Date.now() - revokedAt).toBeLessThan(2000);
    expect(subscriber.errors[0]?.extensions?.code).toBe('UNAUTHENTICATED');
  });
});

it('gives many subscribers of one pad the same events in the same order', async () => {
  const id = await createScratchpad(alice.client);
  const subscribers = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      subscribe({
        transport: transports[index % 2] ?? 'SSE',
        url: service.url,
        secret: alice.secret,
        scratchpadId: id,
        after: '',
      }),
    ),
  );
  open.push(...subscribers);
  await Promise.all(Array.from({ length: 30 }, (_, index) => appendEntry(alice.client, id, `finding ${index}`)));
  const [reference, ...others] = await Promise.all(
    subscribers.map(async (subscriber) => (await subscriber.received(30)).map((event) => event.entry?.id)),
  );
  expect(new Set(reference).size).toBe(30);
  for (const other of others) expect(other).toEqual(reference);
});
