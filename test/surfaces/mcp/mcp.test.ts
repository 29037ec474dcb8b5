// MCP as agents use it: the official client, one token, the tools of its role, and no way to another pad.
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  appendEntry,
  createScratchpad,
  createToken,
  readLedger,
  readState,
  revokeTokenDocument,
  setContent,
  type AgentRole,
} from '../../support/operations.js';
import { administratorSecret, startService, type Service, type Tenant } from '../../support/service.js';
import { subscribe } from '../../support/subscriber.js';

let service: Service;
let alice: Tenant;
let padId: string;
const clients: Client[] = [];

beforeAll(async () => {
  service = await startService({ environment: { MAX_ENTRY_BYTES: '1000', MAX_BODY_BYTES: '2000000' } });
  alice = await service.createTenant('Alice');
  padId = await createScratchpad(alice.client);
});
afterAll(async () => {
  for (const client of clients) await client.close();
  await service.close();
});

async function connect(secret: string): Promise<Client> {
  const client = new Client({ name: 'a test', version: '1.0.0' });
  const headers = { authorization: `Bearer ${secret}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit: { headers } }));
  clients.push(client);
  return client;
}

const connectAs = async (role: AgentRole, scratchpadId = padId): Promise<Client> =>
  connect((await createToken(alice.client, scratchpadId, role, { name: `Agent ${role}` })).secret);

interface Called {
  text: string;
  isError: boolean;
}

async function call(client: Client, name: string, args?: Record<string, unknown>): Promise<Called> {
  const { content, isError } = await client.callTool({ name, ...(args && { arguments: args }) });
  const [first] = content as { type: string; text: string }[];
  return { text: first?.text ?? '', isError: isError === true };
}

async function callToFail(
  client: Client,
  name: string,
  args?: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { text, isError } = await call(client, name, args);
  if (!isError) throw new Error(`expected an error: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/** One HTTP request as it is. */
const post = (body: string, headers: Record<string, string>, path = '/mcp'): Promise<Response> =>
  fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body,
  });
const listRequest = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });

