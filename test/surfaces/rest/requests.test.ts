// What may be sent to REST and what is refused, and the document that says so.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createId } from '../../../src/shared/ids.js';
import { createRestClient, newPad, newThread, type RestClient } from '../../support/rest-client.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

interface Operation {
  operationId: string;
  responses: Record<string, { content: Record<string, unknown> }>;
  requestBody?: { content: Record<string, { schema: object }> };
}
interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, { additionalProperties?: unknown; properties?: Record<string, unknown> }> };
}

let service: Service;
let alice: Tenant;
let rest: RestClient;
let document: Document;

beforeAll(async () => {
  service = await startService({ environment: { MAX_BODY_BYTES: '100000', CORS_ORIGINS: 'https://app.example' } });
  alice = await service.createTenant('Alice');
  rest = createRestClient(service.url, alice.secret);
  document = await createRestClient(service.url, undefined).take<Document>('GET', '/v1/openapi.json');
});
afterAll(() => service.close());

describe('the document', () => {
  it('is OpenAPI 3.1, is given without a key, and has every route of the specification', () => {
    expect(document.openapi).toBe('3.1.0');
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(operations.sort()).toEqual(
      [
        'POST /v1/threads',
        'GET /v1/threads/{thread_id}',
        'PUT /v1/threads/{thread_id}',
        'DELETE /v1/threads/{thread_id}',
        'PUT /v1/threads/{thread_id}/metadata',
        'GET /v1/threads/user/{user_id}',
        'GET /v1/threads/user/{user_id}/records',
        'POST /v1/messages',
        'GET /v1/threads/{thread_id}/messages',
        'GET /v1/messages/{message_id}',
        'DELETE /v1/messages/{message_id}',
        'POST /v1/scratchpads',
        'GET /v1/scratchpads',
        'GET /v1/scratchpads/{scratchpad_id}',
        'GET /v1/threads/{thread_id}/scratchpad',
        'PATCH /v1/scratchpads/{scratchpad_id}',
        'DELETE /v1/scratchpads/{scratchpad_id}',
        'GET /v1/scratchpads/{scratchpad_id}/content',
        'PUT /v1/scratchpads/{scratchpad_id}/content',
        'DELETE /v1/scratchpads/{scratchpad_id}/content',
        'POST /v1/scratchpads/{scratchpad_id}/entries',
        'GET /v1/scratchpads/{scratchpad_id}/entries',
        'DELETE /v1/scratchpads/{scratchpad_id}/entries',
        'POST /v1/scratchpads/{scratchpad_id}/clear',
        'POST /v1/tools/scratchpad/read',
        'POST /v1/tools/scratchpad/update',
        'POST /v1/tools/scratchpad/append',
      ].sort(),
    );
  });

  it('describes objects that are closed, and no input that names an owner or the id of a scratchpad', () => {
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      expect(schema.additionalProperties, name).toBe(false);
      if (!/(Create|Update|ToolRead|ToolAppend)$/.test(name)) continue;
      const names = Object.keys(schema.properties ?? {});
      expect(
        names.filter((field) => /owner|user|tenant|scratchpad_id/.test(field)),
        name,
      ).toEqual([]);
    }
  });

  it('names every operation once', () => {
    const ids = Object.values(document.paths).flatMap((item) => Object.values(item).map((one) => one.operationId));
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('every operation', () => {
  const each = (): { method: string; path: string; operation: Operation }[] =>
    Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path: path.replaceAll(/\{\w+\}/g, 'x'),
        operation,
      })),
    );

  it('asks for a key before it looks at anything else', async () => {
    for (const secret of [undefined, 'spk_unknown-key-of-nobody-at-all']) {
      for (const { method, path } of each()) {
        const body = method === 'GET' || method === 'DELETE' ? undefined : '{ broken';
        const answer = await createRestClient(service.url, secret).send(method, path, { body });
        expect([answer.status, answer.body.code], `${method} ${path}`).toEqual([401, 'UNAUTHENTICATED']);
        expect(answer.headers.get('www-authenticate')).toContain('Bearer');
      }
    }
    expect((await rest.send('GET', '/v1/scratchpads', { headers: { authorization: 'Bearer other' } })).status).toBe(
      401,
    );
    const bearer = { authorization: `Bearer ${alice.secret}` };
    const byBearer = await createRestClient(service.url, undefined).send('GET', '/v1/scratchpads', { headers: bearer });
    expect(byBearer.status).toBe(200);
  });

  it('with a body refuses every field that it does not know', async () => {
    const unknown = ['owner_id', 'user_id', 'tenant_id', 'id', 'scratchpad_id', 'ownerId', 'participants', '__proto__'];
    for (const { method, path, operation } of each()) {
      // The metadata themselves may have any field.
      if (!operation.requestBody || operation.operationId === 'replaceThreadMetaData') continue;
      for (const field of unknown) {
        const answer = await rest.send(method, path, { body: `{"${field}":"user_x"}` });
        expect([answer.status, answer.body.code], `${method} ${path} ${field}`).toEqual([422, 'INVALID_INPUT']);
        expect(answer.text, `${method} ${path}`).toContain(`\\"${field}\\"`);
      }
    }
  });

  it.each([
    ['no JSON', '{"meta_data"'],
    ['two documents', '{} {}'],
    ['an array', '[]'],
    ['a string', '"x"'],
    ['null', 'null'],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['a deep nest', `${'['.repeat(40_000)}${']'.repeat(40_000)}`],
  ])('with a body refuses %s', async (_what, body) => {
    for (const { method, path, operation } of each().filter((one) => one.operation.requestBody)) {
      const answer = await rest.send(method, path, { body });
      expect([answer.status, answer.body.code], operation.operationId).toEqual([422, 'INVALID_INPUT']);
      expect(answer.headers.get('content-type')).toBe('application/problem+json');
    }
  });

  it('with a body takes none for an empty object only where every field is optional', async () => {
    const optional = ['createThread', 'updateThread', 'updateScratchpad', 'clearScratchpad'];
    for (const { method, path, operation } of each().filter((one) => one.operation.requestBody)) {
      for (const headers of [undefined, { 'content-type': 'application/json' }]) {
        const { status } = await rest.send(method, path, { headers });
        const isTaken = status === 201 || status === 404;
        expect(isTaken, `${operation.operationId} ${status}`).toBe(optional.includes(operation.operationId));
      }
    }
  });

  it('with a body refuses other types than JSON, and more than the server takes', async () => {
    for (const { method, path, operation } of each().filter((one) => one.operation.requestBody)) {
      const refused: Record<string, string>[] = [
        { 'content-type': 'text/plain' },
        { 'content-type': 'application/x-www-form-urlencoded' },
        { 'content-type': 'multipart/form-data; boundary=x' },
        { 'content-type': 'application/vnd.api+json' },
        { 'content-type': 'application/json; charset=latin1' },
        { 'content-type': '' },
        { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      ];
      for (const headers of refused) {
        const answer = await rest.send(method, path, { body: Buffer.from('{}'), headers });
        const what = `${operation.operationId} ${JSON.stringify(headers)}`;
        expect([answer.status, answer.body.code], what).toEqual([415, 'INVALID_INPUT']);
      }
      const body = { content: 'x'.repeat(100_000) };
      const large = await rest.send(method, path, { body });
      expect([large.status, large.body.code], operation.operationId).toEqual([413, 'LIMIT_EXCEEDED']);
    }
  });

  it('answers with statuses that its document has', async () => {
    const common = ['401', '403', '422', '429', '500', '503'];
    for (const { operation } of each()) {
      const expected = operation.requestBody ? [...common, '413', '415'] : common;
      expect(Object.keys(operation.responses), operation.operationId).toEqual(expect.arrayContaining(expected));
    }
  });

  it('refuses what it would have to ignore: query parameters that it does not have, conditions on writes', async () => {
    const padId = await newPad(rest);
    await rest.take('POST', `/v1/scratchpads/${padId}/entries`, { content: 'kept' });
    for (const { method, path, operation } of each()) {
      const target = path.replace('/x', `/${padId}`);
      const body = operation.requestBody && {};
      for (const query of ['owner_id=user_x', 'before=2026-01-01', 'LIMIT=1', '__proto__=1', '%00', 'a%5B%5D=1']) {
        const answer = await rest.send(method, `${target}?${query}`, { body });
        expect([answer.status, answer.body.code], `${method} ${target}?${query}`).toEqual([422, 'INVALID_INPUT']);
      }
      if (method === 'GET') continue;
      for (const header of ['if-match', 'if-none-match', 'if-unmodified-since']) {
        if (operation.operationId === 'setContent' && header === 'if-match') continue;
        const answer = await rest.send(method, target, { body, headers: { [header]: '"0"' } });
        expect([answer.status, answer.body.code], `${method} ${target} ${header}`).toEqual([422, 'INVALID_INPUT']);
        expect(answer.text).toContain(header);
      }
    }
    const { data } = await rest.take<{ data: object[] }>('GET', `/v1/scratchpads/${padId}/entries`);
    expect(data).toHaveLength(1);
  });

  it('is not for the administrator', async () => {
    const administrator = createRestClient(service.url, 'administrator-secret-of-the-tests');
    for (const path of ['/v1/scratchpads', '/v1/threads/thread_x', '/v1/messages/msg_x', '/v1/threads/user/user_x']) {
      expect((await administrator.send('GET', path)).status, path).toBe(403);
    }
  });
});

