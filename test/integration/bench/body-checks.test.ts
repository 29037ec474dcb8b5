// A server that answers fast because it does nothing must not win: the load looks at every answer, and at what is in Redis afterwards.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { appendShot, createAppendLoad } from '../../../bench/rows/append.js';
import { runLoad } from '../../../bench/http-load.js';
import type { ServerProcess } from '../../../bench/server-process.js';
import { startRedis, type TestRedis } from '../../support/redis.js';

let redis: TestRedis;
let server: Server | undefined;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
afterEach(() => void server?.close());

/** A baseline that answers whatever it is told to. */
async function startAnswering(
  status: number,
  answer: (input: { scratchpadId: string; content: string }) => unknown,
): Promise<ServerProcess> {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { variables } = JSON.parse(body) as { variables: { input: { scratchpadId: string; content: string } } };
      response.writeHead(status).end(JSON.stringify(answer(variables.input)));
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const usage = () => Promise.resolve({ cpuMicroseconds: 0, residentBytes: 0, heapBytes: 0 });
  return {
    url: `http://127.0.0.1:${port}`,
    processId: 0,
    usage,
    usageAfterCollection: usage,
    stop: () => Promise.resolve(),
  };
}

const rightAnswer = ({ content }: { content: string }) => ({
  data: { appendScratchpadEntry: { entry: { id: 'entry_01HZZZZZZZZZZZZZZZZZZZZZZZ', content, createdAt: 'now' } } },
});

const load = (measured: ServerProcess) =>
  runLoad({ server: measured, connections: 2, requests: 10, shotFor: () => appendShot('sp_one') });

it('counts answers that are right', async () => {
  const { perSecond } = await load(await startAnswering(200, rightAnswer));
  expect(perSecond).toBeGreaterThan(0);
});

it.each([
  ['an error in a good status', 200, () => ({ errors: [{ message: 'no' }] })],
  [
    'data beside an error',
    200,
    (input: { content: string }) => ({ ...rightAnswer(input), errors: [{ message: 'no' }] }),
  ],
  ['no data', 200, () => ({})],
  ['another content', 200, () => rightAnswer({ content: 'something else' })],
  ['a right body in a bad status', 500, rightAnswer],
])('refuses %s', async (_name, status, answer) => {
  await expect(load(await startAnswering(status, answer))).rejects.toThrow(
    /^(The server did not do the work|Status 500)/,
  );
});

it('refuses a server that says that it wrote and did not', async () => {
  const world = { redis, tenant: { userId: 'user_one', secret: '' } } as never;
  const measured = await startAnswering(200, rightAnswer);
  await expect(createAppendLoad(world, ['sp_one'])(measured)(10)).rejects.toThrow('10 answers, but 0 entries');
});