describe('an agent', () => {
  it.each([
    ['SUPERVISOR', ['read_scratchpad', 'update_scratchpad', 'append_scratchpad']],
    ['WORKER', ['read_scratchpad', 'append_scratchpad']],
    ['OBSERVER', ['read_scratchpad']],
  ] as const)('that is %s finds exactly its tools, and no argument that names a pad', async (role, names) => {
    const client = await connectAs(role);
    expect(client.getInstructions()).toContain('scratchpad');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(names);
    const taken = { read_scratchpad: [], update_scratchpad: ['content'], append_scratchpad: ['note'] };
    for (const { name, inputSchema } of tools) {
      expect(Object.keys(inputSchema.properties ?? {})).toEqual(taken[name as keyof typeof taken]);
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
    }
  });

  it('reads, replaces and appends, as everybody else sees at once', async () => {
    const pad = await createScratchpad(alice.client);
    const [supervisor, worker] = [await connectAs('SUPERVISOR', pad), await connectAs('WORKER', pad)];
    const listener = await subscribe({
      transport: 'WebSocket',
      url: service.url,
      secret: alice.secret,
      scratchpadId: pad,
      after: '',
    });
    expect(await call(supervisor, 'update_scratchpad', { content: '# The plan' })).toMatchObject({ isError: false });
    await call(worker, 'append_scratchpad', { note: '[VERIFIED] 384,400 km' });
    const read = await call(worker, 'read_scratchpad');
    const { scratchpad } = await alice.client.run<{ scratchpad: { formattedView: string } }>(
      'query ($id: ID!) { scratchpad(id: $id) { formattedView } }',
      { id: pad },
    );
    expect(read).toEqual({ text: scratchpad.formattedView, isError: false });
    expect(read.text).toContain('| # The plan');
    expect((await readLedger(alice.client, pad)).map(({ author, content }) => [author, content])).toEqual([
      ['Agent WORKER', '[VERIFIED] 384,400 km'],
    ]);
    await listener.received(2);
    listener.close();
    expect(listener.events.map(({ operation }) => operation).sort()).toEqual(['APPEND', 'UPDATE']);
  });

  it('writes to the pad of its token alone, whatever it is told', async () => {
    const [pad, other] = [await createScratchpad(alice.client), await createScratchpad(alice.client)];
    const client = await connectAs('SUPERVISOR', pad);
    for (const extra of [
      { scratchpad_id: other },
      { scratchpadId: other },
      { thread_id: 'thread_x' },
      { user_id: alice.userId },
    ]) {
      for (const [name, args] of [
        ['read_scratchpad', {}],
        ['update_scratchpad', { content: 'x' }],
        ['append_scratchpad', { note: 'x' }],
      ] as const) {
        const error = await callToFail(client, name, { ...args, ...extra });
        expect(error, `${name} ${JSON.stringify(extra)}`).toMatchObject({ is_error: true, code: 'INVALID_INPUT' });
      }
    }
    for (const id of [pad, other]) {
      expect(await readState(alice.client, id)).toMatchObject({ content: { text: '' }, entryCount: 0 });
    }
  });

  it('is refused by its role as a result that it can read, and nothing is written', async () => {
    const pad = await createScratchpad(alice.client);
    await setContent(alice.client, pad, 'the owner’s');
    const [worker, observer] = [await connectAs('WORKER', pad), await connectAs('OBSERVER', pad)];
    const attempts = [
      [worker, 'update_scratchpad', { content: 'mine' }, 'WORKER'],
      [observer, 'update_scratchpad', { content: 'mine' }, 'OBSERVER'],
      [observer, 'append_scratchpad', { note: 'mine' }, 'OBSERVER'],
    ] as const;
    for (const [client, name, args, role] of attempts) {
      const error = await callToFail(client, name, args);
      expect(error).toMatchObject({
        is_error: true,
        code: 'FORBIDDEN',
        error: expect.stringContaining(role) as string,
      });
    }
    expect(await readState(alice.client, pad)).toMatchObject({ content: { text: 'the owner’s' }, entryCount: 0 });
  });

  it('gets what goes wrong as a result with the code, and a tool that there is not as an error', async () => {
    const client = await connectAs('SUPERVISOR');
    const codes = [];
    for (const [name, args] of [
      ['append_scratchpad', { note: ' \n' }],
      ['append_scratchpad', {}],
      ['append_scratchpad', { note: 7 }],
      ['append_scratchpad', { note: 'x'.repeat(1001) }],
      ['update_scratchpad', { content: 'NUL \u0000' }],
    ] as const) {
      codes.push((await callToFail(client, name, args)).code);
    }
    expect(codes).toEqual(['INVALID_INPUT', 'INVALID_INPUT', 'INVALID_INPUT', 'LIMIT_EXCEEDED', 'INVALID_INPUT']);
    await expect(client.callTool({ name: 'delete_scratchpad' })).rejects.toMatchObject({ code: -32602 });
    await service.redis.kill();
    try {
      expect(await callToFail(client, 'read_scratchpad')).toMatchObject({ code: 'UNAVAILABLE' });
    } finally {
      await service.redis.restart();
    }
  });

  it('is let in no more once its token is revoked, or its pad is gone', async () => {
    const pad = await createScratchpad(alice.client);
    const token = await createToken(alice.client, pad);
    const client = await connect(token.secret);
    await call(client, 'read_scratchpad');
    await alice.client.run(revokeTokenDocument, { id: token.id });
    await expect(call(client, 'read_scratchpad')).rejects.toMatchObject({ code: 401 });

    const second = await connectAs('WORKER', pad);
    await alice.client.run(
      'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }',
      {
        id: pad,
      },
    );
    const outcomes: string[] = [];
    const since = Date.now();
    while (!outcomes.includes('refused')) {
      const outcome = await call(second, 'append_scratchpad', { note: 'late' }).then(
        ({ text }) => text,
        () => 'refused',
      );
      outcomes.push(outcome);
      expect(Date.now() - since).toBeLessThan(2000);
    }
    for (const outcome of outcomes.slice(0, -1)) expect(outcome).toContain('NOT_FOUND');
  });
});

