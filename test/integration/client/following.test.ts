// Events and entries over connections that break in every way: nothing is missed, nothing comes twice.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createClient, type Client, type ScratchpadEvent } from '../../../src/client/index.js';
import { follow, type Follower } from '../../support/follower.js';
import { createToken, revokeTokenDocument } from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';

let service: Service;
let alice: Tenant;
/** Straight to the server: what others do. */
let direct: Client;
let proxy: TcpProxy;
let client: Client;
let padId: string;
const followers: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  service = await startService({ appendFsync: 'always' });
  alice = await service.createTenant('Alice');
  direct = createClient({ url: service.url, apiKey: alice.secret });
});
afterAll(() => service.close());
beforeEach(async () => {
  proxy = await startTcpProxy(service.url);
  client = createClient({ url: proxy.url, apiKey: alice.secret, silenceLimitMs: 3000 });
  padId = (await direct.scratchpads.create({ threadId: (await direct.threads.create()).id })).id;
});
afterEach(async () => {
  await Promise.all(followers.splice(0).map((follower) => follower.stop()));
  await proxy.close();
});

const keep = <Item>(follower: Follower<Item>): Follower<Item> => {
  followers.push(follower);
  return follower;
};
const append = (content: string) => direct.scratchpads.appendEntry(padId, { content });
async function appendMany(prefix: string, count: number): Promise<string[]> {
  const contents = Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  for (const content of contents) await append(content);
  return contents;
}
const contentsOf = (items: readonly { content: string }[]): string[] => items.map(({ content }) => content);
const appendsOf = (events: readonly ScratchpadEvent[]): string[] =>
  events.flatMap(({ entry }) => (entry ? [entry.content] : []));
const hasEntry = (content: string) => (events: readonly ScratchpadEvent[]) => appendsOf(events).includes(content);
const isFollowed = (content: string) => (items: readonly { content: string }[]) => contentsOf(items).includes(content);

const followEvents = (after?: string, reasons: string[] = []): Follower<ScratchpadEvent> =>
  keep(
    follow((signal) =>
      client.scratchpads.events(padId, { after, signal, onReconnect: ({ code }) => void reasons.push(code) }),
    ),
  );
const followEntries = (reasons: string[] = []) =>
  keep(
    follow((signal) =>
      client.scratchpads.entries(padId, { signal, onReconnect: ({ code }) => void reasons.push(code) }),
    ),
  );

describe('events', () => {
  it('are told once and in order while the connection is cut again and again, also within an event', async () => {
    const events = followEvents('');
    const expected: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      if (round % 2 === 0) proxy.cutAfter(700 + round * 97);
      expected.push(...(await appendMany(`${round}-`, 5)));
      if (round % 2 === 1) proxy.cut();
      expected.push(...(await appendMany(`${round}+`, 3)));
      // Connected again before the next cut, however fast the appends are.
      await events.until(hasEntry(expected.at(-1)!));
    }
    expect(appendsOf(events.items)).toEqual(expected);
    expect(proxy.connections()).toBeGreaterThan(4);
  });

  it('are missed by nobody who had seen none when the connection broke', async () => {
    const reasons: string[] = [];
    await append('before');
    const events = followEvents(undefined, reasons);
    // Its place is known, and the stream is open.
    while (proxy.bytesToClients() < 700) await sleep(10);
    proxy.refuse(true);
    proxy.cut();
    await append('while away');
    proxy.refuse(false);
    await events.until(hasEntry('while away'));
    expect(appendsOf(events.items)).toEqual(['while away']);
    expect(reasons).toContain('CONNECTION_FAILED');
  });

  it('go on over a connection that is half-open', async () => {
    const reasons: string[] = [];
    const events = followEvents('', reasons);
    await append('1');
    await events.until(hasEntry('1'));
    proxy.swallow();
    await append('2');
    await events.until(hasEntry('2'));
    await append('3');
    await events.until(hasEntry('3'));
    expect(appendsOf(events.items)).toEqual(['1', '2', '3']);
    expect(reasons[0]).toBe('TIMEOUT');
  });

  it('wait for a server that stays away, as long as it takes', async () => {
    const reasons: string[] = [];
    const events = followEvents('', reasons);
    await append('1');
    await events.until(hasEntry('1'));
    proxy.refuse(true);
    proxy.cut();
    await append('2');
    while (reasons.length < 4) await sleep(20);
    proxy.refuse(false);
    await events.until(hasEntry('2'));
    expect(appendsOf(events.items)).toEqual(['1', '2']);
  });

  it('lead to the state that there is, whatever was cleared and replaced meanwhile', async () => {
    const events = followEvents('');
    await direct.scratchpads.setContent(padId, { text: 'old' });
    await events.until((seen) => seen.length > 0);
    await append('old');
    await events.until(hasEntry('old'));
    proxy.refuse(true);
    proxy.cut();
    await direct.scratchpads.clear(padId);
    await direct.scratchpads.setContent(padId, { text: 'new' });
    await append('new');
    proxy.refuse(false);
    await events.until(hasEntry('new'));
    await events.until((seen) => seen.some(({ content }) => content?.text === 'new'));
    const operations = events.items.map(({ operation }) => operation);
    expect(operations.slice(0, 3)).toEqual(['UPDATE', 'APPEND', 'CLEAR']);
    expect(operations.slice(3).toSorted()).toEqual(['APPEND', 'UPDATE']);
    expect(events.items.slice(2).every(({ replayed }) => replayed)).toBe(true);
  });

  it('end behind DELETE, seen live or made good', async () => {
    const live = followEvents('');
    await append('1');
    await live.until(hasEntry('1'));
    const cursor = live.items.at(-1)?.cursor ?? '';
    await direct.scratchpads.delete(padId);
    expect(await live.ended).toBeUndefined();
    expect(live.items.map(({ operation }) => operation)).toEqual(['APPEND', 'DELETE']);
    const late = followEvents(cursor);
    expect(await late.ended).toBeUndefined();
    expect(late.items).toMatchObject([{ operation: 'DELETE', replayed: true, scratchpadId: padId }]);
  });

  it('end with the error when a key is revoked', async () => {
    const token = await createToken(alice.client, padId, 'OBSERVER');
    const agent = createClient({ url: proxy.url, apiKey: token.secret });
    const events = keep(follow((signal) => agent.scratchpads.events(padId, { after: '', signal })));
    await append('1');
    await events.until(hasEntry('1'));
    await alice.client.run(revokeTokenDocument, { id: token.id });
    expect(await events.ended).toMatchObject({ name: 'ScratchpadError', code: 'UNAUTHENTICATED' });
  });

  it('stop when they are told to: before the start, while connected, and while the server is away', async () => {
    const aborted = client.scratchpads.events(padId, { signal: AbortSignal.abort() });
    expect(await aborted.next()).toEqual({ done: true, value: undefined });
    expect(proxy.connections()).toBe(0);
    const connected = followEvents('');
    await append('1');
    await connected.until(hasEntry('1'));
    await connected.stop();
    expect(await connected.ended).toBeUndefined();
    const reasons: string[] = [];
    const waiting = followEvents('', reasons);
    await waiting.until(hasEntry('1'));
    proxy.refuse(true);
    proxy.cut();
    while (reasons.length < 3) await sleep(10);
    const begin = performance.now();
    await waiting.stop();
    expect(performance.now() - begin).toBeLessThan(500);
  });

  it('survive a Redis that is killed and comes back with what it had', async () => {
    const events = followEvents('');
    const expected = await appendMany('before', 3);
    await events.until(hasEntry('before2'));
    await service.redis.kill();
    const late = append('after');
    await service.redis.restart();
    // It was sent again until Redis was back, or was refused; once it is there, it is there once.
    await late.catch(() => append('after'));
    await events.until(hasEntry('after'));
    expect(appendsOf(events.items)).toEqual([...expected, 'after']);
  });
});

