// What a supervisor gets from its workers, and what it does not get.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createThread, readLedger, startResearch } from '../../support/operations.js';
import {
  answerTo,
  append,
  delegate,
  expectAnsweredCalls,
  expectNoEphemera,
  isSupervisor,
  isWorkerOn,
  readPad,
  readPage,
  readRun,
  search,
  startResearchRuntime,
  terminalEvents,
  until,
  update,
  type EndedRun,
  type ResearchRuntime,
} from '../../support/research-runtime.js';
import { callsReply, chunkOf, textReply, type ModelRequest, type Reply } from '../../support/scripted-model-server.js';

let runtime: ResearchRuntime;

beforeAll(async () => {
  runtime = await startResearchRuntime();
});
afterEach(async () => {
  await runtime.idle();
  runtime.reset();
  expectAnsweredCalls(runtime.model.requests.splice(0));
  await expectNoEphemera(runtime);
});
afterAll(() => runtime.close());

async function research(more: object = {}): Promise<EndedRun> {
  const id = await startResearch(runtime.tenant.client, await createThread(runtime.tenant.client), more);
  await runtime.idle();
  return await readRun(runtime, id);
}

const supervisorRequests = (): ModelRequest[] => runtime.model.requests.filter(isSupervisor);
const resultOf = (callId: string): Record<string, unknown> =>
  JSON.parse(answerTo(supervisorRequests().at(-1)!, callId)) as Record<string, unknown>;
const workerOn = ({ childRuns }: EndedRun, task: string): EndedRun => childRuns.find((run) => run.task === task)!;
/** Some text, and then the provider is gone. */
const dyingReply = (text: string): Reply => ({
  chunks: [chunkOf({ role: 'assistant', content: text })],
  ending: 'die',
});