describe('a request', () => {
  it('with wrong credentials is refused as 401, whatever is wrong', async () => {
    const answers = new Set<string>();
    for (const headers of [{}, { authorization: 'Bearer spa_unknown' }, { 'x-api-key': 'spk_unknown' }] as Record<
      string,
      string
    >[]) {
      const response = await post(listRequest, headers);
      expect(response.headers.get('www-authenticate')).toContain('Bearer');
      answers.add(`${response.status} ${await response.text()}`);
    }
    expect([...answers]).toEqual([expect.stringMatching(/^401 .*"code":"UNAUTHENTICATED"/)]);
  });

  it('with a key that names no pad is refused, and told why', async () => {
    for (const secret of [alice.secret, administratorSecret]) {
      const response = await post(listRequest, { authorization: `Bearer ${secret}` });
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({
        jsonrpc: '2.0',
        id: null,
        error: { message: expect.stringContaining('which scratchpad') as string, data: { code: 'FORBIDDEN' } },
      });
    }
  });

  it.each([
    ['no JSON', '{"jsonrpc', 400],
    ['a batch', `[${listRequest}]`, 400],
    ['no JSON-RPC', '{"query":"{ viewer { id } }"}', 400],
    ['null', 'null', 400],
    ['nothing', '', 400],
    ['an answer to no question', '{"jsonrpc":"2.0","id":1,"result":{}}', 202],
    ['a ping', '{"jsonrpc":"2.0","id":1,"method":"ping"}', 200],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/initialized"}', 202],
    ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"scratchpads/all"}', 200],
    ['a request', listRequest, 200],
  ])('that is %s is answered in the protocol’s way', async (_what, body, status) => {
    const { secret } = await createToken(alice.client, padId);
    const response = await post(body, { authorization: `Bearer ${secret}` });
    expect(response.status).toBe(status);
    const text = await response.text();
    expect(text === '' || (JSON.parse(text) as { jsonrpc: string }).jsonrpc === '2.0').toBe(true);
    expect(text).not.toMatch(/node_modules|\bat .+:\d+:\d+/);
  });

  it('is not answered with GET and DELETE, below the path, or for a page of a foreign origin', async () => {
    const { secret } = await createToken(alice.client, padId);
    const headers = { authorization: `Bearer ${secret}`, accept: 'text/event-stream' };
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const response = await fetch(`${service.url}/mcp`, { method, headers });
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    }
    expect((await post(listRequest, headers, '/mcp/other')).status).toBe(404);
    expect((await post(listRequest, { ...headers, origin: 'https://elsewhere.example' })).status).toBe(403);
  });

  it.each([
    ['of no version, as the first one is', {}, 200],
    ['of a version that is spoken', { 'mcp-protocol-version': '2025-06-18' }, 200],
    ['of a version that nobody speaks', { 'mcp-protocol-version': '1999-01-01' }, 400],
    ['of a session, which there is none of', { 'mcp-session-id': 'a-session' }, 200],
    ['that takes anything, as curl does', { accept: '*/*' }, 200],
    ['that takes JSON alone', { accept: 'application/json' }, 200],
    ['that takes no JSON', { accept: 'text/event-stream' }, 406],
    ['that is sent as text', { 'content-type': 'text/plain' }, 415],
    ['in another alphabet', { 'content-type': 'application/json; charset=utf-16' }, 415],
    ['that is compressed', { 'content-encoding': 'gzip' }, 415],
  ] as [string, Record<string, string>, number][])(
    '%s is answered in the protocol’s way',
    async (_what, more, status) => {
      const { secret } = await createToken(alice.client, padId);
      const response = await post(listRequest, { authorization: `Bearer ${secret}`, ...more });
      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toContain('application/json');
      expect(response.headers.get('mcp-session-id')).toBeNull();
      expect(((await response.json()) as { jsonrpc: string }).jsonrpc).toBe('2.0');
    },
  );

  it.each([
    ['tools/call', undefined, ['params']],
    ['tools/call', { name: 7 }, ['params', 'name']],
    ['tools/call', { name: 'read_scratchpad', arguments: 'none' }, ['params', 'arguments']],
    ['tools/list', { cursor: 7 }, ['params', 'cursor']],
    ['initialize', {}, ['params', 'protocolVersion']],
  ] as const)('of %s with the params %j is told what is wrong with them', async (method, params, path) => {
    const { secret } = await createToken(alice.client, padId);
    const message = JSON.stringify({ jsonrpc: '2.0', id: 'mine', method, params });
    const response = await post(message, { authorization: `Bearer ${secret}` });
    expect(response.status).toBe(200);
    const answer = (await response.json()) as { error: { message: string; data: { issues: { path: string[] }[] } } };
    expect(answer).toMatchObject({
      jsonrpc: '2.0',
      id: 'mine',
      error: { code: -32602, data: { code: 'INVALID_INPUT' } },
    });
    expect(answer.error.data.issues[0]?.path).toEqual(path);
    expect(answer.error.message).toContain(path.join('.'));
  });

  it('of a page is answered for the server’s own name alone, and not for a name that was made to lead here', async () => {
    const { secret } = await createToken(alice.client, padId);
    const { hostname, port, host } = new URL(service.url);
    const ask = async (headers: Record<string, string>): Promise<number | undefined> => {
      const outgoing = request({
        hostname,
        port,
        path: '/mcp',
        method: 'POST',
        headers: {
          authorization: `Bearer ${secret}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...headers,
        },
      });
      outgoing.end(listRequest);
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      response.resume();
      return response.statusCode;
    };
    const rebound = `evil.example:${port}`;
    expect(await ask({ host, origin: `http://${host}` })).toBe(200);
    expect(await ask({ host: `localhost:${port}`, origin: `http://localhost:${port}` })).toBe(200);
    expect(await ask({ host: rebound, origin: `http://${rebound}` })).toBe(403);
    expect(await ask({ host: rebound, origin: `http://${host}` })).toBe(403);
    expect(await ask({ host, origin: 'null' })).toBe(403);
    // A proxy on this machine passes the public name on.
    const proxied = { host: 'pads.example', origin: 'https://pads.example', 'x-forwarded-for': '192.0.2.7' };
    expect(await ask(proxied)).toBe(200);
  });

  it('that is too large is refused', async () => {
    const { secret } = await createToken(alice.client, padId);
    const response = await post(`"${'x'.repeat(3_000_000)}"`, { authorization: `Bearer ${secret}` });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { data: { code: 'LIMIT_EXCEEDED' } } });
  });
});

it('takes many calls at once from many agents, and loses none', async () => {
  const pad = await createScratchpad(alice.client);
  const workers = await Promise.all(Array.from({ length: 5 }, () => connectAs('WORKER', pad)));
  await Promise.all(
    workers.flatMap((worker, index) =>
      Array.from({ length: 10 }, (_, number) => call(worker, 'append_scratchpad', { note: `${index}/${number}` })),
    ),
  );
  await appendEntry(alice.client, pad, 'the owner’s');
  expect((await readState(alice.client, pad)).entryCount).toBe(51);
});
