// Subscribers that share results and do not read: their own end, in order, and nobody else's.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { appendEntry, createScratchpad } from '../../support/operations.js';
import { overWebSocket, until } from '../../support/raw-subscriber.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

let service: Service;
let alice: Tenant;

beforeAll(async () => {
  service = await startService();
  alice = await service.createTenant('Alice');
});
afterAll(() => service.close());

const entry = 'x'.repeat(60_000);
const query = `subscription ($id: ID!, $after: String) { scratchpadEvents(scratchpadId: $id, after: $after) { cursor entry { content } } }`;
const append = async (id: string, from: number, count: number): Promise<void> => {
  for (let index = from; index < from + count; index += 1) await appendEntry(alice.client, id, `${index} ${entry}`);
};
const numbersOf = (messages: string[]): number[] =>
  messages.flatMap((message) => {
    const number = /"content":"(\d+) /.exec(message)?.[1];
    return number === undefined ? [] : [Number(number)];
  });
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

it('gives a subscriber that did not read everything in its order once it reads, and holds nobody up', async () => {
  const id = await createScratchpad(alice.client);
  await append(id, 0, 1);
  const payload = { query, variables: { id, after: '' } };
  const [slow, quick] = [
    await overWebSocket(service.url, alice.secret, payload),
    await overWebSocket(service.url, alice.secret, payload),
  ];
  await Promise.all([slow.received(1), quick.received(1)]);
  slow.socket?.pause();
  await append(id, 1, 200);
  await quick.received(201);
  slow.socket?.resume();
  await slow.received(201);
  expect(numbersOf(slow.messages)).toEqual(upTo(201));
  expect(numbersOf(quick.messages)).toEqual(upTo(201));
});

it('ends a subscriber over its bound as too slow, and it resumes where it was', async () => {
  const id = await createScratchpad(alice.client);
  await append(id, 0, 1);
  const payload = { query, variables: { id, after: '' } };
  const slow = await overWebSocket(service.url, alice.secret, payload);
  await slow.received(1);
  slow.socket?.pause();
  await append(id, 1, 400);
  slow.socket?.resume();
  await until(
    () => slow.messages.some((one) => one.includes('SUBSCRIBER_TOO_SLOW')),
    () => `${slow.messages.length} messages`,
  );
  const seen = numbersOf(slow.messages);
  expect(seen).toEqual(upTo(seen.length));
  expect(seen.length).toBeLessThan(401);
  const lastCursor = /"lastCursor":"([^"]+)"/.exec(slow.messages.find((one) => one.includes('TOO_SLOW'))!)?.[1];
  const resumed = await overWebSocket(service.url, alice.secret, { query, variables: { id, after: lastCursor } });
  await resumed.received(401 - seen.length);
  expect([...seen, ...numbersOf(resumed.messages)]).toEqual(upTo(401));
});
