// How runs fail: each with its own code, one last event, every call answered, and nothing said that must not be.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createAssistant, createThread, startResearch } from '../../support/operations.js';
import {
  answerTo,
  append,
  delegate,
  expectAnsweredCalls,
  expectNoEphemera,
  isSupervisor,
  providerKey,
  readPad,
  readPage,
  readRun,
  startResearchRuntime,
  terminalEvents,
  update,
  type EndedRun,
  type ResearchRuntime,
} from '../../support/research-runtime.js';
import { callsReply, chunkOf, errorReply, textReply, type Reply } from '../../support/scripted-model-server.js';

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
  const run = await readRun(runtime, id);
  expect(terminalEvents(runtime.eventsOf(id)).filter((line) => line.startsWith(id))).toEqual([`${id} FINISHED`]);
  return run;
}

async function runAssistant(): Promise<EndedRun> {
  const { client } = runtime.tenant;
  const assistantId = await createAssistant(client, [{ type: 'scratchpad' }]);
  const { startRun } = await client.run<{ startRun: { run: { id: string } } }>(
    'mutation ($input: StartRunInput!) { startRun(input: $input) { run { id } } }',
    { input: { assistantId, threadId: await createThread(client), message: 'Do it.' } },
  );
  await runtime.idle();
  return await readRun(runtime, startRun.run.id);
}

const failedWith = (code: string) => ({
  status: 'FAILED',
  output: null,
  lastError: { code, message: expect.stringMatching(/\w/) as string },
  finishedAt: expect.any(String) as string,
});

/** A worker that finds something, so that a run does not fail for want of evidence. */
function withEvidence(): Reply {
  runtime.worker('find', callsReply([append('w', 'found')]), textReply('Found.'));
  return callsReply([delegate('d', 'find')]);
}

