// Nobody waits for ever: an answer that takes too long is refused, what comes later is dropped, and streams are left alone.
import { Agent, request as sendRequest, type IncomingMessage } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient as createSseClient } from 'graphql-sse';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { aliceSecret, eventually, startToyService, type ToyService } from './toy-service.js';

const answerTimeoutMs = 400;
/** The look at what is overdue, and a slow machine. */
const marginMs = 1500;
const headers = { 'content-type': 'application/json', authorization: `Bearer ${aliceSecret}` };

let service: ToyService;

beforeAll(async () => {
  service = await startToyService({ http: { answerTimeoutMs } });
});
afterAll(() => service.close());

const errorsLogged = (): string[] => service.logLines.filter((line) => line.includes('"level":50'));

it('refuses as UNAVAILABLE what takes longer, on a connection that goes on', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const post = async (query: string, writeBody?: (body: string, write: (part: string) => void) => Promise<void>) => {
    const body = JSON.stringify({ query });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = sendRequest(service.graphqlUrl, { method: 'POST', agent, headers }, resolve).on('error', reject);
      if (writeBody) void writeBody(body, (part) => request.write(part)).then(() => request.end());
      else request.end(body);
    });
    return { status: response.statusCode, body: JSON.parse(await readText(response)) as object };
  };

  const startedAt = performance.now();
  const refused = await post('{ slow(milliseconds: 1200) }');
  expect(performance.now() - startedAt).toBeLessThan(answerTimeoutMs + marginMs);
  expect(refused).toMatchObject({ status: 503, body: { errors: [{ extensions: { code: 'UNAVAILABLE' } }] } });
  expect(await post('{ slow(milliseconds: 1) }')).toMatchObject({ status: 200 });
  // The late result finds nobody, and nobody is told twice.
  await delay(1200);
  expect(await post('{ slow(milliseconds: 1) }')).toMatchObject({ status: 200 });
  expect(errorsLogged()).toEqual([]);
  // A client that sends slowly is not late: it is the server that owes nothing yet.
  const slowly = await post('{ slow(milliseconds: 1) }', async (body, write) => {
    for (const part of [body.slice(0, 5), body.slice(5)]) {
      await delay(answerTimeoutMs);
      write(part);
    }
  });
  expect(slowly).toMatchObject({ status: 200 });
  agent.destroy();
});

it('leaves a stream open for as long as it likes', async () => {
  const client = createSseClient({ url: service.graphqlUrl, headers, retryAttempts: 0 });
  const results: unknown[] = [];
  void (async () => {
    for await (const result of client.iterate({ query: 'subscription { events { number } }' })) results.push(result);
  })();
  await eventually(() => service.sources.open.size === 1, 'it is open');
  await delay(answerTimeoutMs + 600);
  service.sources.push({ event: { number: 1 } });
  await eventually(() => results.length > 0, 'it is told');
  expect(results).toMatchObject([{ data: { events: { number: 1 } } }]);
  client.dispose();
});

it('ends a subscription that opens too late, and leaves nothing of it behind', async () => {
  const refused = await fetch(service.graphqlUrl, {
    method: 'POST',
    headers: { ...headers, accept: 'text/event-stream' },
    body: JSON.stringify({ query: 'subscription { late(milliseconds: 1200) }' }),
  });
  expect(refused.status).toBe(503);
  await refused.text();
  const { returned } = service.sources.counts;
  await eventually(() => service.sources.counts.returned === returned + 1, 'it is closed');
  expect(service.sources.open.size).toBe(0);
  expect(errorsLogged()).toEqual([]);
});
