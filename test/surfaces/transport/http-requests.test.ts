// What an HTTP client may send to /graphql, and what it gets for anything else.
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceSecret, bobSecret, eventually, startToyService, type ToyBody, type ToyService } from './toy-service.js';

let service: ToyService;
beforeAll(async () => {
  service = await startToyService();
});
afterAll(() => service.close());

const authorization = `Bearer ${aliceSecret}`;

async function send(
  init: RequestInit & { query?: string },
): Promise<{ status: number; headers: Headers; text: string; body: ToyBody }> {
  const response = await fetch(service.graphqlUrl + (init.query ?? ''), init);
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson ? (JSON.parse(text) as ToyBody) : {},
  };
}

const postText = (body: string | Buffer, headers: Record<string, string> = {}) =>
  send({ method: 'POST', body, headers: { authorization, 'content-type': 'application/json', ...headers } });

/** Sends exactly these bytes, and answers with everything that comes back until the server closes or is silent. */
const sendRaw = (text: string, waitMs = 3000): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(service.port, '127.0.0.1');
    let received = '';
    socket.setTimeout(waitMs, () => socket.destroy());
    socket.on('data', (chunk) => (received += chunk.toString('utf8')));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(received));
    socket.write(text);
  });

describe('a well-formed request', () => {
  test('is answered as plain JSON with status 200', async () => {
    const { status, headers, body } = await service.post('{ hello(name: "Ada") }');
    expect({ status, body }).toEqual({ status: 200, body: { data: { hello: 'Hello Ada' } } });
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('chooses the operation by its name and takes variables', async () => {
    const answer = await postText(
      JSON.stringify({
        query: 'query A { hello } query B($name: String) { hello(name: $name) }',
        operationName: 'B',
        variables: { name: '😀 مرحبا é' },
      }),
      { 'content-type': 'application/json; charset=UTF-8' },
    );
    expect(answer.body).toEqual({ data: { hello: 'Hello 😀 مرحبا é' } });
  });

  test('may be a GET when it is a query', async () => {
    const search = new URLSearchParams({
      query: 'query Q($n: String) { hello(name: $n) }',
      variables: '{"n":"Bob"}',
      operationName: 'Q',
    });
    const { status, body } = await send({ headers: { authorization }, query: `?${search.toString()}` });
    expect({ status, body }).toEqual({ status: 200, body: { data: { hello: 'Hello Bob' } } });
  });

  test('authenticates with either header, and the answer is of that key', async () => {
    const asKey = await service.post('{ me }', { headers: { authorization: '', 'x-api-key': bobSecret } });
    expect(asKey.body.data).toEqual({ me: 'user_bob' });
    const lower = await service.post('{ me }', { headers: { authorization: `bearer ${bobSecret}` } });
    expect(lower.body.data).toEqual({ me: 'user_bob' });
  });

  test('gets the media type and the statuses that it accepts', async () => {
    const modern = { accept: 'application/graphql-response+json' };
    const ok = await service.post('{ hello }', { headers: modern });
    expect([ok.status, ok.headers.get('content-type')]).toEqual([
      200,
      'application/graphql-response+json; charset=utf-8',
    ]);
    expect((await service.post('{ nothing }', { headers: modern })).status).toBe(400);
    expect((await service.post('{ nothing }')).status).toBe(200);
    expect((await service.post('{', { headers: modern })).status).toBe(400);
    expect((await service.post('query Q($n: Int!) { slow(milliseconds: $n) }', { headers: modern })).status).toBe(400);
    expect((await service.post('{ fail(code: "CONFLICT") }', { headers: modern })).status).toBe(200);
    expect(
      (
        await service.post('{ me }', {
          headers: { accept: 'application/json;q=0.2, application/graphql-response+json' },
        })
      ).headers.get('content-type'),
    ).toContain('graphql-response+json');
    expect((await service.post('{ me }', { headers: { accept: 'image/png' } })).status).toBe(406);
  });
});

describe('who is not authenticated', () => {
  const attempts: [string, Record<string, string>][] = [
    ['no key', {}],
    ['an unknown key', { authorization: 'Bearer key_of_nobody_0123456789abc' }],
    ['a key under another scheme', { authorization: `Basic ${aliceSecret}` }],
    ['two different keys', { authorization, 'x-api-key': bobSecret }],
    ['a key without its scheme', { authorization: aliceSecret }],
  ];
  test.each(attempts)('%s is answered 401 whatever is accepted', async (_name, headers) => {
    for (const accept of ['*/*', 'application/json', 'application/graphql-response+json', 'text/event-stream']) {
      const {
        status,
        headers: answered,
        body,
      } = await send({
        method: 'POST',
        body: JSON.stringify({ query: '{ hello }' }),
        headers: { 'content-type': 'application/json', accept, ...headers },
      });
      expect([status, answered.get('www-authenticate')]).toEqual([401, 'Bearer realm="scratchpad"']);
      expect(body.errors?.[0]?.extensions?.code).toBe('UNAUTHENTICATED');
      expect(body).not.toHaveProperty('data');
    }
  });

  test('learns nothing about the document: valid, invalid or no JSON are the same to the byte', async () => {
    const answers = await Promise.all(
      [
        '{"query":"{ hello }"}',
        '{"query":"{ nothing }"}',
        '{"query":"{"}',
        'not json',
        '[]',
        '{"query":"{ __schema { types { name } } }"}',
      ].map(async (body) => {
        const answer = await send({ method: 'POST', body, headers: { 'content-type': 'application/json' } });
        return `${answer.status} ${answer.text}`;
      }),
    );
    expect(new Set(answers).size).toBe(1);
  });

  test('is told 503 when the store that knows the keys is away, without its address', async () => {
    service.stores.authentication = false;
    const answer = await service.post('{ hello }');
    service.stores.authentication = true;
    expect(answer.status).toBe(503);
    expect(answer.body.errors?.[0]?.extensions?.code).toBe('UNAVAILABLE');
    expect(JSON.stringify(answer.body)).not.toContain('10.0.0.5');
  });
});

describe('what a foreign page could send without asking', () => {
  const query = '{"query":"mutation { increment }"}';
  test.each([
    ['a form', 'application/x-www-form-urlencoded', 'query=mutation%20%7B%20increment%20%7D'],
    ['plain text', 'text/plain', query],
    ['plain text that calls itself JSON', 'text/plain; application/json', query],
    ['another type that mentions JSON', 'application/jsonp', query],
    ['a GraphQL document', 'application/graphql', 'mutation { increment }'],
  ])('%s is refused with 415', async (_name, contentType, body) => {
    const answer = await postText(body, { 'content-type': contentType });
    expect(answer.status).toBe(415);
    expect(answer.body.errors?.[0]?.message).toContain('application/json');
  });

  test('a multipart form is refused with 415', async () => {
    const form = new FormData();
    form.set('operations', query);
    form.set('map', '{}');
    const answer = await send({ method: 'POST', body: form, headers: { authorization } });
    expect(answer.status).toBe(415);
  });

  test('a body without a type, in another charset or compressed is refused with 415', async () => {
    const bare = await send({ method: 'POST', body: new Blob([query]), headers: { authorization } });
    expect(bare.status).toBe(415);
    expect((await postText(query, { 'content-type': 'application/json; charset=utf-16' })).status).toBe(415);
    expect((await postText(query, { 'content-encoding': 'gzip' })).status).toBe(415);
  });

  test('a mutation by GET is refused with 405 and changes nothing', async () => {
    const before = await service.post('mutation { increment(by: 0) }');
    const answer = await send({
      headers: { authorization },
      query: `?query=${encodeURIComponent('mutation { increment }')}`,
    });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    const named = await send({
      headers: { authorization },
      query: `?operationName=M&query=${encodeURIComponent('query Q { hello } mutation M { increment }')}`,
    });
    expect(named.status).toBe(405);
    expect((await service.post('mutation { increment(by: 0) }')).body).toEqual(before.body);
  });

  test('a foreign Origin is refused and never reflected', async () => {
    for (const origin of [
      'https://evil.example',
      'null',
      'https://app.example.com.evil.example',
      'http://app.example.com',
      `http://127.0.0.1:${service.port + 1}`,
    ]) {
      const answer = await postText('{"query":"{ hello }"}', { origin });
      expect({ origin, status: answer.status }).toEqual({ origin, status: 403 });
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
      const preflight = await send({ method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } });
      expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([403, null]);
    }
  });

  test('a configured Origin may read the answer, the own one may call, and neither with credentials', async () => {
    const origin = 'https://app.example.com';
    const preflight = await send({
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe(origin);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('authorization');
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull();
    const answer = await postText('{"query":"{ hello }"}', { origin });
    expect([answer.status, answer.headers.get('access-control-allow-origin'), answer.headers.get('vary')]).toEqual([
      200,
      origin,
      'Origin',
    ]);
    const own = await postText('{"query":"{ hello }"}', { origin: service.url });
    expect([own.status, own.headers.get('access-control-allow-origin')]).toEqual([200, null]);
  });
});

describe('a malformed request', () => {
  test.each([
    ['a batch', '[{"query":"{ hello }"},{"query":"{ hello }"}]', /Batches/],
    ['broken JSON', '{"query": "{ hello }", secret-word', /not valid JSON/],
    ['a JSON string', '"query"', /JSON object/],
    ['no query', '{}', /"query"/],
    ['a query that is no string', '{"query": 7}', /"query"/],
    ['variables that are a list', '{"query":"{ hello }","variables":[1]}', /"variables"/],
    ['an operationName that is a number', '{"query":"{ hello }","operationName":1}', /"operationName"/],
    ['extensions that are text', '{"query":"{ hello }","extensions":"x"}', /"extensions"/],
    ['an empty body', '', /not valid JSON/],
  ])('%s is refused with 400 and says what is wrong', async (_name, text, message) => {
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      const { status, body } = await postText(text, { accept });
      expect(status).toBe(400);
      expect(body.errors?.[0]?.message).toMatch(message);
      expect(body.errors?.[0]?.extensions).toEqual({
        code: 'BAD_USER_INPUT',
        issues: [{ path: [], message: body.errors?.[0]?.message }],
      });
      expect(JSON.stringify(body)).not.toContain('secret-word');
    }
  });

  test('invalid UTF-8 is refused instead of being mended', async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"query":"{ hello(name: \\"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('\\") }"}'),
    ]);
    expect((await postText(bytes)).status).toBe(400);
  });

  test('huge numbers and __proto__ do no harm', async () => {
    const answer = await postText(
      '{"query":"query Q($n: String) { hello(name: $n) }","variables":{"__proto__":{"n":"x"},"constructor":1,"n":"y"},"id":1e999}',
    );
    expect(answer.body).toEqual({ data: { hello: 'Hello y' } });
    const huge = await postText(
      '{"query":"query Q($n: Int!) { slow(milliseconds: $n) }","variables":{"n":123456789012345678901234567890}}',
    );
    expect(huge.body.errors?.[0]?.extensions?.code).toBe('BAD_USER_INPUT');
    expect(({} as { n?: string }).n).toBeUndefined();
  });

  test('another method is refused with 405', async () => {
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      const answer = await send({ method, headers: { authorization } });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, POST, OPTIONS']);
    }
  });

  test('bytes that are no HTTP and headers that are too large are refused, and the server lives', async () => {
    expect(await sendRaw('\u0016\u0003\u0001 hello\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [^]*"errors":/);
    expect(await sendRaw(`GET /graphql HTTP/1.1\r\nhost: x\r\nx-long: ${'y'.repeat(40_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 [^]*"LIMIT_EXCEEDED"/,
    );
    expect((await service.post('{ hello }')).status).toBe(200);
  });

  test('an offer of HTTP/2, or of any other protocol, is ignored and the request answered', async () => {
    const body = '{"query":"{ hello }"}';
    const head = [
      'POST /graphql HTTP/1.1',
      'Host: x',
      `Authorization: ${authorization}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAEAAEAA'];
    const first = [...head, ...offer].join('\r\n');
    const second = [...head, 'Connection: close'].join('\r\n');
    const received = await sendRaw(`${first}\r\n\r\n${body}${second}\r\n\r\n${body}`);
    expect(received.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(received.match(/Hello world/g)).toHaveLength(2);
  });

  test('a target that is a whole URL is understood', async () => {
    const received = await sendRaw(`GET http://x/healthz?y HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect(received).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('an unknown path is 404', async () => {
    expect((await fetch(`${service.url}/nothing`)).status).toBe(404);
    expect((await fetch(`${service.url}/graphql/nothing`, { headers: { authorization } })).status).toBe(404);
    expect((await fetch(`${service.url}/graphqlx`)).status).toBe(404);
  });
});

describe('the size and the pace of a body', () => {
  const tooLarge = JSON.stringify({ query: '{ hello }', variables: { text: 'x'.repeat(100_000) } });

  test('a body over the limit is 413 with LIMIT_EXCEEDED in the shape of GraphQL', async () => {
    const { status, body } = await postText(tooLarge);
    expect(status).toBe(413);
    expect(body.errors?.[0]?.extensions?.code).toBe('LIMIT_EXCEEDED');
  });

  test('a body of 10 MB is refused too, by what comes and not only by what is declared', async () => {
    const large = Buffer.alloc(10_000_000, 'x');
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest(service.graphqlUrl, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
      });
      request.on('response', (response) => resolve(response.resume().statusCode));
      request.on('error', reject);
      request.write(large.subarray(0, 200_000));
    });
    expect(status).toBe(413);
    expect((await postText(large).catch(() => ({ status: 413 }))).status).toBe(413);
    expect((await service.post('{ hello }')).status).toBe(200);
  });

  test('a body just under the limit is read', async () => {
    const body = JSON.stringify({ query: '{ hello }', variables: { text: '' } });
    const padded = JSON.stringify({ query: '{ hello }', variables: { text: 'x'.repeat(100_000 - body.length) } });
    expect(Buffer.byteLength(padded)).toBe(100_000);
    expect((await postText(padded)).status).toBe(200);
  });

  test('headers or a body that do not arrive in time are 408, and others are served meanwhile', async () => {
    const slow = await startToyService({ http: { requestTimeoutMs: 400, headersTimeoutMs: 300, timeoutCheckMs: 50 } });
    const raw = (text: string) =>
      new Promise<string>((resolve) => {
        const socket = connect(slow.port, '127.0.0.1', () => socket.write(text));
        let received = '';
        socket.on('data', (chunk) => (received += chunk.toString('utf8')));
        socket.on('close', () => resolve(received));
      });
    const stuckHeaders = raw('POST /graphql HTTP/1.1\r\nhost: x\r\n');
    const stuckBody = raw(
      `POST /graphql HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"que`,
    );
    expect((await slow.post('{ hello }')).status).toBe(200);
    expect(await stuckHeaders).toMatch(/^HTTP\/1\.1 408 /);
    expect(await stuckBody).toMatch(/^HTTP\/1\.1 408 /);
    await slow.close();
  });

  test('a client that goes away in the middle of its body is no error of ours', async () => {
    const linesBefore = service.logLines.length;
    await new Promise<void>((resolve) => {
      const socket = connect(service.port, '127.0.0.1', () => {
        socket.write(
          `POST /graphql HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"que`,
        );
        setTimeout(() => socket.destroy(), 100);
      });
      socket.on('close', () => resolve());
    });
    await eventually(
      () => service.logLines.slice(linesBefore).some((line) => line.includes('"ABORTED"')),
      'the request is logged',
    );
    expect(service.logLines.slice(linesBefore).join('')).not.toContain('unexpected error');
  });
});