describe('a run fails', () => {
  it.each<[string, string, Reply[]]>([
    ['PROVIDER_ERROR', 'the provider refuses three times', [1, 2, 3].map(() => errorReply(503, 'away'))],
    [
      'PROVIDER_ERROR',
      'the connection breaks after partial text',
      [{ chunks: [chunkOf({ content: 'The ans' })], ending: 'die' }],
    ],
    ['PROVIDER_PROTOCOL', 'the stream ends without a reason', [{ chunks: [chunkOf({ content: 'The ans' })] }]],
    ['PROVIDER_PROTOCOL', 'calls are announced and none are sent', [{ chunks: [chunkOf({}, 'tool_calls')] }]],
    ['EMPTY_RESULT', 'there is no text in the last turn', [textReply('')]],
    ['EMPTY_RESULT', 'there is nothing but white space', [textReply(' \n ')]],
  ])('with %s when %s', async (code, _when, replies) => {
    runtime.supervisor(withEvidence(), ...replies);
    const run = await research();
    expect(run).toMatchObject({ ...failedWith(code), childRuns: [{ status: 'COMPLETED' }] });
    const [failed] = runtime.eventsOf(run.id).slice(-1);
    expect(failed).toMatchObject({
      phase: 'FINISHED',
      state: 'ERROR',
      activity: expect.stringContaining(code) as string,
    });
  });

  it('with MAX_TURNS_EXCEEDED after 24 turns, with its last call answered and no 25th request', async () => {
    runtime.supervisor(
      withEvidence(),
      ...Array.from({ length: 23 }, (_, turn) => callsReply([update(`u${turn}`, `plan ${turn}`)])),
    );
    expect(await research()).toMatchObject({ ...failedWith('MAX_TURNS_EXCEEDED'), turnCount: 24, maxTurns: 24 });
    expect(runtime.model.requests.filter(isSupervisor)).toHaveLength(24);
  });

  it('with NO_EVIDENCE when nothing was delegated, whatever the answer says', async () => {
    runtime.supervisor(textReply('I know it anyway.'));
    expect(await research()).toMatchObject(failedWith('NO_EVIDENCE'));
  });

  it('with NO_EVIDENCE when workers succeed and append nothing', async () => {
    runtime.supervisor(callsReply([delegate('d', 'talk')]), textReply('As the worker says.'));
    runtime.worker('talk', textReply('It is so.'));
    expect(await research()).toMatchObject({ ...failedWith('NO_EVIDENCE'), childRuns: [{ status: 'COMPLETED' }] });
  });

  it('with its own code although there is no evidence either', async () => {
    runtime.supervisor(...[1, 2, 3].map(() => errorReply(500, 'away')));
    expect(await research()).toMatchObject(failedWith('PROVIDER_ERROR'));
  });

  it('with CONTEXT_OVERFLOW when the task does not fit', async () => {
    runtime.overrides = { limits: { contextMaxTokens: 1500 } };
    expect(await research({ question: 'Why? '.repeat(2000) })).toMatchObject({
      ...failedWith('CONTEXT_OVERFLOW'),
      turnCount: 0,
    });
    expect(runtime.model.requests).toEqual([]);
  });

  it('with EXPIRED, and its workers with it, when its time is up', async () => {
    runtime.wallClockMs = 1500;
    runtime.supervisor(callsReply([delegate('d', 'slow')]));
    runtime.worker('slow', { chunks: [chunkOf({ content: 'I am' })], ending: 'hang' });
    const run = await research();
    expect(run).toMatchObject({ status: 'EXPIRED', lastError: null, output: null });
    expect(run.childRuns).toMatchObject([{ status: 'EXPIRED', output: null }]);
    expect(terminalEvents(runtime.eventsOf(run.id))).toEqual([
      `${run.childRuns[0]!.id} WORKER_FAILED`,
      `${run.id} FINISHED`,
    ]);
  });

  it('with INTERNAL when its conversation cannot be stored, and says why in the log alone', async () => {
    const { conversationOf } = runtime.dependencies;
    runtime.overrides = {
      conversationOf: (threadId) => ({
        ...conversationOf(threadId),
        append: () => Promise.reject(new Error('secret detail of the store')),
      }),
    };
    runtime.model.script(callsReply([readPad('1')]));
    const run = await runAssistant();
    expect(run).toMatchObject(failedWith('INTERNAL'));
    expect(JSON.stringify([run, runtime.eventsOf(run.id)])).not.toContain('secret detail');
    expect(runtime.log.join('')).toContain('secret detail');
  });

  it('with INTERNAL when its assistant is gone', async () => {
    runtime.beforeExecution = async () => {
      await runtime.service.psql('DELETE FROM assistants');
    };
    expect(await runAssistant()).toMatchObject(failedWith('INTERNAL'));
  });
});

describe('an answer that did not hold', () => {
  it('is no part of what the next run on the thread reads; one that held is', async () => {
    const { client } = runtime.tenant;
    const threadId = await createThread(client);
    const ask = async (question: string): Promise<EndedRun> => {
      const id = await startResearch(client, threadId, { question });
      await runtime.idle();
      return await readRun(runtime, id);
    };
    runtime.supervisor(textReply('Made up: it is 4711 metres.'));
    expect(await ask('How high?')).toMatchObject(failedWith('NO_EVIDENCE'));
    runtime.supervisor(withEvidence(), textReply('It is 49 metres.'));
    expect(await ask('How high is it really?')).toMatchObject({ status: 'COMPLETED', output: 'It is 49 metres.' });
    runtime.supervisor(textReply('As I said.'));
    await ask('Sure?');
    const last = JSON.stringify(runtime.model.requests.findLast(isSupervisor)!.body.messages);
    expect(last).toContain('It is 49 metres.');
    expect(JSON.stringify(runtime.model.requests.map(({ body }) => body))).not.toContain('Made up');
  });

  it('is not left behind by a run that somebody else ended while it was being stored', async () => {
    const { runStore } = runtime.dependencies;
    runtime.overrides = {
      runStore: {
        ...runStore,
        async finish(runId, end) {
          await runStore.finish(runId, { status: 'CANCELLED' });
          return await runStore.finish(runId, end);
        },
      },
    };
    runtime.model.script(textReply('Too late.'));
    const run = await runAssistant();
    expect(run.status).toBe('CANCELLED');
    expect((await runtime.dependencies.conversationOf(run.thread!.id).read()).map(({ role }) => role)).toEqual([
      'user',
    ]);
  });
});