describe('a delegation', () => {
  it('answers two successes and one error when one of three workers fails, and keeps what that one had appended', async () => {
    runtime.supervisor(
      callsReply([delegate('d1', 'task one'), delegate('d2', 'task two'), delegate('d3', 'task three')]),
      textReply('Two of three.'),
    );
    runtime.worker('task one', callsReply([append('w', 'one found')]), textReply('report one'));
    runtime.worker('task two', callsReply([append('w', 'two found')]), dyingReply('PARTIAL PROSE of two'));
    runtime.worker('task three', callsReply([append('w', 'three found')]), textReply('report three'));
    const run = await research();
    expect(run).toMatchObject({ status: 'COMPLETED', output: 'Two of three.' });
    expect([resultOf('d1'), resultOf('d3')]).toEqual([
      { status: 'COMPLETED', report: 'report one', entries_appended: 1, urls_fetched: [] },
      { status: 'COMPLETED', report: 'report three', entries_appended: 1, urls_fetched: [] },
    ]);
    const failed = workerOn(run, 'task two');
    expect(failed).toMatchObject({ status: 'FAILED', output: null, turnCount: 1 });
    expect(resultOf('d2')).toEqual({
      is_error: true,
      code: failed.lastError!.code,
      error: expect.stringContaining(`${failed.lastError!.message} What it had appended stays`) as string,
    });
    expect(failed.lastError!.code).toMatch(/^PROVIDER_/);
    expect(JSON.stringify(supervisorRequests().map(({ body }) => body))).not.toContain('PARTIAL');
    const ledger = await readLedger(runtime.tenant.client, run.scratchpad!.id);
    expect(ledger.map(({ content, author }) => `${author}: ${content}`).toSorted()).toEqual([
      'worker-1: one found',
      'worker-2: two found',
      'worker-3: three found',
    ]);
    expect(ledger.find(({ content }) => content === 'two found')!.runId).toBe(failed.id);
    expect(terminalEvents(runtime.eventsOf(run.id)).toSorted()).toEqual(
      [
        `${workerOn(run, 'task one').id} WORKER_COMPLETED`,
        `${failed.id} WORKER_FAILED`,
        `${workerOn(run, 'task three').id} WORKER_COMPLETED`,
        `${run.id} FINISHED`,
      ].toSorted(),
    );
  });

  it('lets a bounded number of workers run at a time, and the others wait for their turn', async () => {
    const tasks = ['alpha', 'beta', 'gamma', 'delta'];
    const order: string[] = [];
    const releases: (() => void)[] = [];
    runtime.supervisor(callsReply(tasks.map((task) => delegate(task, task))), textReply('All four.'));
    for (const task of tasks) {
      runtime.worker(
        task,
        () => {
          order.push(task);
          return callsReply([append('w', `found ${task}`)], { after: new Promise<void>((go) => releases.push(go)) });
        },
        textReply(`report ${task}`),
      );
    }
    const id = await startResearch(runtime.tenant.client, await createThread(runtime.tenant.client), { maxWorkers: 2 });
    await until('two at work', () => releases.length === 2);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(order.toSorted()).toEqual(['alpha', 'beta']);
    releases[0]!();
    await until('a third', () => releases.length === 3);
    expect(order[2]).toBe('gamma');
    releases[1]!();
    releases[2]!();
    await until('a fourth', () => releases.length === 4);
    releases[3]!();
    await runtime.idle();
    expect((await readRun(runtime, id)).status).toBe('COMPLETED');
    expect(tasks.map((task) => resultOf(task).report)).toEqual(tasks.map((task) => `report ${task}`));
  });

  it('waits in any number without a warning of the process, and its run can still be cancelled', async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error): void => void warnings.push(warning);
    process.on('warning', hear);
    const calls = Array.from({ length: 30 }, (_, place) => delegate(`d${place}`, `task ${place} of many`));
    runtime.supervisor(callsReply(calls));
    runtime.worker('task 0 of many', { chunks: [chunkOf({ content: 'Hm' })], ending: 'hang' });
    const id = await startResearch(runtime.tenant.client, await createThread(runtime.tenant.client), { maxWorkers: 1 });
    await until('the first is at work', () => runtime.model.requests.length === 2);
    await runtime.tenant.client.run('mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { id } } }', { id });
    await runtime.idle();
    expect(await readRun(runtime, id)).toMatchObject({ status: 'CANCELLED', childRuns: [{ status: 'CANCELLED' }] });
    // A warning is emitted with the next tick.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', hear);
    expect(warnings).toEqual([]);
  });

  it('is a success for a worker that recovers from every tool error', async () => {
    const { web } = runtime;
    runtime.supervisor(callsReply([delegate('d', 'recover')]), textReply('Recovered.'));
    runtime.worker(
      'recover',
      callsReply([
        { id: '1', name: 'no_such_tool', arguments: {} },
        { id: '2', name: 'append_scratchpad', arguments: '{"note": ' },
        { id: '3', name: 'append_scratchpad', arguments: { note: 'x', scratchpad_id: 'sp_1' } },
        update('4', 'mine now'),
        delegate('5', 'somebody else'),
        readPage('6', `${web.siteUrl}/nowhere`),
        search('7', 'lighthouse'),
      ]),
      callsReply([append('8', 'found'), readPage('9', `${web.siteUrl}/eddystone`)]),
      textReply('Here it is.'),
    );
    const run = await research();
    expect(resultOf('d')).toEqual({
      status: 'COMPLETED',
      report: 'Here it is.',
      entries_appended: 1,
      urls_fetched: [`${web.siteUrl}/eddystone`],
    });
    const last = runtime.model.requests.findLast(isWorkerOn('recover'))!;
    const codeOf = (id: string): unknown => (JSON.parse(answerTo(last, id)) as { code: string }).code;
    expect(['1', '2', '3', '4', '5'].map(codeOf)).toEqual([
      'UNKNOWN_TOOL',
      'INVALID_ARGUMENTS',
      'INVALID_ARGUMENTS',
      'TOOL_NOT_PERMITTED',
      'TOOL_NOT_PERMITTED',
    ]);
    expect(JSON.parse(answerTo(last, '6'))).toMatchObject({ is_error: true });
    expect(answerTo(last, '7')).toContain('jeddah-light');
    expect(run.childRuns).toHaveLength(1);
  });

  it('is an error for a worker that ends without text and without a finding, and none for one that has appended', async () => {
    runtime.supervisor(callsReply([delegate('d1', 'silent'), delegate('d2', 'quiet')]), textReply('Well.'));
    runtime.worker('silent', callsReply([readPad('w')]), textReply(''));
    runtime.worker('quiet', callsReply([append('w', 'found')]), textReply(' \n'));
    const run = await research();
    expect(workerOn(run, 'silent')).toMatchObject({ status: 'FAILED', lastError: { code: 'EMPTY_RESULT' } });
    expect(workerOn(run, 'quiet').status).toBe('COMPLETED');
    expect(resultOf('d1')).toMatchObject({ is_error: true, code: 'EMPTY_RESULT' });
    expect(resultOf('d2')).toMatchObject({ status: 'COMPLETED', entries_appended: 1 });
  });

  it('gives a worker eight turns and no ninth request', async () => {
    runtime.supervisor(callsReply([delegate('d', 'endless')]), textReply('Nothing.'));
    runtime.worker(
      'endless',
      callsReply([append('w0', 'found')]),
      ...Array.from({ length: 7 }, (_, turn) => callsReply([search(`w${turn + 1}`, `query ${turn}`)])),
    );
    const run = await research();
    const requests = runtime.model.requests.filter(isWorkerOn('endless'));
    expect(requests.map(({ body }) => body.tools !== undefined)).toEqual([...Array<boolean>(7).fill(true), false]);
    expect(workerOn(run, 'endless')).toMatchObject({
      status: 'FAILED',
      lastError: { code: 'MAX_TURNS_EXCEEDED' },
      turnCount: 8,
      maxTurns: 8,
    });
    expect(resultOf('d')).toMatchObject({ is_error: true, code: 'MAX_TURNS_EXCEEDED' });
    // Its finding stays; a worker that failed is no evidence.
    expect(await readLedger(runtime.tenant.client, run.scratchpad!.id)).toMatchObject([{ author: 'worker-1' }]);
    expect(run).toMatchObject({ status: 'FAILED', lastError: { code: 'NO_EVIDENCE' }, output: null });
  });

  it('is a success for a clean answer in the last permitted turn, which the caller may have made an early one', async () => {
    runtime.supervisor(callsReply([delegate('d', 'short')]), callsReply([readPad('r')]), textReply('Short.'));
    runtime.worker(
      'short',
      callsReply([append('w1', 'found')]),
      callsReply([readPad('w2')]),
      textReply('Just in time.'),
    );
    const run = await research({ maxTurns: 3 });
    expect(run).toMatchObject({ status: 'COMPLETED', maxTurns: 3, turnCount: 3, output: 'Short.' });
    expect(workerOn(run, 'short')).toMatchObject({ status: 'COMPLETED', maxTurns: 3, turnCount: 3 });
    const last = runtime.model.requests.findLast(isWorkerOn('short'))!;
    expect(last.body.tools).toBeUndefined();
  });

  it('does not execute the third identical call in a row', async () => {
    runtime.supervisor(callsReply([delegate('d', 'stubborn')]), textReply('Well.'));
    runtime.worker(
      'stubborn',
      callsReply([append('w1', 'again')]),
      callsReply([append('w2', 'again')]),
      callsReply([append('w3', 'again')]),
      textReply('I stop.'),
    );
    const run = await research();
    const last = runtime.model.requests.findLast(isWorkerOn('stubborn'))!;
    expect(JSON.parse(answerTo(last, 'w3'))).toMatchObject({ is_error: true, code: 'REPEATED_CALL' });
    expect(await readLedger(runtime.tenant.client, run.scratchpad!.id)).toHaveLength(2);
    expect(resultOf('d')).toMatchObject({ status: 'COMPLETED', entries_appended: 2 });
  });

  it('is one readable error when a worker cannot be made, and leaves its siblings alone', async () => {
    const { runStore } = runtime.dependencies;
    runtime.overrides = {
      runStore: {
        ...runStore,
        createWorker: (parent, order) =>
          order.task === 'impossible' ? Promise.reject(new Error('a bug')) : runStore.createWorker(parent, order),
      },
    };
    runtime.supervisor(callsReply([delegate('d1', 'impossible'), delegate('d2', 'possible')]), textReply('One.'));
    runtime.worker('possible', callsReply([append('w', 'found')]), textReply('report'));
    const run = await research();
    expect(run.status).toBe('COMPLETED');
    expect(resultOf('d1')).toMatchObject({ is_error: true, code: 'TOOL_FAILED' });
    expect(resultOf('d2')).toMatchObject({ status: 'COMPLETED' });
  });
});
