// What the client sends again and what it does not, over real HTTP against a server that fails as a test says.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { startLoopbackServer, type LoopbackServer } from '../../../script/demo.d/loopback-server.js';
import { createClient, ScratchpadError, type Client, type ClientOptions } from '../../../src/client/index.js';

interface Asked {
  query: string;
  variables: Record<string, unknown>;
}
type Answer = (response: ServerResponse) => void;

let server: LoopbackServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** Requests get the answers in turn, and the last one again and again. */
async function serve(answers: Answer[], options: Partial<ClientOptions> = {}) {
  const asked: (Asked & { at: number; authorization: string | undefined })[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const { authorization } = request.headers;
    asked.push({ ...(JSON.parse(text) as Asked), at: performance.now(), authorization });
    (answers[asked.length - 1] ?? answers.at(-1))?.(response);
  };
  server = await startLoopbackServer((request, response) => void handle(request, response));
  const client: Client = createClient({ url: server.url, apiKey: 'sk-secret-key', ...options });
  return { client, asked };
}

const json = (body: object, status = 200, headers: Record<string, string> = {}): Answer => {
  return (response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
};
const refuse = (code: string, more: object = {}, headers: Record<string, string> = {}): Answer =>
  json({ errors: [{ message: `${code}!`, extensions: { code, ...more } }] }, 200, headers);
const html =
  (status: number): Answer =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>No</h1>');
const cutOff: Answer = (response) => response.destroy();
const cutInBody: Answer = (response) =>
  void response
    .writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
    .write('{"data": {', () => response.destroy());
const nothing: Answer = () => {};
const content = json({ data: { scratchpad: { content: { text: 'a', version: '1', updatedAt: null } } } });
const entry = json({
  data: { appendScratchpadEntry: { entry: { id: 'e', content: 'a', author: null, runId: null, createdAt: '' } } },
});
const set = json({ data: { setScratchpadContent: { content: { text: 'a', version: '1', updatedAt: null } } } });

const failure = async (call: Promise<unknown>): Promise<ScratchpadError> => {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ScratchpadError);
  return error as ScratchpadError;
};

describe('a query', () => {
  it.each([
    ['a connection that is cut', cutOff],
    ['an answer that is cut', cutInBody],
    ['a gateway in trouble', html(502)],
    ['UNAVAILABLE', refuse('UNAVAILABLE')],
    ['RATE_LIMITED', refuse('RATE_LIMITED')],
    ['a proxy that is full', html(503)],
  ])('is sent again after %s', async (_, answer) => {
    const { client, asked } = await serve([answer, content]);
    expect(await client.scratchpads.getContent('sp_1')).toEqual({ text: 'a', version: '1', updatedAt: null });
    expect(asked).toHaveLength(2);
  });

  it.each([
    ['INTERNAL', refuse('INTERNAL', { requestId: 'r-1' }), { code: 'INTERNAL', requestId: 'r-1' }],
    ['NOT_FOUND', refuse('NOT_FOUND'), { code: 'NOT_FOUND' }],
    ['an address where something else is', html(404), { code: 'CONNECTION_FAILED', status: 404 }],
    ['a guard in front of the server', html(401), { code: 'UNAUTHENTICATED', status: 401 }],
    ['a part of the answer that failed', json({ data: {}, errors: [{ message: 'm', extensions: {} }] }), {}],
    ['JSON of somebody else', json({ ok: true }, 418), { code: 'CONNECTION_FAILED' }],
  ])('is not sent again after %s', async (_, answer, expected) => {
    const { client, asked } = await serve([answer]);
    expect(await failure(client.scratchpads.getContent('sp_1'))).toMatchObject(expected);
    expect(asked).toHaveLength(1);
  });

  it('is given up after the retries, with the last error', async () => {
    const { client, asked } = await serve([cutOff, cutOff, html(502)], { retries: 2 });
    expect(await failure(client.threads.list())).toMatchObject({ code: 'CONNECTION_FAILED', status: 502 });
    expect(asked).toHaveLength(3);
  });

  it('waits longer each time', async () => {
    const { client, asked } = await serve([cutOff], { retries: 3 });
    await failure(client.threads.list());
    const waits = asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0));
    [125, 250, 500].forEach((least, index) => expect(waits[index]).toBeGreaterThan(least - 5));
  });

  it('times out, and is sent again', async () => {
    const { client, asked } = await serve([nothing, content], { timeoutMs: 300 });
    await client.scratchpads.getContent('sp_1');
    expect(asked).toHaveLength(2);
  });

  it('fails as TIMEOUT when no attempt is answered', async () => {
    const { client } = await serve([nothing], { timeoutMs: 200, retries: 1 });
    expect(await failure(client.threads.list())).toMatchObject({ code: 'TIMEOUT' });
  });

  it.each([
    ['in the error', refuse('RATE_LIMITED', { retryAfterSeconds: 1 })],
    ['in a header', refuse('UNAVAILABLE', {}, { 'retry-after': '1' })],
  ])('comes back when the server says so %s, and not before', async (_, answer) => {
    const { client, asked } = await serve([answer, content]);
    await client.scratchpads.getContent('sp_1');
    expect((asked[1]?.at ?? 0) - (asked[0]?.at ?? 0)).toBeGreaterThan(995);
  });

  it('does not wait for a server that asks for more than a minute, and tells how long', async () => {
    const later = new Date(Date.now() + 3_600_000).toUTCString();
    const { client, asked } = await serve([refuse('RATE_LIMITED', {}, { 'retry-after': later })]);
    const { retryAfterMs } = await failure(client.threads.list());
    expect(retryAfterMs).toBeGreaterThan(3_500_000);
    expect(asked).toHaveLength(1);
  });

  it.each([
    ['while it waits for the answer', [nothing]],
    ['while it waits to try again', [refuse('RATE_LIMITED', { retryAfterSeconds: 30 })]],
  ])('is aborted %s', async (_, answers) => {
    const { client, asked } = await serve(answers);
    const stop = new AbortController();
    const call = client.threads.list({ signal: stop.signal });
    while (asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    setTimeout(() => stop.abort(new Error('enough')), 50);
    const begin = performance.now();
    expect(await failure(call)).toMatchObject({ code: 'ABORTED', cause: new Error('enough') });
    expect(performance.now() - begin).toBeLessThan(5000);
  });
});

