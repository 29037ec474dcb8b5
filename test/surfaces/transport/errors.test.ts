// How each error looks on the wire, and what never leaves the server.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { errorTable } from '../../../src/surfaces/error-table.js';
import { aliceSecret, startToyService, type ToyService } from './toy-service.js';

let service: ToyService;
beforeAll(async () => {
  service = await startToyService();
});
afterAll(() => service.close());

describe('an error of the domain', () => {
  const cases: [string, Record<string, unknown>][] = [
    ['INVALID_INPUT', { code: 'BAD_USER_INPUT', issues: [{ path: ['code'], message: 'is one' }] }],
    ['FORBIDDEN', { code: 'FORBIDDEN' }],
    ['NOT_FOUND', { code: 'NOT_FOUND' }],
    ['CONFLICT', { code: 'CONFLICT', currentVersion: '7' }],
    ['LIMIT_EXCEEDED', { code: 'LIMIT_EXCEEDED' }],
    ['RATE_LIMITED', { code: 'RATE_LIMITED', retryAfterSeconds: 3 }],
    ['UNAVAILABLE', { code: 'UNAVAILABLE' }],
    ['SUBSCRIBER_TOO_SLOW', { code: 'SUBSCRIBER_TOO_SLOW', lastCursor: 'c9' }],
  ];
  test.each(cases)('%s keeps its message, its place and its details', async (code, extensions) => {
    const { status, body } = await service.post('query Q($code: String!) { fail(code: $code) }', {
      variables: { code },
    });
    expect(status).toBe(200);
    expect(body.data).toEqual({ fail: null });
    expect(body.errors).toHaveLength(1);
    expect(body.errors?.[0]).toMatchObject({ path: ['fail'], extensions });
    expect(Object.keys(body.errors?.[0]?.extensions ?? {}).sort()).toEqual(Object.keys(extensions).sort());
  });

  test('UNAUTHENTICATED in the middle of an operation is 401 when nothing else is there', async () => {
    const { status } = await service.post('mutation { increment(by: 0) } query Q { fail(code: "UNAUTHENTICATED") }');
    expect(status).toBe(200);
    const partial = await service.post('{ hello fail(code: "UNAUTHENTICATED") }');
    expect(partial.status).toBe(200);
  });

  test('every code has a form on the wire', () => {
    expect(Object.keys(errorTable).sort()).toEqual([
      'CONFLICT',
      'FORBIDDEN',
      'INTERNAL',
      'INVALID_INPUT',
      'LIMIT_EXCEEDED',
      'NOT_FOUND',
      'RATE_LIMITED',
      'SUBSCRIBER_TOO_SLOW',
      'UNAUTHENTICATED',
      'UNAVAILABLE',
    ]);
  });
});

describe('an error that nobody expected', () => {
  const secrets = /hunter2|secret|TypeError|stack|node_modules|10\.0\.0\.5|ECONNREFUSED/;

  test('is INTERNAL with the request id, and nothing else of it leaves the server', async () => {
    const { body, headers } = await service.post('{ bug }', { headers: { 'x-request-id': 'probe-1' } });
    expect(headers.get('x-request-id')).toBe('probe-1');
    expect(body.errors).toEqual([
      {
        message: expect.stringContaining('probe-1') as string,
        path: ['bug'],
        locations: [{ line: 1, column: 3 }],
        extensions: { code: 'INTERNAL', requestId: 'probe-1' },
      },
    ]);
    expect(JSON.stringify(body)).not.toMatch(secrets);
  });

  test('is logged with its cause under the same request id', async () => {
    await service.post('{ bug }', { headers: { 'x-request-id': 'probe-2' } });
    const line = service.logLines.find((text) => text.includes('probe-2') && text.includes('hunter2'));
    expect(line).toContain('TypeError');
  });

  test('of a store is UNAVAILABLE, without the address', async () => {
    const { body } = await service.post('{ fail(code: "STORE") }');
    expect(body.errors?.[0]?.extensions).toEqual({ code: 'UNAVAILABLE' });
    expect(JSON.stringify(body)).not.toMatch(secrets);
  });

  test('a null where the schema promises a value is masked as well', async () => {
    const { body } = await service.post('query Q($n: Int!) { slow(milliseconds: $n) }', { variables: { n: 0 } });
    expect(body).toEqual({ data: { slow: 'done' } });
  });
});

describe('request ids and logs', () => {
  test('a sane request id is taken over, any other is replaced', async () => {
    for (const given of ['has space', 'x'.repeat(200), 'semi;colon', '']) {
      const { headers } = await service.post('{ hello }', { headers: { 'x-request-id': given } });
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    }
    expect((await service.post('{ hello }')).headers.get('x-request-id')).not.toBe(
      (await service.post('{ hello }')).headers.get('x-request-id'),
    );
  });

  test('each request is one line with its outcome, and no line knows the key or the query', async () => {
    const before = service.logLines.length;
    await service.post('query Named($name: String) { hello(name: $name) somethingPrivate: me }', {
      variables: { name: 'private-variable' },
      headers: { 'x-request-id': 'probe-3' },
    });
    await fetch(`${service.graphqlUrl}?query=${encodeURIComponent('{ hello(name: "private-literal") }')}`, {
      headers: { 'x-api-key': aliceSecret },
    });
    await service.post('{ private-broken');
    await service.post('{ fail(code: "CONFLICT") }');
    const lines = service.logLines.slice(before);
    const line = JSON.parse(lines.find((text) => text.includes('probe-3')) ?? '{}') as Record<string, unknown>;
    expect(line).toMatchObject({
      requestId: 'probe-3',
      method: 'POST',
      path: '/graphql',
      status: 200,
      surface: 'graphql',
      operation: 'query',
      operationName: 'Named',
      outcome: 'OK',
    });
    expect(lines).toHaveLength(4);
    expect(lines.map((text) => (JSON.parse(text) as { outcome: string }).outcome).sort()).toEqual([
      'CONFLICT',
      'GRAPHQL_PARSE_FAILED',
      'OK',
      'OK',
    ]);
    expect(service.logLines.join('')).not.toMatch(/private|key_of_alice|Bearer/);
  });
});
