// An agent token that ends in one process has ended in the other within two seconds: REST, MCP, and what is open.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startCluster, type Cluster, type ServerProcess } from '../../support/cluster.js';
import type { GraphqlClient } from '../../support/graphql-client.js';
import { appendEntry, createScratchpad, createToken, revokeTokenDocument } from '../../support/operations.js';
import { createRestClient, type RestClient } from '../../support/rest-client.js';
import { subscribe, transports, type Subscriber } from '../../support/subscriber.js';

const limitMs = 2000;

let cluster: Cluster;
let one: ServerProcess;
let other: ServerProcess;
let owner: GraphqlClient;

beforeAll(async () => {
  cluster = await startCluster();
  [one, other] = [await cluster.startServer(), await cluster.startServer()];
  owner = one.clientFor((await cluster.createTenant(one, 'Alice')).secret);
}, 300_000);
afterAll(() => cluster.close());

interface Agent {
  rest: RestClient;
  mcp: Client;
  subscribers: Subscriber[];
}

/** Works with its pad through every door of the other process. */
async function arrive(secret: string, scratchpadId: string): Promise<Agent> {
  const { url } = other;
  const mcp = new Client({ name: 'a test', version: '1.0.0' });
  const headers = { authorization: `Bearer ${secret}` };
  await mcp.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  const subscribers = await Promise.all(
    transports.map((transport) => subscribe({ transport, url, secret, scratchpadId, after: '' })),
  );
  const rest = createRestClient(url, secret);
  await mcp.callTool({ name: 'append_scratchpad', arguments: { note: 'over MCP' } });
  await rest.take('POST', `/v1/scratchpads/${scratchpadId}/entries`, { content: 'over REST' });
  for (const subscriber of subscribers) await subscriber.received(2);
  return { rest, mcp, subscribers };
}

/** Resolves once nothing lets it in any more. */
async function untilShutOut({ rest, mcp, subscribers }: Agent, scratchpadId: string, sinceMs: number): Promise<void> {
  const isIn = {
    REST: async () => (await rest.send('GET', `/v1/scratchpads/${scratchpadId}/content`)).status !== 401,
    MCP: async () =>
      mcp.callTool({ name: 'read_scratchpad', arguments: {} }).then(
        () => true,
        (error: { code?: number }) => error.code !== 401,
      ),
  };
  for (const [door, asks] of Object.entries(isIn)) {
    while (await asks()) expect(Date.now() - sinceMs, door).toBeLessThan(limitMs);
  }
  for (const subscriber of subscribers) await subscriber.ended;
  expect(Date.now() - sinceMs).toBeLessThan(limitMs + 500);
  await mcp.close();
}

it('by its revocation', async () => {
  const pad = await createScratchpad(owner);
  const token = await createToken(owner, pad);
  const agent = await arrive(token.secret, pad);
  const since = Date.now();
  await owner.run(revokeTokenDocument, { id: token.id });
  await untilShutOut(agent, pad, since);
  for (const { errors } of agent.subscribers) {
    expect(errors.map(({ extensions }) => extensions?.code)).toEqual(['UNAUTHENTICATED']);
  }
});

it('by its expiry, and not before', async () => {
  const pad = await createScratchpad(owner);
  const expiresAt = new Date(Date.now() + 10_000);
  const { secret } = await createToken(owner, pad, 'WORKER', { expiresAt });
  const agent = await arrive(secret, pad);
  for (;;) {
    const { status } = await agent.rest.send('GET', `/v1/scratchpads/${pad}/content`);
    const areOver = agent.subscribers.map(({ isOver }) => isOver);
    // What came back in time was answered in time.
    if (Date.now() >= expiresAt.getTime()) break;
    expect([status, ...areOver]).toEqual([200, false, false]);
  }
  await untilShutOut(agent, pad, expiresAt.getTime());
  for (const { errors } of agent.subscribers) {
    expect(errors.map(({ extensions }) => extensions?.code)).toEqual(['UNAUTHENTICATED']);
  }
});

it('by the end of its pad', async () => {
  const pad = await createScratchpad(owner);
  const { secret } = await createToken(owner, pad);
  const agent = await arrive(secret, pad);
  await appendEntry(owner, pad, 'the last one');
  const since = Date.now();
  await owner.run('mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }', {
    id: pad,
  });
  await untilShutOut(agent, pad, since);
  // The token goes with the row, but what was opened with it is told the end of its pad.
  for (const { events, errors } of agent.subscribers) {
    const told = [...events.map(({ operation }) => operation), ...errors.map(({ extensions }) => extensions?.code)];
    expect(told).toEqual(['APPEND', 'APPEND', 'APPEND', 'DELETE']);
  }
  expect(await cluster.psql('SELECT 1 FROM agent_tokens WHERE scratchpad_id = $1', [pad])).toEqual([]);
});
