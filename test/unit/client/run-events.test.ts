// The client over real HTTP against a server that breaks off, restarts, falls silent or refuses, where and when a test says so.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createGraphqlClient, endpointOf, type GraphqlClient } from '../../../src/client/graphql-client.js';
import { watchRun } from '../../../src/client/run-events.js';
import { startLoopbackServer, type LoopbackServer } from '../../../script/demo.d/loopback-server.js';

interface Asked {
  query: string;
  variables: { after?: string };
}
type Answer = (response: ServerResponse, asked: Asked) => void;

let server: LoopbackServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function readBody(request: IncomingMessage): Promise<Asked> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text) as Asked;
}

/** Subscriptions get the answers in turn, and the last one again and again; queries get the status. */
async function serve(
  answers: Answer[],
  runStatus = 'IN_PROGRESS',
): Promise<{ client: GraphqlClient; cursors: string[] }> {
  const cursors: string[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const asked = await readBody(request);
    if (!asked.query.startsWith('subscription')) {
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ data: { run: { status: runStatus } } }));
      return;
    }
    cursors.push(asked.variables.after ?? '');
    (answers[cursors.length - 1] ?? answers.at(-1))?.(response, asked);
  };
  server = await startLoopbackServer((request, response) => void handle(request, response));
  return { client: createGraphqlClient({ url: server.url, key: 'k', silenceLimitMs: 1500 }), cursors };
}

const head = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });
const next = (result: object): string => `event: next\ndata: ${JSON.stringify(result)}\n\n`;
const delta = (cursor: string): string =>
  next({
    data: { runEvents: { __typename: 'ContentEvent', cursor, runId: 'run_1', originRunId: 'run_1', delta: cursor } },
  });
const finished = (cursor: string): string =>
  next({
    data: {
      runEvents: {
        __typename: 'ResearchStatusEvent',
        cursor,
        runId: 'run_1',
        originRunId: 'run_1',
        phase: 'FINISHED',
        activity: '',
      },
    },
  });
const complete = 'event: complete\ndata:\n\n';

async function watch(client: GraphqlClient, options: Parameters<typeof watchRun>[2] = {}): Promise<string[]> {
  const seen: string[] = [];
  for await (const { cursor } of watchRun(client, 'run_1', options)) seen.push(cursor);
  return seen;
}

describe('watching a run', () => {
  it('resumes behind the last event that was seen, whatever ended the connection', async () => {
    const { client, cursors } = await serve([
      // Cut off in the middle of an event.
      (response) =>
        void head(response).write(`:\n\n${delta('1')}${delta('2')}${delta('3').slice(0, 30)}`, () =>
          response.destroy(),
        ),
      // Refused by a proxy.
      (response) => void response.writeHead(502).end('<h1>Bad gateway</h1>'),
      // The server shuts down.
      (response) => void head(response).end(delta('3') + complete),
      // Silent for longer than keep-alives are apart.
      (response) => void head(response).write(delta('4')),
      (response) =>
        void head(response).end(
          next({ errors: [{ message: 'slow', extensions: { code: 'SUBSCRIBER_TOO_SLOW' } }], data: null }) + complete,
        ),
      (response) => void head(response).end(delta('5') + finished('6') + complete),
    ]);
    const reasons: string[] = [];
    expect(await watch(client, { onReconnect: ({ code }) => reasons.push(code) })).toEqual([
      '1',
      '2',
      '3',
      '4',
      '5',
      '6',
    ]);
    expect(cursors).toEqual(['', '2', '2', '3', '4', '4']);
    expect(reasons).toEqual([
      'CONNECTION_FAILED',
      'CONNECTION_FAILED',
      'CONNECTION_FAILED',
      'TIMEOUT',
      'SUBSCRIBER_TOO_SLOW',
    ]);
  });

  it('ends with the terminal event also when the stream stays open, and with a run whose events are gone', async () => {
    const open = await serve([(response) => void head(response).write(finished('1'))]);
    expect(await watch(open.client)).toEqual(['1']);
    await server?.close();
    const gone = await serve([(response) => void head(response).end(complete)], 'COMPLETED');
    expect(await watch(gone.client)).toEqual([]);
  });

  it('does not insist on what waiting cannot mend', async () => {
    const { client, cursors } = await serve([
      (response) =>
        void head(response).end(
          next({ errors: [{ message: 'no such run', extensions: { code: 'NOT_FOUND' } }], data: null }) + complete,
        ),
    ]);
    await expect(watch(client)).rejects.toMatchObject({ code: 'NOT_FOUND', message: 'no such run' });
    expect(cursors).toHaveLength(1);
  });

  it('gives up on a server that stays away', async () => {
    const { client } = await serve([(response) => void response.destroy()]);
    await expect(watch(client, { patienceMs: 600 })).rejects.toMatchObject({
      name: 'ScratchpadError',
      code: 'CONNECTION_FAILED',
    });
  });

  it('stops at once when it is told to, and hangs up', async () => {
    let hungUp: () => void = () => {};
    const closed = new Promise<void>((resolve) => (hungUp = resolve));
    const { client } = await serve([
      (response) => {
        response.on('close', hungUp);
        head(response).write(delta('1'));
      },
    ]);
    const stop = new AbortController();
    const seen: string[] = [];
    for await (const { cursor } of watchRun(client, 'run_1', { signal: stop.signal })) {
      seen.push(cursor);
      stop.abort();
    }
    expect(seen).toEqual(['1']);
    await closed;
  });
});

describe('the address of a server', () => {
  it.each([
    ['http://host:4000', 'http://host:4000/graphql'],
    ['http://host:4000/', 'http://host:4000/graphql'],
    ['https://host/base', 'https://host/base/graphql'],
    ['https://host/graphql', 'https://host/graphql'],
  ])('%s leads to %s', (given, endpoint) => {
    expect(endpointOf(given)).toBe(endpoint);
  });
  it.each(['host:4000', 'ftp://host', 'nonsense'])('%s is none', (given) => {
    expect(() => endpointOf(given)).toThrow(TypeError);
  });
});
