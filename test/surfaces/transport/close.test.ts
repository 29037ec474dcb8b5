// The end of the server: streams complete, running requests are answered, nothing stays open.
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWebSocketClient } from 'graphql-ws';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { aliceSecret, eventually, startToyService } from './toy-service.js';

const events = 'subscription { events { number } }';
const headers = { authorization: `Bearer ${aliceSecret}` };

test('closing completes the subscriptions of both transports and then closes their connections', async () => {
  const service = await startToyService();
  const sse = createSseClient({ url: service.graphqlUrl, headers, retryAttempts: 0 });
  const sseResults: unknown[] = [];
  const sseEnd = (async () => {
    for await (const result of sse.iterate({ query: events })) sseResults.push(result);
    return 'complete';
  })();
  const closeEvents: { code: number }[] = [];
  const webSocket = createWebSocketClient({
    url: service.wsUrl,
    webSocketImpl: WebSocket,
    connectionParams: headers,
    retryAttempts: 0,
    lazyCloseTimeout: 5000,
    on: { closed: (event) => closeEvents.push(event as { code: number }) },
  });
  const webSocketResults: unknown[] = [];
  const webSocketEnd = new Promise((resolve) => {
    webSocket.subscribe(
      { query: events },
      { next: (result) => webSocketResults.push(result), error: resolve, complete: () => resolve('complete') },
    );
  });
  await eventually(() => service.sources.open.size === 2, 'both are open');
  service.sources.push({ event: { number: 1 } });
  await eventually(() => sseResults.length + webSocketResults.length === 2, 'both have an event');
  const startedAt = Date.now();
  await service.close();
  expect(Date.now() - startedAt).toBeLessThan(3000);
  expect(await Promise.all([sseEnd, webSocketEnd])).toEqual(['complete', 'complete']);
  await eventually(() => closeEvents.length === 1, 'the socket is closed');
  expect(closeEvents[0]?.code).toBe(1001);
  expect(service.sources.counts).toMatchObject({ opened: 2, returned: 2 });
  expect([...service.watchers.values()].every((set) => set.size === 0)).toBe(true);
});

test('closing waits for running requests and operations, and accepts no new ones', async () => {
  const service = await startToyService();
  const webSocket = createWebSocketClient({
    url: service.wsUrl,
    webSocketImpl: WebSocket,
    connectionParams: headers,
    retryAttempts: 0,
  });
  const results: unknown[] = [];
  const operation = new Promise((resolve) => {
    webSocket.subscribe(
      { query: '{ slow(milliseconds: 400) }' },
      { next: (result) => results.push(result), error: resolve, complete: () => resolve('complete') },
    );
  });
  const request = service.post('{ slow(milliseconds: 500) }');
  await eventually(() => service.sources.counts.slow === 2, 'both run');
  const closed = service.close();
  await expect(fetch(`${service.url}/healthz`)).rejects.toThrow('fetch failed');
  expect((await request).body).toEqual({ data: { slow: 'done' } });
  expect([await operation, results]).toEqual(['complete', [{ data: { slow: 'done' } }]]);
  await closed;
});

test('closing does not wait for idle, silent or stubborn connections', async () => {
  const service = await startToyService({
    http: { closeGraceMs: 300 },
    graphql: { webSocket: { closeTimeoutMs: 200 } },
  });
  await service.post('{ hello }');
  const silent = connect(service.port, '127.0.0.1');
  silent.on('error', () => undefined);
  const halfway = connect(service.port, '127.0.0.1', () => halfway.write('POST /graphql HTTP/1.1\r\nhost: x\r\n'));
  halfway.on('error', () => undefined);
  const stubborn = new WebSocket(service.wsUrl, 'graphql-transport-ws');
  await new Promise((resolve) => stubborn.once('open', resolve));
  stubborn.pause();
  const endless = service.post('{ slow(milliseconds: 60000) }').catch(() => 'cut off');
  await eventually(() => service.sources.counts.slow === 1, 'the endless one runs');
  const startedAt = Date.now();
  await service.close();
  expect(Date.now() - startedAt).toBeLessThan(2000);
  expect(await endless).toBe('cut off');
  stubborn.terminate();
});

test('a subscription that opens while the server closes is completed at once', async () => {
  const service = await startToyService();
  const sse = createSseClient({ url: service.graphqlUrl, headers, retryAttempts: 0 });
  const end = (async () => {
    for await (const _result of sse.iterate({ query: 'subscription { late(milliseconds: 300) }' })) return 'a result';
    return 'complete';
  })();
  await eventually(() => service.sources.counts.slow === 1, 'it is about to open');
  await service.close();
  expect(await end).toBe('complete');
  expect(service.sources.counts).toMatchObject({ opened: 1, returned: 1 });
});
