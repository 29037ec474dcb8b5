// Worker processes beside a server: they execute its runs, answer their operator, and may die.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startCluster, type Cluster, type ServerProcess } from '../../support/cluster.js';
import type { GraphqlClient } from '../../support/graphql-client.js';
import { createThread, startResearch } from '../../support/operations.js';
import { answerTo, expectAnsweredCalls } from '../../support/research-runtime.js';
import {
  callsReply,
  chunkOf,
  startScriptedModelServer,
  type ScriptedModelServer,
} from '../../support/scripted-model-server.js';
import { until } from '../redis/support.js';

let cluster: Cluster;
let model: ScriptedModelServer;
let server: ServerProcess;
let client: GraphqlClient;
let environment: Record<string, string>;

beforeAll(async () => {
  [cluster, model] = await Promise.all([startCluster({ appendFsync: 'always' }), startScriptedModelServer()]);
  environment = { LLM_BASE_URL: model.baseUrl, LLM_MODEL: 'house-model', RUN_WORKERS: '1' };
  server = await cluster.startServer({ ...environment, RUN_WORKERS: '0' });
  client = server.clientFor((await cluster.createTenant(server, 'Ada')).secret);
});
afterAll(async () => {
  await cluster.close();
  await model.close();
});

interface RunState {
  status: string;
  lastError: { code: string } | null;
  childRuns: { id: string; status: string; lastError: { code: string } | null }[];
}

async function read(id: string): Promise<RunState> {
  const { run } = await client.run<{ run: RunState }>(
    'query ($id: ID!) { run(id: $id) { status lastError { code } childRuns { id status lastError { code } } } }',
    { id },
  );
  return run;
}

const figure = async ({ url }: ServerProcess, name: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
};

const hang = { chunks: [chunkOf({ role: 'assistant', content: 'Hm' })], ending: 'hang' as const };
const delegation = callsReply([{ id: 'call_1', name: 'delegate_research_task', arguments: { task: 'How far?' } }]);

test('a run whose worker process is killed is lost within a minute, and its thread takes the next one', async () => {
  const first = await cluster.startWorker(environment);
  const threadId = await createThread(client);
  model.script(delegation, hang);
  const id = await startResearch(client, threadId);
  await until('a delegated worker is at work', () => model.requests.length === 2);
  expect((await read(id)).childRuns).toMatchObject([{ status: 'IN_PROGRESS' }]);
  expect(await figure(first, 'scratchpad_executing_runs')).toBe(1);
  expect(await figure(server, 'scratchpad_executing_runs')).toBe(0);
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
  expect((await fetch(`${first.url}/graphql`)).status).toBe(404);
  await first.kill();
  const second = await cluster.startWorker(environment);
  await until('it is lost', async () => (await read(id)).status === 'FAILED', 60_000);
  expect(await read(id)).toMatchObject({
    lastError: { code: 'WORKER_LOST' },
    childRuns: [{ status: 'FAILED', lastError: { code: 'WORKER_LOST' } }],
  });
  const [left] = await cluster.psql('SELECT count(*)::int AS threads FROM threads WHERE ephemeral');
  expect(left).toEqual({ threads: 0 });
  const [assistants] = await cluster.psql('SELECT count(*)::int AS assistants FROM assistants WHERE ephemeral');
  expect(assistants).toEqual({ assistants: 0 });
  model.script(hang);
  const next = await startResearch(client, threadId);
  await until('the next one is at work', () => model.requests.length === 3);
  // What the lost run left unanswered was closed before the next one asked anything, for good.
  expectAnsweredCalls(model.requests);
  expect(answerTo(model.requests[2]!, 'call_1')).toContain('INTERRUPTED');
  const tools = await cluster.psql(`SELECT tool_call_id, is_error FROM messages WHERE role = 'TOOL'`);
  expect(tools).toEqual([{ tool_call_id: 'call_1', is_error: true }]);
  const startedAt = Date.now();
  await client.run('mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { id } } }', { id: next });
  await until('it is cancelled', async () => (await read(next)).status === 'CANCELLED', 2000);
  expect(Date.now() - startedAt).toBeLessThan(2000);
  await model.requests[2]!.hungUp;
  expect(model.requests).toHaveLength(3);
  model.verify();
  expect(await second.stop()).toBe(0);
}, 120_000);

test('a worker without stores of a server, without a model or without places says what it lacks', async () => {
  const refusals: [Record<string, string>, string][] = [
    [{ ...environment, DATABASE_URL: '' }, 'set DATABASE_URL and REDIS_URL'],
    [{ RUN_WORKERS: '1' }, 'set LLM_BASE_URL'],
    [{ ...environment, RUN_WORKERS: '0' }, 'RUN_WORKERS=0'],
  ];
  for (const [lacking, message] of refusals) {
    await expect(cluster.startWorker(lacking)).rejects.toThrow(message);
  }
}, 60_000);
