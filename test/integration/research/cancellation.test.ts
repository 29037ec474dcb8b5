// Runs that are stopped from outside: at once, with everything below them, and for good.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createThread, deleteThread, readLedger, startResearch } from '../../support/operations.js';
import {
  answerTo,
  append,
  cancelRun,
  delegate,
  expectAnsweredCalls,
  expectNoEphemera,
  isSupervisor,
  isWorkerOn,
  readPad,
  readRun,
  startResearchRuntime,
  terminalEvents,
  until,
  type ResearchRuntime,
} from '../../support/research-runtime.js';
import { callsReply, chunkOf, textReply, type Reply } from '../../support/scripted-model-server.js';

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

const start = async (threadId?: string, more: object = {}): Promise<string> =>
  startResearch(runtime.tenant.client, threadId ?? (await createThread(runtime.tenant.client)), more);

const endless = (text: string): Reply => ({
  chunks: Array.from({ length: 20_000 }, () => chunkOf({ content: text })),
  pauseMsBetweenChunks: 20,
});

const streamingWorkers = () =>
  runtime.model.requests.filter((request) => !isSupervisor(request) && !request.hasHungUp());

describe('a cancelled run', () => {
  it('closes every stream within two seconds, asks nobody again, and ends itself and its workers once and for good', async () => {
    const tasks = ['alpha', 'beta', 'gamma', 'delta'];
    runtime.supervisor(callsReply(tasks.map((task) => delegate(task, task))));
    for (const task of tasks.slice(0, 3)) runtime.worker(task, callsReply([append('w', task)]), endless('and so on '));
    const id = await start();
    await until('three workers streaming', () => runtime.model.requests.length === 7 && streamingWorkers().length >= 3);
    await until(
      'all three have written',
      () => runtime.eventsOf(id).filter((event) => event.type === 'scratchpad' && event.entry).length === 3,
    );
    // What they have done so far can be read while they go on.
    await until('every turn is counted', async () => {
      const { turnCount, childRuns } = await readRun(runtime, id);
      return turnCount === 1 && childRuns.every((worker) => worker.turnCount === 1);
    });
    const requests = [...runtime.model.requests];
    const cancelledAtMs = Date.now();
    await cancelRun(runtime, id);
    const streams = requests.filter(
      (request) => !isSupervisor(request) && request.body.messages.at(-1)?.role === 'tool',
    );
    expect(streams).toHaveLength(3);
    await Promise.all(streams.map(({ hungUp }) => hungUp));
    expect(Date.now() - cancelledAtMs).toBeLessThan(2000);
    await runtime.idle();
    expect(Date.now() - cancelledAtMs).toBeLessThan(2500);

    const run = await readRun(runtime, id);
    expect(run).toMatchObject({ status: 'CANCELLED', output: null, lastError: null });
    // The fourth waited for its turn and was never made.
    expect(run.childRuns.map(({ status }) => status)).toEqual(['CANCELLED', 'CANCELLED', 'CANCELLED']);
    const ends = terminalEvents(runtime.eventsOf(id));
    expect(ends.toSorted()).toEqual(
      [...run.childRuns.map((worker) => `${worker.id} WORKER_FAILED`), `${id} FINISHED`].toSorted(),
    );
    expect(ends.at(-1)).toBe(`${id} FINISHED`);
    const events = runtime.eventsOf(id);
    await cancelRun(runtime, id);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(runtime.model.requests).toEqual(requests);
    expect(runtime.eventsOf(id)).toEqual(events);
    expect(await readRun(runtime, id)).toEqual(run);
    expect(await readLedger(runtime.tenant.client, run.scratchpad!.id)).toHaveLength(3);
  });

  it('leaves its thread with every call answered, and ready for the next run', async () => {
    const threadId = await createThread(runtime.tenant.client);
    runtime.supervisor(callsReply([delegate('d1', 'first'), readPad('r'), delegate('d2', 'second')]));
    runtime.worker('first', endless('x'));
    runtime.worker('second', endless('y'));
    const id = await start(threadId);
    await until('both workers streaming', () => streamingWorkers().length === 2);
    await cancelRun(runtime, id);
    await runtime.idle();

    runtime.supervisor(callsReply([delegate('d1', 'third')]), textReply('Answer.'));
    runtime.worker('third', callsReply([append('w', 'found')]), textReply('Found.'));
    const next = await start(threadId);
    await runtime.idle();
    expect((await readRun(runtime, next)).status).toBe('COMPLETED');
    const first = runtime.model.requests.find((request) => isSupervisor(request) && request.body.messages.length > 2)!;
    for (const call of ['d1', 'd2']) expect(JSON.parse(answerTo(first, call))).toMatchObject({ code: 'CANCELLED' });
    expect(answerTo(first, 'r')).not.toContain('is_error');
  });

  it('can be a delegated worker alone, of which its supervisor reads and goes on', async () => {
    runtime.supervisor(callsReply([delegate('d1', 'unwanted'), delegate('d2', 'wanted')]), textReply('One.'));
    runtime.worker('unwanted', endless('SECRET PROSE '));
    runtime.worker('wanted', callsReply([append('w', 'found')]), textReply('Found.'));
    const id = await start();
    await until('the worker streaming', () => runtime.model.requests.some(isWorkerOn('unwanted')));
    const worker = (await readRun(runtime, id)).childRuns.find(({ task }) => task === 'unwanted')!;
    await cancelRun(runtime, worker.id);
    await runtime.idle();
    const run = await readRun(runtime, id);
    expect(run).toMatchObject({ status: 'COMPLETED', output: 'One.' });
    expect(run.childRuns.map(({ task, status }) => `${task} ${status}`).toSorted()).toEqual([
      'unwanted CANCELLED',
      'wanted COMPLETED',
    ]);
    const last = runtime.model.requests.findLast(isSupervisor)!;
    expect(JSON.parse(answerTo(last, 'd1'))).toMatchObject({ is_error: true, code: 'CANCELLED' });
    expect(JSON.stringify(last.body)).not.toContain('SECRET');
  });

  it('takes everything along when its thread is deleted', async () => {
    const threadId = await createThread(runtime.tenant.client);
    runtime.supervisor(callsReply([delegate('d', 'work')]));
    runtime.worker('work', endless('x'));
    await start(threadId);
    await until('the worker streaming', () => streamingWorkers().length === 1);
    const request = runtime.model.requests.at(-1)!;
    await deleteThread(runtime.tenant.client, threadId);
    await request.hungUp;
    await runtime.idle();
    expect(await runtime.service.psql('SELECT 1 FROM runs WHERE thread_id = $1', [threadId])).toEqual([]);
  });

  it('is not executed at all when it was cancelled while it waited', async () => {
    let isCancelled = false;
    runtime.beforeExecution = async (run) => {
      await cancelRun(runtime, run.id);
      isCancelled = true;
    };
    const id = await start();
    await runtime.idle();
    expect(isCancelled).toBe(true);
    expect(await readRun(runtime, id)).toMatchObject({ status: 'CANCELLED', startedAt: null });
    expect(runtime.model.requests).toEqual([]);
    expect(terminalEvents(runtime.eventsOf(id))).toEqual([`${id} FINISHED`]);
  });

  it('waits for what a cancelled call is still writing, so that nothing happens after its end', async () => {
    const { scratchpads } = runtime.dependencies;
    let written = 0;
    let isWriting = false;
    runtime.overrides = {
      scratchpads: {
        ...scratchpads,
        async appendEntry(...input) {
          isWriting = true;
          await new Promise((resolve) => setTimeout(resolve, 700));
          written++;
          return await scratchpads.appendEntry(...input);
        },
      },
    };
    runtime.supervisor(callsReply([append('a', 'late')]));
    const id = await start();
    await until('a write under way', () => isWriting);
    await cancelRun(runtime, id);
    await runtime.idle();
    expect(written).toBe(1);
    expect((await readRun(runtime, id)).status).toBe('CANCELLED');
    expect(terminalEvents(runtime.eventsOf(id).slice(-1))).toEqual([`${id} FINISHED`]);
  });
});