describe('entries', () => {
  it('are paged through and then followed, over a cut in the middle of the first page', async () => {
    const expected = await appendMany('', 30);
    proxy.cutAfter(3000);
    const entries = followEntries();
    await entries.until(isFollowed('29'));
    proxy.cut();
    await append('30');
    await entries.until(isFollowed('30'));
    expect(contentsOf(entries.items)).toEqual([...expected, '30']);
    expect(proxy.connections()).toBe(3);
  });

  it('leave out what was cleared before it was told, and go on with what was appended since', async () => {
    await appendMany('old', 3);
    const entries = followEntries();
    await entries.until(isFollowed('old2'));
    proxy.refuse(true);
    proxy.cut();
    await append('never told');
    await direct.scratchpads.clearEntries(padId);
    await append('new');
    proxy.refuse(false);
    await entries.until(isFollowed('new'));
    await direct.scratchpads.clear(padId);
    await append('newer');
    await entries.until(isFollowed('newer'));
    expect(contentsOf(entries.items)).toEqual(['old0', 'old1', 'old2', 'new', 'newer']);
  });

  it('go on behind the cursor of an entry, and do not carry the content', async () => {
    await appendMany('', 3);
    const first = followEntries();
    await first.until(isFollowed('2'));
    const bytes = proxy.bytesToClients();
    await direct.scratchpads.setContent(padId, { text: 'x'.repeat(500_000) });
    await append('3');
    await first.until(isFollowed('3'));
    expect(proxy.bytesToClients() - bytes).toBeLessThan(5000);
    const after = first.items[1]?.cursor;
    const rest = keep(follow((signal) => client.scratchpads.entries(padId, { after, signal })));
    await rest.until(isFollowed('3'));
    expect(contentsOf(rest.items)).toEqual(['2', '3']);
  });

  it('are told once also when Redis lost its last moments, and end with the scratchpad', async () => {
    await appendMany('kept', 2);
    const entries = followEntries();
    await entries.until(isFollowed('kept1'));
    await append('lost');
    await entries.until(isFollowed('lost'));
    // As after a crash that took the last write along: the ledger ends earlier than what was told.
    const redis = service.redis.client();
    const [ledger] = await redis.keys(`*${padId}*entries*`);
    await redis.rpop(ledger ?? '');
    proxy.cut();
    await append('next');
    await entries.until(isFollowed('next'));
    expect(contentsOf(entries.items)).toEqual(['kept0', 'kept1', 'lost', 'next']);
    await direct.scratchpads.delete(padId);
    expect(await entries.ended).toBeUndefined();
  });
});
