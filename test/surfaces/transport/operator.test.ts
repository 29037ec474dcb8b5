// What an operator asks the server: does it live, is it ready, what does it do.
import { get } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/infra/metrics.js';
import { aliceSecret, startToyService } from './toy-service.js';

describe('health', () => {
  test('/healthz answers while the process lives, /readyz only when both stores do', async () => {
    const service = await startToyService();
    const read = async (path: string) => {
      const response = await fetch(service.url + path);
      return { status: response.status, body: await response.json() };
    };
    expect(await read('/healthz')).toEqual({ status: 200, body: { status: 'ok' } });
    expect(await read('/readyz')).toEqual({ status: 200, body: { status: 'ok', sql: 'ok', redis: 'ok' } });
    service.stores.redis = false;
    expect(await read('/readyz')).toEqual({
      status: 503,
      body: { status: 'unavailable', sql: 'ok', redis: 'unavailable' },
    });
    expect((await read('/healthz')).status).toBe(200);
    expect((await fetch(`${service.url}/healthz`, { method: 'HEAD' })).status).toBe(200);
    await service.close();
  });

  test('a readiness that fails is masked', async () => {
    const service = await startToyService({ http: { readiness: () => Promise.reject(new Error('10.0.0.5 refused')) } });
    const response = await fetch(`${service.url}/readyz`);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain('10.0.0.5');
    await service.close();
  });
});

describe('metrics', () => {
  const valueOf = (text: string, name: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.split(' ')
        .at(-1) ?? 0,
    );

  test('count requests by surface and outcome, their latency, and the process', async () => {
    const service = await startToyService();
    await service.post('{ hello }');
    await service.post('{ hello }');
    await service.post('{ fail(code: "CONFLICT") }');
    await service.post('{ hello }', { headers: { authorization: '' } });
    const text = await (await fetch(`${service.url}/metrics`)).text();
    expect(valueOf(text, 'scratchpad_requests_total{surface="graphql",outcome="OK"}')).toBe(2);
    expect(valueOf(text, 'scratchpad_requests_total{surface="graphql",outcome="CONFLICT"}')).toBe(1);
    expect(valueOf(text, 'scratchpad_requests_total{surface="graphql",outcome="UNAUTHENTICATED"}')).toBe(1);
    expect(valueOf(text, 'scratchpad_request_duration_seconds_count{surface="graphql"}')).toBe(4);
    expect(valueOf(text, 'process_resident_memory_bytes')).toBeGreaterThan(1e6);
    await service.close();
  });

  test('read the purge backlog at each scrape, and live on when it cannot be read', async () => {
    const metrics = createMetrics();
    let backlog = () => Promise.resolve(7);
    metrics.watchPurgeBacklog(() => backlog());
    expect(valueOf((await metrics.expose()).body, 'scratchpad_purge_backlog')).toBe(7);
    backlog = () => Promise.reject(new Error('away'));
    metrics.storeFailed('Redis');
    metrics.storeFailed('SQL');
    metrics.storeFailed('SQL');
    const { body } = await metrics.expose();
    expect(valueOf(body, 'scratchpad_purge_backlog')).toBe(7);
    expect(valueOf(body, 'scratchpad_redis_errors_total')).toBe(1);
    expect(valueOf(body, 'scratchpad_sql_errors_total')).toBe(2);
    backlog = () => new Promise(() => undefined);
    expect(valueOf((await metrics.expose()).body, 'scratchpad_sql_errors_total')).toBe(2);
  });

  test('are told to callers on this machine alone, unless there is a token', async () => {
    const service = await startToyService();
    const statusOf = (headers: Record<string, string>): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        get(`${service.url}/metrics`, { headers }, (response) => resolve(response.resume().statusCode)).on(
          'error',
          reject,
        );
      });
    expect(await statusOf({})).toBe(200);
    expect(await statusOf({ host: `localhost:${service.port}` })).toBe(200);
    // A name that leads here from elsewhere, and a proxy in front.
    expect(await statusOf({ host: 'scratchpad.example.com' })).toBe(401);
    expect(await statusOf({ 'x-forwarded-for': '203.0.113.7' })).toBe(401);
    await service.close();
    const open = await startToyService({ http: { host: '0.0.0.0' } });
    expect((await fetch(`http://127.0.0.1:${open.port}/metrics`)).status).toBe(401);
    await open.close();
  });

  test('are told to whoever has the token, from wherever', async () => {
    const metricsToken = 'token-of-the-metrics-0123456789';
    const service = await startToyService({ http: { host: '0.0.0.0', metricsToken } });
    const url = `http://127.0.0.1:${service.port}/metrics`;
    const ask = (authorization?: string): Promise<Response> =>
      fetch(url, authorization === undefined ? {} : { headers: { authorization } });
    expect(await (await ask(`Bearer ${metricsToken}`)).text()).toContain('process_resident_memory_bytes');
    for (const wrong of [undefined, '', metricsToken, `Bearer ${metricsToken}x`, `Bearer ${aliceSecret}`, 'Bearer ']) {
      const refused = await ask(wrong);
      expect([refused.status, refused.headers.get('www-authenticate')], String(wrong)).toEqual([
        401,
        'Bearer realm="metrics"',
      ]);
      expect(await refused.text()).not.toContain('process_');
    }
    // Health stays open: it says nothing of anybody.
    expect((await fetch(url.replace('metrics', 'healthz'))).status).toBe(200);
    await service.close();
  });
});