describe('every call', () => {
  it('is answered once and in order before the next request: parallel, unknown, broken, throwing, forbidden', async () => {
    const { scratchpads } = runtime.dependencies;
    runtime.overrides = {
      scratchpads: { ...scratchpads, formattedView: () => Promise.reject(new Error('private reason')) },
    };
    runtime.supervisor(
      callsReply([
        delegate('d', 'find'),
        { id: 'unknown', name: 'no_such_tool', arguments: {} },
        { id: 'broken', name: 'update_scratchpad', arguments: '{"content": "x' },
        readPad('throws'),
        readPage('forbidden', 'https://example.com/'),
        { id: 'extra', name: 'read_scratchpad', arguments: { scratchpad_id: 'sp_x' } },
        update('fine', 'plan'),
      ]),
      textReply('Answer.'),
    );
    runtime.worker('find', callsReply([append('w', 'found')]), textReply('Found.'));
    expect((await research()).status).toBe('COMPLETED');
    const last = runtime.model.requests.findLast(isSupervisor)!;
    const codes = ['unknown', 'broken', 'throws', 'forbidden', 'extra'].map(
      (id) => (JSON.parse(answerTo(last, id)) as { code: string }).code,
    );
    expect(codes).toEqual([
      'UNKNOWN_TOOL',
      'INVALID_ARGUMENTS',
      'TOOL_FAILED',
      'TOOL_NOT_PERMITTED',
      'INVALID_ARGUMENTS',
    ]);
    expect(answerTo(last, 'fine')).toContain('replaced');
    expect(JSON.stringify(last.body)).not.toContain('private reason');
    const events = runtime.eventsOf((await latestRun()).id);
    const reads = events.flatMap((event) =>
      event.type === 'scratchpad' && event.operation === 'READ' ? [event.state] : [],
    );
    // One failed, and one was refused.
    expect(reads).toEqual(['IN_PROGRESS', 'ERROR', 'IN_PROGRESS', 'ERROR']);
  });
});

const latestRun = async (): Promise<{ id: string }> =>
  (
    await runtime.service.psql<{ id: string }>(`SELECT id FROM runs WHERE kind = 'RESEARCH' ORDER BY id DESC LIMIT 1`)
  )[0]!;

describe('a conversation that a crash left between two results', () => {
  it('is closed by the next run before its first request, for good', async () => {
    const { client } = runtime.tenant;
    const threadId = await createThread(client);
    const conversation = runtime.dependencies.conversationOf(threadId);
    const call = (id: string) => ({ id, name: 'read_scratchpad', arguments: '{}' });
    await conversation.append({ role: 'user', content: 'Earlier.' });
    await conversation.append({ role: 'assistant', content: '', toolCalls: [call('a'), call('b'), call('c')] });
    await conversation.append({ role: 'tool', toolCallId: 'b', content: 'the pad', isError: false });

    runtime.supervisor(withEvidence(), textReply('Answer.'));
    await startResearch(client, threadId);
    await runtime.idle();
    const first = runtime.model.requests.find(isSupervisor)!;
    expect(first.body.messages.slice(1).map(({ role, tool_call_id }) => tool_call_id ?? role)).toEqual([
      'user',
      'assistant',
      'a',
      'b',
      'c',
      'user',
    ]);
    expect(answerTo(first, 'b')).toBe('the pad');
    for (const id of ['a', 'c']) expect(JSON.parse(answerTo(first, id))).toMatchObject({ code: 'INTERRUPTED' });
    const stored = await conversation.read();
    expect(stored.flatMap((message) => (message.role === 'tool' ? [message.toolCallId] : []))).toEqual([
      'b',
      'a',
      'c',
      'd',
    ]);
  });
});

