// What an operator asks the server: does it live, is it ready, what does it do.
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/infra/metrics.js';
import { startToyService } from './toy-service.js';

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
});