describe('a problem', () => {
  it('says what is wrong where, in one document with the request’s id', async () => {
    const answer = await rest.send('POST', '/v1/threads', {
      body: { meta_data: [], owner_id: 'user_x' },
      headers: { 'x-request-id': 'my-request' },
    });
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(answer.headers.get('x-request-id')).toBe('my-request');
    expect(answer.body).toEqual({
      type: 'urn:problem-type:invalid-input',
      title: 'Invalid input',
      status: 422,
      detail: expect.stringContaining('meta_data: must be a JSON object'),
      code: 'INVALID_INPUT',
      request_id: 'my-request',
      issues: [
        { path: ['meta_data'], message: expect.any(String) },
        { path: [], message: expect.stringContaining('owner_id') },
      ],
    });
  });

  it('is the answer to paths and methods that do not exist', async () => {
    for (const path of ['/v1', '/v1/', '/v1/nothing', '/v1/scratchpads/', '/v1/scratchpads/ensure/x/y', '/v1/%ff']) {
      const answer = await rest.send('GET', path);
      expect([answer.status, answer.body.code], path).toEqual([404, 'NOT_FOUND']);
    }
    const refused = await rest.send('PATCH', '/v1/threads/thread_x');
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, PUT, DELETE, HEAD']);
    // fetch does not send TRACE.
    const outgoing = httpRequest(`${service.url}/v1/threads`, { method: 'TRACE' }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(405);
  });

  it('is the answer to ids that would lead elsewhere, and an id may be encoded', async () => {
    const threadId = await newThread(rest);
    const padId = await newPad(rest, threadId);
    await rest.take('PUT', `/v1/scratchpads/${padId}/content`, { content: 'kept' });
    // fetch would resolve these itself.
    const ask = async (method: string, path: string): Promise<[status: number | undefined, body: string]> => {
      const { hostname, port } = new URL(service.url);
      const outgoing = httpRequest({ hostname, port, method, path, headers: { 'x-api-key': alice.secret } }).end();
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      let body = '';
      for await (const chunk of response.setEncoding('utf8')) body += String(chunk);
      return [response.statusCode, body];
    };
    for (const [method, path] of [
      ['GET', '/v1/threads/%2e%2e/scratchpad'],
      ['GET', '/v1/threads/user/%2e%2e/records'],
      ['GET', `/v1/threads/user/%2E./${threadId}`],
      ['DELETE', `/v1/threads/%2e%2e`],
      ['DELETE', `/v1/scratchpads/${padId}/%2e/content`],
      ['DELETE', `/v1/scratchpads/${padId}\\content`],
      ['DELETE', `/v1/scratchpads/x\\..\\${padId}`],
      ['DELETE', `/v1/scratchpads/${padId}#/content`],
      ['GET', `/v1/scratchpads/${padId}%2fcontent`],
      ['GET', `/v1/scratchpads/${padId}%00`],
      ['GET', `/v1/scratchpads/${padId}%20`],
      ['GET', `/v1/scratchpads/${padId}%`],
      ['GET', `/v1/scratchpads/${padId}/`],
      ['GET', `/v1//scratchpads/${padId}`],
      ['GET', `/v1/scratchpads/%ff%fe`],
    ] as const) {
      const [status, body] = await ask(method, path);
      expect([status, body], `${method} ${path}`).toEqual([404, expect.stringContaining('"code":"NOT_FOUND"')]);
    }
    const [status, body] = await ask('GET', `/v1/scratchpads/${padId.replace('_', '%5F')}/content`);
    expect([status, body]).toEqual([200, expect.stringContaining('kept')]);
  });

  it('ensures nothing: there is no public way to', async () => {
    const threadId = await newThread(rest);
    for (const [method, path] of [
      ['POST', `/v1/threads/${threadId}/scratchpad`],
      ['PUT', `/v1/threads/${threadId}/scratchpad`],
      ['POST', '/v1/scratchpads/ensure'],
    ] as const) {
      expect((await rest.send(method, path, { body: { thread_id: threadId } })).status, path).toBe(405);
    }
    expect((await rest.send('GET', `/v1/threads/${threadId}/scratchpad`)).status).toBe(404);
  });
});

describe('queries', () => {
  it('take a whole number from 1 to 100 and a cursor of the same list, and nothing else', async () => {
    const padId = await newPad(rest);
    const paths = ['/v1/scratchpads', `/v1/scratchpads/${padId}/entries`, `/v1/threads/user/${alice.userId}`];
    for (const path of paths) {
      for (const query of [
        'limit=0',
        'limit=101',
        'limit=-1',
        'limit=1.5',
        'limit=1e1',
        'limit=',
        'limit=1&limit=2',
        'after=x',
        'after=',
        'offset=1',
        'owner_id=x',
      ]) {
        const answer = await rest.send('GET', `${path}?${query}`);
        expect([answer.status, answer.body.code], `${path}?${query}`).toEqual([422, 'INVALID_INPUT']);
      }
    }
    const other = await newPad(rest);
    for (const id of [padId, other]) {
      for (const content of ['a', 'b']) await rest.take('POST', `/v1/scratchpads/${id}/entries`, { content });
    }
    const link = (await rest.send('GET', `/v1/scratchpads/${padId}/entries?limit=1`)).headers.get('link') ?? '';
    const after = /after=([^>&]+)/.exec(link)?.[1];
    expect((await rest.send('GET', `/v1/scratchpads/${other}/entries?after=${after}`)).status).toBe(422);
    expect((await rest.send('GET', `/v1/scratchpads?after=${after}`)).status).toBe(422);
    for (const key of ['sp_\u0000', '\u0000', '', 'sp_x', createId('thread'), 7, null]) {
      const forged = Buffer.from(JSON.stringify(['scratchpad', '', key])).toString('base64url');
      expect((await rest.send('GET', `/v1/scratchpads?after=${forged}`)).status, String(key)).toBe(422);
    }
  });
});

describe('metadata', () => {
  it.each([
    ['a key that would be lost', '{"__proto__": {"admin": true}}'],
    ['NUL in a text', '{"a": "\\u0000"}'],
    ['half a surrogate pair in a key', '{"\\ud800": 1}'],
    ['Infinity', '{"a": 1e999}'],
    ['a deep nest', `{"a": ${'['.repeat(40)}${']'.repeat(40)}}`],
    ['too much', JSON.stringify({ a: 'x'.repeat(65_536) })],
  ])('is refused with %s, wherever it is given', async (_what, metaData) => {
    const [threadId, padId] = [await newThread(rest), await newPad(rest)];
    const attempts: [string, string, string][] = [
      ['POST', '/v1/threads', `{"meta_data": ${metaData}}`],
      ['PUT', `/v1/threads/${threadId}`, `{"meta_data": ${metaData}}`],
      ['PUT', `/v1/threads/${threadId}/metadata`, metaData],
      ['PATCH', `/v1/scratchpads/${padId}`, `{"meta_data": ${metaData}}`],
      ['POST', '/v1/messages', `{"thread_id": "${threadId}", "content": "x", "meta_data": ${metaData}}`],
    ];
    for (const [method, path, body] of attempts) {
      const answer = await rest.send(method, path, { body });
      expect([answer.status, answer.body.code], `${method} ${path}`).toEqual([422, 'INVALID_INPUT']);
    }
  });

  it('comes back exactly as it was given', async () => {
    const metaData = { '': '', a: [1, -0.5, 1e21, null, true, { b: [] }], '🜂': '∆', constructor: 'x', 'a b/c~': {} };
    const { id } = await rest.take<{ id: string }>('POST', '/v1/threads', { meta_data: metaData });
    expect((await rest.take<{ meta_data: object }>('GET', `/v1/threads/${id}`)).meta_data).toEqual(metaData);
  });
});

describe('pages of other origins', () => {
  it('may not call, unless they are configured', async () => {
    const refused = await rest.send('GET', '/v1/scratchpads', { headers: { origin: 'https://evil.example' } });
    expect([refused.status, refused.body.code]).toEqual([403, 'FORBIDDEN']);
    const allowed = await rest.send('GET', '/v1/scratchpads', { headers: { origin: 'https://app.example' } });
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([200, 'https://app.example']);
    expect(allowed.headers.get('access-control-expose-headers')).toMatch(/etag.*link|link.*etag/i);
    const asked = { origin: 'https://app.example', 'access-control-request-method': 'PUT' };
    const { status, headers } = await rest.send('OPTIONS', '/v1/scratchpads/x/content', { headers: asked });
    expect([status, headers.get('access-control-allow-methods')]).toEqual([204, 'GET, POST, PUT, PATCH, DELETE']);
    for (const name of ['authorization', 'content-type', 'if-match', 'if-none-match', 'idempotency-key']) {
      expect(headers.get('access-control-allow-headers')).toContain(name);
    }
  });
});