describe('the end of a run', () => {
  it('is stored when SQL is away for a moment, and told once although an answer was lost', async () => {
    const { runStore } = runtime.dependencies;
    let tries = 0;
    runtime.overrides = {
      runStore: {
        ...runStore,
        async finish(runId, end) {
          tries++;
          if (tries === 1) throw new Error('the connection is gone');
          const row = await runStore.finish(runId, end);
          if (tries === 2) throw new Error('the answer is lost');
          return row;
        },
      },
    };
    runtime.model.script(textReply('Done.'));
    const run = await runAssistant();
    expect(run).toMatchObject({ status: 'COMPLETED', output: 'Done.' });
    expect(tries).toBe(3);
    expect(terminalEvents(runtime.eventsOf(run.id))).toEqual([`${run.id} FINISHED`]);
  });

  it('is not told when somebody else has ended the run meanwhile', async () => {
    const { runStore } = runtime.dependencies;
    runtime.model.script({ reply: () => textReply('Done.', { after: lose() }) });
    let id = '';
    runtime.beforeExecution = async (run) => {
      id = run.id;
      await Promise.resolve();
    };
    const lose = () => runStore.finish(id, { status: 'FAILED', error: { code: 'WORKER_LOST', message: 'Lost.' } });
    const run = await runAssistant();
    expect(run).toMatchObject(failedWith('WORKER_LOST'));
    expect(terminalEvents(runtime.eventsOf(run.id))).toEqual([]);
  });

  it('stops a supervisor that delegates after somebody else has ended it', async () => {
    const { runStore } = runtime.dependencies;
    let id = '';
    runtime.beforeExecution = async (run) => {
      id = run.id;
      await Promise.resolve();
    };
    const lose = () => runStore.finish(id, { status: 'FAILED', error: { code: 'WORKER_LOST', message: 'Lost.' } });
    runtime.supervisor(() => callsReply([delegate('d', 'too late')], { after: lose() }));
    await startResearch(runtime.tenant.client, await createThread(runtime.tenant.client));
    await runtime.idle();
    expect(await readRun(runtime, id)).toMatchObject({ ...failedWith('WORKER_LOST'), childRuns: [] });
    expect(runtime.model.requests).toHaveLength(1);
  });
});

describe("the provider's key", () => {
  it('is in no row, no Redis key, no event, no log line and no answer, also when the provider echoes it', async () => {
    const { service, tenant } = runtime;
    runtime.supervisor(withEvidence(), errorReply(401, `Incorrect API key: ${providerKey}`));
    const failed = await research();
    expect(failed).toMatchObject({ lastError: { code: 'PROVIDER_ERROR' } });
    runtime.supervisor(withEvidence(), { chunks: [{ error: { message: `key ${providerKey}` } }] });
    await research();

    const tables = await service.psql<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
    );
    const rows = await Promise.all(tables.map(({ name }) => service.psql(`SELECT t::text FROM "${name}" t`)));
    const redis = service.redis.client();
    const keys = await redis.keys('*');
    const values = await Promise.all(keys.map(async (key) => (await redis.dumpBuffer(key)).toString('latin1')));
    const all = {
      rows,
      keys,
      values,
      log: runtime.log,
      events: runtime.eventsOf(failed.id),
      failed,
      tenant: tenant.userId,
    };
    expect(runtime.model.requests.length).toBeGreaterThan(0);
    expect(JSON.stringify(all)).not.toContain(providerKey);
    expect(JSON.stringify(all)).toContain('PROVIDER_ERROR');
  });
});
