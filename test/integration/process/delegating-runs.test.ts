// Two real processes execute research runs that really delegate: no more runs at a time than there are places, and workers take none.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startCluster, type Cluster, type ServerProcess } from '../../support/cluster.js';
import type { GraphqlClient } from '../../support/graphql-client.js';
import { createThread, startResearch } from '../../support/operations.js';
import { append, delegate, expectAnsweredCalls, isSupervisor, readPad } from '../../support/research-runtime.js';
import {
  callsReply,
  startScriptedModelServer,
  textReply,
  type ModelRequest,
  type Reply,
  type ScriptedModelServer,
} from '../../support/scripted-model-server.js';
import { until } from '../redis/support.js';

const runCount = 20;
const places = 4;
const workersOfRun = 2;

let cluster: Cluster;
let model: ScriptedModelServer;
let processes: ServerProcess[];
let client: GraphqlClient;

/** "Question 7", in a supervisor's requests and in its workers'. */
const questionOf = ({ body }: ModelRequest): string =>
  /Question \d+;/.exec(body.messages.find(({ role }) => role === 'user')?.content ?? '')?.[0] ?? '';
const turnsBefore = ({ body }: ModelRequest): number => body.messages.filter(({ role }) => role === 'assistant').length;

/** Workers of the first runs wait for one another: as many runs as there are places have delegated, and all of their workers are at work. */
let firstWorkers = 0;
let release = (): void => undefined;
const allAtWork = new Promise<void>((resolve) => (release = resolve));

function answer(request: ModelRequest): Reply {
  const [question, turn] = [questionOf(request), turnsBefore(request)];
  if (isSupervisor(request)) {
    if (turn === 0) {
      return callsReply(
        Array.from({ length: workersOfRun }, (_, place) => delegate(`d${place}`, `${question} part ${place}`)),
      );
    }
    return turn === 1 ? callsReply([readPad('r')]) : textReply(`The answer to ${question}`);
  }
  if (turn > 0) return textReply('It is noted.');
  firstWorkers += 1;
  if (firstWorkers === places * workersOfRun) release();
  return callsReply([append('a', `[VERIFIED] ${question}`)], { after: allAtWork.then(() => delay(50)) });
}

beforeAll(async () => {
  [cluster, model] = await Promise.all([startCluster(), startScriptedModelServer()]);
  model.respond(answer);
  const environment = { LLM_BASE_URL: model.baseUrl, LLM_MODEL: 'house-model', RUN_WORKERS: String(places / 2) };
  processes = await Promise.all([cluster.startServer(environment), cluster.startWorker(environment)]);
  client = processes[0]!.clientFor((await cluster.createTenant(processes[0]!, 'Ada')).secret);
});
afterAll(async () => {
  await cluster.close();
  await model.close();
});

interface RootRun {
  id: string;
  task: string;
  status: string;
  output: string | null;
  started: number;
  finished: number;
}

test('20 runs over two processes with two places each: four at a time, none lost, none twice, none waiting for its own workers', async () => {
  const threads = await Promise.all(Array.from({ length: runCount }, () => createThread(client)));
  await Promise.all(
    threads.map((threadId, index) => startResearch(client, threadId, { question: `Question ${index};` })),
  );
  const readRoots = (): Promise<RootRun[]> =>
    cluster.psql<RootRun>(`SELECT id, task, status, output, extract(epoch FROM started_at)::float8 AS started,
      extract(epoch FROM finished_at)::float8 AS finished FROM runs WHERE parent_run_id IS NULL`);
  await until('every run has ended', async () => (await readRoots()).every(({ finished }) => finished), 60_000);

  const roots = await readRoots();
  expect(roots.map(({ task }) => task).toSorted()).toEqual(threads.map((_, index) => `Question ${index};`).toSorted());
  for (const { task, status, output } of roots) {
    expect({ task, status, output }).toEqual({ task, status: 'COMPLETED', output: `The answer to ${task}` });
  }
  // A place is free before its next run begins.
  const atOnce = roots.map(
    ({ started }) => roots.filter((other) => other.started <= started && other.finished > started).length,
  );
  expect(Math.max(...atOnce)).toBe(places);

  const workers = await cluster.psql<{ status: string; count: number }>(
    'SELECT status, count(*)::int AS count FROM runs WHERE parent_run_id IS NOT NULL GROUP BY status',
  );
  expect(workers).toEqual([{ status: 'COMPLETED', count: runCount * workersOfRun }]);
  const [left] = await cluster.psql('SELECT count(*)::int AS count FROM threads WHERE ephemeral');
  expect(left).toEqual({ count: 0 });

  // Every turn of every run was asked for once, and nothing else.
  for (const { task } of roots) {
    const own = model.requests.filter((request) => questionOf(request) === task);
    expect(own.filter(isSupervisor).map(turnsBefore)).toEqual([0, 1, 2]);
    const ofWorkers = own.filter((request) => !isSupervisor(request)).map(turnsBefore);
    expect(ofWorkers.toSorted((a, b) => a - b)).toEqual([0, 0, 1, 1]);
  }
  model.verify();
  expectAnsweredCalls(model.requests);

  // Both took their share, and neither had anything to warn of.
  for (const process of processes) {
    const metrics = await (await fetch(`${process.url}/metrics`)).text();
    const ended = [...metrics.matchAll(/^scratchpad_runs_total\{[^}]*\} (\d+)$/gm)].map(([, count]) => Number(count));
    expect(ended.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(places / 2);
    expect(process.output()).not.toContain('Warning');
  }
}, 90_000);
