// Many subscribers of one pad, who share results and frames, on a machine without time for them: each is told everything, once and in order.
import { spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { startCluster, type Cluster, type ClusterTenant, type ServerProcess } from '../../support/cluster.js';
import { createScratchpad } from '../../support/operations.js';
import { until } from '../../support/raw-subscriber.js';

const subscriberCount = 300;
const pausedCount = 20;
const bursts = 4;
const appendsInBurst = 75;
const entryBytes = 12_000;

const document = `subscription ($id: ID!) {
  scratchpadEvents(scratchpadId: $id) { operation cursor entry { id content } }
}`;

let cluster: Cluster;
let server: ServerProcess;
let tenant: ClusterTenant;
const hogs: ReturnType<typeof spawn>[] = [];

beforeAll(async () => {
  cluster = await startCluster();
  server = await cluster.startServer();
  tenant = await cluster.createTenant(server, 'Alice');
});
afterAll(async () => {
  for (const hog of hogs) hog.kill('SIGKILL');
  await cluster.close();
});

interface Follower {
  socket: WebSocket;
  ids: string[];
  others: string[];
}

/** @param id of the operation: equal ones share their frames to the byte */
async function follow(pad: string, id: string): Promise<Follower> {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const follower: Follower = { socket, ids: [], others: [] };
  socket.on('error', (error) => follower.others.push(String(error)));
  socket.on('message', (data: Buffer) => {
    const text = data.toString('utf8');
    const message = JSON.parse(text) as {
      type: string;
      payload?: { data?: { scratchpadEvents?: { operation: string; entry?: { id: string } } } };
    };
    const event = message.payload?.data?.scratchpadEvents;
    if (message.type === 'connection_ack') {
      socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query: document, variables: { id: pad } } }));
    } else if (event?.operation === 'APPEND' && event.entry) follower.ids.push(event.entry.id);
    else follower.others.push(text);
  });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${tenant.secret}` } }));
  return follower;
}

interface PageOfEntries {
  scratchpad: {
    entries: { pageInfo: { hasNextPage: boolean; endCursor: string }; edges: { node: { id: string } }[] };
  };
}

async function openSubscriptions(): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return Number(/^scratchpad_open_subscriptions\{transport="websocket"\} (\d+)/m.exec(text)?.[1] ?? 0);
}

it('each of 300 gets every entry of every burst in the order of the ledger, also who stopped to read meanwhile', async () => {
  const client = server.clientFor(tenant.secret);
  const pad = await createScratchpad(client);
  // Most number their operations alike, as libraries do; some do not.
  const followers: Follower[] = [];
  for (let index = 0; index < subscriberCount; index += 1) {
    followers.push(await follow(pad, index % 10 === 9 ? `operation-${index}` : '1'));
  }
  await expect.poll(openSubscriptions, { timeout: 60_000, interval: 100 }).toBe(subscriberCount);
  for (let index = 0; index < 3; index += 1)
    hogs.push(spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));

  const append = `mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { id } } }`;
  const paused = followers.slice(0, pausedCount);
  for (let burst = 0; burst < bursts; burst += 1) {
    if (burst === 1) for (const { socket } of paused) socket.pause();
    await Promise.all(
      Array.from({ length: appendsInBurst }, () =>
        client.run(append, { input: { scratchpadId: pad, content: 'x'.repeat(entryBytes) } }),
      ),
    );
    if (burst === 2) for (const { socket } of paused) socket.resume();
  }

  const ledger: string[] = [];
  for (let after: string | null = null, more = true; more;) {
    const { scratchpad }: PageOfEntries = await client.run<PageOfEntries>(
      `query ($id: ID!, $after: String) { scratchpad(id: $id) {
        entries(first: 100, after: $after) { pageInfo { hasNextPage endCursor } edges { node { id } } }
      } }`,
      { id: pad, after },
    );
    ledger.push(...scratchpad.entries.edges.map(({ node }) => node.id));
    more = scratchpad.entries.pageInfo.hasNextPage;
    after = scratchpad.entries.pageInfo.endCursor;
  }
  expect(ledger).toHaveLength(bursts * appendsInBurst);
  const slowest = () => Math.min(...followers.map(({ ids }) => ids.length));
  await until(
    () => slowest() >= ledger.length,
    () => `the slowest of ${subscriberCount} has ${slowest()} of ${ledger.length}`,
  );
  for (const { ids, others } of followers) {
    expect(others).toEqual([]);
    expect(ids).toEqual(ledger);
  }
  for (const { socket } of followers) socket.terminate();
}, 300_000);
