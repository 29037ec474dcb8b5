// Following over what takes longer: server processes that die and come back, slow readers, a ledger of many pages that grows under cuts.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClient, type Client, type ScratchpadEvent } from '../../../src/client/index.js';
import { startCluster, type Cluster, type ServerProcess } from '../../support/cluster.js';
import { follow } from '../../support/follower.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';

let cluster: Cluster;
let server: ServerProcess;
let port: string;
let direct: Client;
let apiKey: string;
let proxy: TcpProxy | undefined;

const environment = { SUBSCRIBER_BUFFER_EVENTS: '50' };

beforeAll(async () => {
  cluster = await startCluster({ appendFsync: 'always' });
  server = await cluster.startServer(environment);
  ({ port } = new URL(server.url));
  apiKey = (await cluster.createTenant(server, 'Alice')).secret;
  direct = createClient({ url: server.url, apiKey });
});
afterEach(async () => {
  await proxy?.close();
  proxy = undefined;
});
afterAll(() => cluster.close());

const newPad = async (): Promise<string> =>
  (await direct.scratchpads.create({ threadId: (await direct.threads.create()).id })).id;
const appendsOf = (events: readonly ScratchpadEvent[]): string[] =>
  events.flatMap(({ entry }) => (entry ? [entry.content] : []));

it.each(['kill', 'stop'] as const)(
  'events and appends survive a server process that is ended by %s and started again at the same address',
  async (how) => {
    const padId = await newPad();
    const reasons: string[] = [];
    const events = follow((signal) =>
      direct.scratchpads.events(padId, { after: '', signal, onReconnect: ({ code }) => void reasons.push(code) }),
    );
    await direct.scratchpads.appendEntry(padId, { content: 'before' });
    await events.until((seen) => appendsOf(seen).includes('before'));
    const patient = createClient({ url: server.url, apiKey, retries: 12 });
    await server[how]();
    const appended = ['a', 'b', 'c'].map((content) => patient.scratchpads.appendEntry(padId, { content }));
    server = await cluster.startServer({ ...environment, PORT: port });
    const ids = (await Promise.all(appended)).map(({ id }) => id);
    await events.until((seen) => appendsOf(seen).length >= 4);
    await direct.scratchpads.setContent(padId, { text: 'end' });
    await events.until((seen) => seen.some(({ content }) => content?.text === 'end'));
    expect(appendsOf(events.items).toSorted()).toEqual(['a', 'b', 'before', 'c']);
    expect(new Set(ids).size).toBe(3);
    expect((await direct.scratchpads.listEntries(padId)).totalCount).toBe(4);
    expect(reasons.length).toBeGreaterThan(0);
    await events.stop();
  },
);

describe('a reader', () => {
  it('gets every event although the scratchpad changes faster than it reads', async () => {
    const padId = await newPad();
    const client = createClient({ url: server.url, apiKey, silenceLimitMs: 15_000 });
    const reasons: string[] = [];
    let proceed: () => void = () => {};
    const allWritten = new Promise<void>((resolve) => (proceed = resolve));
    const seen: string[] = [];
    const reading = (async () => {
      const options = { after: '', onReconnect: ({ code }: { code: string }) => void reasons.push(code) };
      for await (const { entry, operation } of client.scratchpads.events(padId, options)) {
        if (entry) seen.push(entry.id);
        // Longer than silence may last: what takes long here says nothing about the connection.
        if (seen.length === 1) await Promise.all([allWritten, sleep(20_000)]);
        if (operation === 'UPDATE') return;
      }
    })();
    const large = 'x'.repeat(64_000);
    const appendInTurn = async (): Promise<void> => {
      for (let index = 0; index < 40; index += 1) await direct.scratchpads.appendEntry(padId, { content: large });
    };
    await Promise.all(Array.from({ length: 10 }, appendInTurn));
    proceed();
    await direct.scratchpads.setContent(padId, { text: 'end' });
    await reading;
    const ledger: string[] = [];
    for (let after: string | null = null; ;) {
      const page = await direct.scratchpads.listEntries(padId, { first: 100, after });
      ledger.push(...page.items.map(({ id }) => id));
      after = page.endCursor;
      if (!page.hasNextPage) break;
    }
    expect(seen).toEqual(ledger);
    expect(ledger).toHaveLength(400);
    expect(reasons).toContain('SUBSCRIBER_TOO_SLOW');
    expect(reasons).not.toContain('TIMEOUT');
  });

  it('gets every entry of a ledger of many pages that grows while the connection is cut', async () => {
    const padId = await newPad();
    proxy = await startTcpProxy(server.url);
    const client = createClient({ url: proxy.url, apiKey });
    const expected: string[] = [];
    const write = async (batch: number): Promise<void> => {
      for (let index = 0; index < 300; index += 1) {
        const content = `${batch}/${index}`;
        await direct.scratchpads.appendEntry(padId, { content });
        expected.push(content);
      }
    };
    await write(0);
    const writing = write(1);
    const reasons: string[] = [];
    const entries = follow((signal) =>
      client.scratchpads.entries(padId, { signal, onReconnect: ({ code }) => void reasons.push(code) }),
    );
    for (let cut = 0; cut < 6; cut += 1) {
      const count = entries.items.length;
      proxy.cutAfter(5000);
      await entries.until((items) => items.length > count + 40, 60_000);
    }
    await writing;
    await entries.until((items) => items.length >= 600);
    await direct.scratchpads.delete(padId);
    expect(await entries.ended).toBeUndefined();
    expect(entries.items.map(({ content }) => content)).toEqual(expected);
    expect(reasons.length).toBeGreaterThan(3);
  });
});