describe('a write', () => {
  it('is an append with one and the same key of the client’s own, however often it is sent', async () => {
    const { client, asked } = await serve([cutOff, cutInBody, refuse('UNAVAILABLE'), entry]);
    await client.scratchpads.appendEntry('sp_1', { content: 'a' });
    const keys = asked.map(({ variables }) => variables['idempotencyKey']);
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(1);
    await client.scratchpads.appendEntry('sp_1', { content: 'a' });
    const next = asked.at(-1)?.variables['idempotencyKey'];
    expect(next).toMatch(/^[\da-f]{32}$/);
    expect(keys).not.toContain(next);
    await client.scratchpads.appendEntry('sp_1', { content: 'a', idempotencyKey: 'mine' });
    expect(asked.at(-1)?.variables['idempotencyKey']).toBe('mine');
  });

  it('of a content is sent again only with a key', async () => {
    const { client, asked } = await serve([cutOff, set]);
    await client.scratchpads.setContent('sp_1', { text: 'a', idempotencyKey: 'k' });
    expect(asked).toHaveLength(2);
    await server?.close();
    const without = await serve([cutOff, set]);
    expect(await failure(without.client.scratchpads.setContent('sp_1', { text: 'a' }))).toMatchObject({
      code: 'CONNECTION_FAILED',
    });
    expect(without.asked).toHaveLength(1);
  });

  it('of any other kind is sent once', async () => {
    const writes: ((client: Client) => Promise<unknown>)[] = [
      ({ threads }) => threads.create(),
      ({ threads }) => threads.update('t', { metaData: {} }),
      ({ threads }) => threads.delete('t'),
      ({ scratchpads }) => scratchpads.create({ threadId: 't' }),
      ({ scratchpads }) => scratchpads.update('sp', { metaData: {} }),
      ({ scratchpads }) => scratchpads.delete('sp'),
      ({ scratchpads }) => scratchpads.clearContent('sp'),
      ({ scratchpads }) => scratchpads.clearEntries('sp'),
      ({ scratchpads }) => scratchpads.clear('sp'),
      ({ research }) => research.start({ question: 'q', threadId: 't' }),
      ({ research }) => research.cancel('run'),
      ({ request }) => request('mutation { createThread(input: {}) { thread { id } } }'),
    ];
    const { client, asked } = await serve([cutOff]);
    for (const write of writes) expect((await failure(write(client))).code).toBe('CONNECTION_FAILED');
    expect(asked).toHaveLength(writes.length);
  });
});

describe('a client', () => {
  it('uses the fetch that it is given, and sends its key in the header alone', async () => {
    const urls: string[] = [];
    const given: typeof fetch = (url, init) => {
      urls.push(url instanceof Request ? url.url : url.toString());
      return fetch(url, init);
    };
    const { client, asked } = await serve([content], { fetch: given, apiKey: ' sk-secret-key\n' });
    await client.scratchpads.getContent('sp_1');
    expect(urls).toEqual([`${server?.url}/graphql`]);
    expect(asked[0]?.authorization).toBe('Bearer sk-secret-key');
    expect(JSON.stringify(client)).not.toContain('sk-secret');
  });

  it('refuses a key that does not fit into a header, without repeating it', () => {
    for (const apiKey of ['', 'sk-sécret', 'sk-secret\r\nx: y']) {
      expect(() => createClient({ url: 'http://host', apiKey })).toThrow(/^(?!.*s.cret).*ASCII/);
    }
  });

  it('lets go of a signal that lives longer than its calls', async () => {
    const { client } = await serve([content]);
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...parameters: Parameters<typeof add>) => {
      listeners += 1;
      add(...parameters);
    };
    signal.removeEventListener = (...parameters: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...parameters);
    };
    for (let call = 0; call < 5; call += 1) await client.scratchpads.getContent('sp_1', { signal });
    expect(listeners).toBe(0);
  });
});
