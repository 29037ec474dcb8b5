// Subscriptions over server-sent events.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { EventSource } from 'eventsource';
import { createClient, type Client } from 'graphql-sse';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DomainError } from '../../../src/shared/errors.js';
import { aliceSecret, eventually, startToyService, type ToyBody, type ToyService } from './toy-service.js';

let service: ToyService;
let client: Client;
beforeEach(async () => {
  service = await startToyService({ graphql: { keepAliveMs: 50 } });
  client = createClient({
    url: service.graphqlUrl,
    headers: { authorization: `Bearer ${aliceSecret}` },
    retryAttempts: 0,
  });
});
afterEach(async () => {
  client.dispose();
  await service.close();
});

const events = 'subscription { events { number } }';

/** Reads the raw stream, as curl does. */
function openRaw(
  query: string,
  headers: Record<string, string> = {},
): Promise<{ response: IncomingMessage; text: () => string; destroy: () => void }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(service.graphqlUrl, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${aliceSecret}`,
        'content-type': 'application/json',
        accept: 'text/event-stream',
        ...headers,
      },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      let received = '';
      response.on('data', (chunk: Buffer) => (received += chunk.toString('utf8')));
      response.on('error', () => undefined);
      request.off('error', reject).on('error', () => undefined);
      resolve({ response, text: () => received, destroy: () => request.destroy() });
    });
    request.end(JSON.stringify({ query }));
  });
}

const oneSource = () => eventually(() => service.sources.open.size === 1, 'the source is open');
const noSource = () => eventually(() => service.sources.open.size === 0, 'the source is returned');

async function collect(query: string): Promise<ToyBody[]> {
  const results: ToyBody[] = [];
  for await (const result of client.iterate({ query })) results.push(result as ToyBody);
  return results;
}

describe('a subscription over SSE', () => {
  test('delivers every event in order and completes with its source', async () => {
    expect(await collect('subscription { count(to: 3) }')).toEqual([
      { data: { count: 1 } },
      { data: { count: 2 } },
      { data: { count: 3 } },
    ]);
  });

  test('is open before its first event, with headers that keep proxies from holding it back', async () => {
    const { response, text, destroy } = await openRaw(events);
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    await oneSource();
    await eventually(() => text().split(':\n\n').length > 3, 'comments keep it alive');
    service.sources.push({ event: { number: 1 } });
    await eventually(
      () => text().includes('event: next\ndata: {"data":{"events":{"number":1}}}\n\n'),
      'the event arrives',
    );
    destroy();
    await noSource();
    expect(service.sources.counts).toMatchObject({ opened: 1, returned: 1 });
  });

  test("works by GET, for browsers' EventSource", async () => {
    const source = new EventSource(
      `${service.graphqlUrl}?query=${encodeURIComponent('subscription { count(to: 2) }')}`,
      {
        fetch: (input, init) =>
          fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${aliceSecret}` } }),
      },
    );
    const received: unknown[] = [];
    source.addEventListener('next', ({ data }: { data: string }) => received.push(JSON.parse(data)));
    await new Promise((resolve) => source.addEventListener('complete', resolve));
    source.close();
    expect(received).toEqual([{ data: { count: 1 } }, { data: { count: 2 } }]);
  });

  test('is refused with 406 when the client does not accept a stream', async () => {
    const { status, body } = await service.post('subscription { count(to: 1) }');
    expect(status).toBe(406);
    expect(body.errors?.[0]?.message).toContain('text/event-stream');
    expect(service.sources.counts.opened).toBe(0);
  });

  test('carries queries and refusals too, as one result and the end', async () => {
    expect(await collect('{ hello }')).toEqual([{ data: { hello: 'Hello world' } }]);
    const [refused] = await collect('subscription { nothing }');
    expect(refused?.errors?.[0]?.extensions?.code).toBe('GRAPHQL_VALIDATION_FAILED');
    const [notFound] = await collect('subscription { refused(code: "NOT_FOUND") }');
    expect(notFound?.errors?.[0]?.extensions?.code).toBe('NOT_FOUND');
  });

  test('has a fresh context for each event', async () => {
    const { text, destroy } = await openRaw('subscription { events { contextNumber } }');
    await oneSource();
    service.sources.push({ event: {} });
    service.sources.push({ event: {} });
    await eventually(() => text().split('contextNumber').length === 3, 'both arrive');
    const numbers = [...text().matchAll(/"contextNumber":(\d+)/g)].map(([, number]) => number);
    expect(new Set(numbers).size).toBe(2);
    destroy();
  });

  test('goes on after an event with an error in a field', async () => {
    const { text, destroy } = await openRaw('subscription { events { number bug } }');
    await oneSource();
    service.sources.push({ event: { number: 1 } });
    service.sources.push({ event: { number: 2 } });
    await eventually(() => text().includes('"number":2'), 'the second arrives');
    expect(text()).toContain('"code":"INTERNAL"');
    expect(text()).not.toContain('hunter2');
    destroy();
  });

  test('ends with one last result and complete when its source fails', async () => {
    const results = collect(events);
    await oneSource();
    service.sources.push({ event: { number: 1 } });
    service.sources.push({ error: new DomainError('SUBSCRIBER_TOO_SLOW', 'Too slow.', { lastCursor: 'c1' }) });
    expect(await results).toEqual([
      { data: { events: { number: 1 } } },
      { errors: [{ message: 'Too slow.', extensions: { code: 'SUBSCRIBER_TOO_SLOW', lastCursor: 'c1' } }] },
    ]);
    const masked = collect(events);
    await eventually(() => service.sources.counts.opened === 2, 'the second is open');
    service.sources.push({ error: new TypeError('password=hunter2') });
    const [last] = await masked;
    expect(last?.errors?.[0]?.extensions?.code).toBe('INTERNAL');
    expect(JSON.stringify(last)).not.toContain('hunter2');
  });

  test('ends with UNAUTHENTICATED and complete when its key is revoked', async () => {
    const results = collect(events);
    await oneSource();
    service.sources.push({ event: { number: 1 } });
    await eventually(
      async () =>
        (await service.metrics.expose()).body.includes('scratchpad_delivered_events_total{transport="sse"} 1'),
      'the first event is delivered',
    );
    service.revoke(aliceSecret);
    expect(await results).toEqual([
      { data: { events: { number: 1 } } },
      { errors: [{ message: 'The key was revoked.', extensions: { code: 'UNAUTHENTICATED' } }] },
    ]);
    expect(service.sources.counts).toMatchObject({ opened: 1, returned: 1 });
    expect([...service.watchers.values()].every((set) => set.size === 0)).toBe(true);
  });

  test('frees a source that opened after its client had gone', async () => {
    const request = httpRequest(service.graphqlUrl, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${aliceSecret}`,
        'content-type': 'application/json',
        accept: 'text/event-stream',
      },
    });
    request.on('error', () => undefined);
    request.end(JSON.stringify({ query: 'subscription { late(milliseconds: 200) }' }));
    await eventually(() => service.sources.counts.slow === 1, 'it is about to open');
    request.destroy();
    await eventually(() => service.sources.counts.opened === 1, 'the source opens late');
    await noSource();
    expect(service.sources.counts.returned).toBe(1);
  });

  test('asks a source for no more than a client takes that does not read', async () => {
    const { response, destroy } = await openRaw('subscription { large(bytes: 100000) }');
    response.pause();
    await eventually(() => service.sources.counts.pulled > 5, 'it begins');
    let pulled = -1;
    // What the kernel and both ends take is some megabytes; then it must stand still.
    await eventually(
      async () => {
        const before = service.sources.counts.pulled;
        await new Promise((resolve) => setTimeout(resolve, 300));
        pulled = service.sources.counts.pulled;
        return pulled === before;
      },
      'it stands still',
      10_000,
    );
    expect(pulled).toBeLessThan(300);
    response.resume();
    await eventually(() => service.sources.counts.pulled > pulled + 5, 'it goes on when the client reads again');
    destroy();
    await noSource();
  });

  test('leaves nothing behind after 200 are opened and dropped', async () => {
    for (let round = 0; round < 20; round += 1) {
      const streams = await Promise.all(Array.from({ length: 10 }, () => openRaw(events)));
      for (const { destroy } of streams) destroy();
    }
    await noSource();
    expect(service.sources.counts).toMatchObject({ opened: 200, returned: 200 });
    expect((await service.metrics.expose()).body).toContain('scratchpad_open_subscriptions{transport="sse"} 0');
    expect([...service.watchers.values()].every((set) => set.size === 0)).toBe(true);
  });
});
