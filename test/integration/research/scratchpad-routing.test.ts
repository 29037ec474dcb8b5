// Shared state and private conversations are two destinations: what is written where, and what is looked up for it.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRunScratchpad } from '../../../src/research/scratchpad-port.js';
import type { RunMetaData } from '../../../src/research/run-store.js';
import { createId } from '../../../src/shared/ids.js';
import { createScratchpadTools } from '../../../src/tools/scratchpad/scratchpad-tools.js';
import { createScratchpad, createThread, readLedger, readState, startResearch } from '../../support/operations.js';
import {
  answerTo,
  append,
  delegate,
  isSupervisor,
  isWorkerOn,
  readPad,
  readRun,
  startResearchRuntime,
  update,
  type ResearchRuntime,
} from '../../support/research-runtime.js';
import { callsReply, textReply } from '../../support/scripted-model-server.js';

let runtime: ResearchRuntime;

beforeAll(async () => {
  runtime = await startResearchRuntime();
});
afterEach(() => runtime.reset());
afterAll(() => runtime.close());

/** Counts how often a thread's pad is looked up. */
function countingLookUps(): { count: () => number } {
  const { scratchpads } = runtime.dependencies;
  let lookUps = 0;
  runtime.overrides = {
    scratchpads: {
      ...scratchpads,
      ensureForThread(...input) {
        lookUps++;
        return scratchpads.ensureForThread(...input);
      },
    },
  };
  return { count: () => lookUps };
}

function scriptRun(): void {
  runtime.supervisor(
    callsReply([update('s1', 'SEED'), append('s2', 'by the supervisor')]),
    callsReply([delegate('s3', 'look')]),
    callsReply([readPad('s4')]),
    textReply('Answer.'),
  );
  runtime.worker(
    'look',
    callsReply([readPad('w1')]),
    callsReply([append('w2', 'by the worker')]),
    textReply('Report.'),
  );
}

async function expectOnePad(id: string): Promise<void> {
  const run = await readRun(runtime, id);
  expect(run.status).toBe('COMPLETED');
  const padId = run.scratchpad!.id;
  expect((await readState(runtime.tenant.client, padId)).content.text).toBe('SEED');
  expect((await readLedger(runtime.tenant.client, padId)).map(({ author, runId }) => [author, runId])).toEqual([
    ['supervisor', id],
    ['worker-1', run.childRuns[0]!.id],
  ]);
  const requests = runtime.model.requests.splice(0);
  const seen = answerTo(requests.findLast(isWorkerOn('look'))!, 'w1');
  expect(seen).toContain('SEED');
  expect(seen).toContain('by the supervisor');
  expect(answerTo(requests.findLast(isSupervisor)!, 's4')).toContain('by the worker');
  expect(
    await runtime.service.psql('SELECT 1 FROM scratchpads WHERE owner_id = $1', [runtime.tenant.userId]),
  ).toHaveLength(++pads);
}
let pads = 0;

describe("a run's scratchpad", () => {
  it('is the one that its metadata names, with no thread looked up by anybody', async () => {
    const lookUps = countingLookUps();
    scriptRun();
    const id = await startResearch(runtime.tenant.client, await createThread(runtime.tenant.client));
    await runtime.idle();
    await expectOnePad(id);
    expect(lookUps.count()).toBe(0);
  });

  it('is the one of the thread that its metadata names, for all three tools and all agents, looked up once by each', async () => {
    const lookUps = countingLookUps();
    runtime.beforeExecution = async (run) => {
      await runtime.service.psql(`UPDATE runs SET meta_data = meta_data - 'scratchpad_id' WHERE id = $1`, [run.id]);
    };
    scriptRun();
    const id = await startResearch(runtime.tenant.client, await createThread(runtime.tenant.client));
    await runtime.idle();
    await expectOnePad(id);
    expect(lookUps.count()).toBe(2);
  });

  it('is written to by its tools, while their results go to the conversation that called: the parent thread does not grow', async () => {
    const { service, tenant } = runtime;
    const threadId = await createThread(tenant.client);
    const counts: number[] = [];
    const count = async (): Promise<void> => {
      const [row] = await service.psql<{ count: number }>(
        'SELECT count(*)::int AS count FROM messages WHERE thread_id = $1',
        [threadId],
      );
      counts.push(row!.count);
    };
    runtime.supervisor(callsReply([delegate('s1', 'look')]), textReply('Answer.'));
    runtime.worker(
      'look',
      () => callsReply([readPad('w1')], { after: count() }),
      () => callsReply([append('w2', 'found')], { after: count() }),
      () => textReply('Report.', { after: count() }),
    );
    const id = await startResearch(tenant.client, threadId);
    await runtime.idle();
    expect((await readRun(runtime, id)).status).toBe('COMPLETED');
    expect(counts).toEqual([2, 2, 2]);
    const contents = await service.psql<{ content: string }>('SELECT content FROM messages WHERE thread_id = $1', [
      threadId,
    ]);
    expect(JSON.stringify(contents)).not.toContain('appended to the scratchpad');
    const [worker] = runtime.model.requests.filter(isWorkerOn('look')).slice(-1);
    expect([answerTo(worker!, 'w1'), answerTo(worker!, 'w2')].every((text) => text !== '')).toBe(true);
    runtime.model.requests.splice(0);
    pads++;
  });
});

describe('the scratchpad tools', () => {
  const tools = (metaData: RunMetaData) => {
    const pad = createRunScratchpad({
      scratchpads: runtime.dependencies.scratchpads,
      principal: { kind: 'user', userId: runtime.tenant.userId, apiKeyId: 'run' },
      metaData,
      runId: 'run_of_the_test',
      author: 'tester',
      assistantId: null,
      reporter: { scratchpad: () => {}, status: () => {} },
    });
    const [read, change, add] = createScratchpadTools(pad);
    const context = { signal: new AbortController().signal, callId: 'c' };
    return async (text: string): Promise<string> => {
      await change!.run({ content: text } as never, context);
      await add!.run({ note: `note on ${text}` } as never, context);
      return (await read!.run({} as never, context)).content;
    };
  };

  it('send no SQL statement to threads when they have the id', async () => {
    const scratchpadId = await createScratchpad(runtime.tenant.client);
    const use = tools({ scratchpad_id: scratchpadId, scratch_pad_thread: createId('thread') });
    await runtime.service.psql('ALTER TABLE threads RENAME TO hidden_threads');
    try {
      const seen = await use('text');
      expect(seen).toContain('note on text');
      const byThread = tools({ scratch_pad_thread: createId('thread') });
      await expect(byThread('text')).rejects.toThrow(/threads/);
    } finally {
      await runtime.service.psql('ALTER TABLE hidden_threads RENAME TO threads');
    }
  });

  it('are refused a pad of another owner, and none at all', async () => {
    const bob = await runtime.service.createTenant('Bob');
    const foreign = await createScratchpad(bob.client);
    await expect(tools({ scratchpad_id: foreign })('x')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(tools({ scratch_pad_thread: await createThread(bob.client) })('x')).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await expect(tools({})('x')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect((await readState(bob.client, foreign)).content.text).toBe('');
  });
});
