// Runs from start to end: an assistant on its thread, and a supervisor with its workers, watched from outside.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createAssistant, createThread, readLedger, readState, startResearch } from '../../support/operations.js';
import {
  answerTo,
  append,
  delegate,
  expectAnsweredCalls,
  isSupervisor,
  isWorkerOn,
  providerKey,
  readPad,
  readPage,
  readRun,
  search,
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

const messagesOf = async (threadId: string): Promise<{ role: string; content: string }[]> =>
  (
    await runtime.tenant.client.run<{
      thread: { messages: { edges: { node: { role: string; content: string } }[] } };
    }>('query ($id: ID!) { thread(id: $id) { messages(first: 100) { edges { node { role content } } } } }', {
      id: threadId,
    })
  ).thread.messages.edges.map(({ node }) => node);

describe('a research run', () => {
  it('plans, lets two workers research and share their findings, and answers from the scratchpad', async () => {
    const { tenant, web, model } = runtime;
    const first = model.requests.length;
    const vierge = `${web.siteUrl}/ile-vierge`;
    const eddystone = `${web.siteUrl}/eddystone`;
    const finding = `[VERIFIED] 82.5 m. MARKER-A7 Source: ${vierge}`;
    const answer = `Île Vierge is taller (${vierge}). Somebody says otherwise: https://elsewhere.example/x.`;

    runtime.supervisor(
      callsReply([update('s1', '[STRATEGY] SEED-1 heights of two lighthouses')], { text: 'I plan.' }),
      callsReply([delegate('s2', 'Height of Île Vierge', 'In metres.')]),
      callsReply([readPad('s3')]),
      callsReply([delegate('s4', 'Height of Eddystone')]),
      callsReply([readPad('s5')]),
      textReply(answer),
    );
    runtime.worker(
      'Height of Île Vierge',
      callsReply([readPad('a1'), search('a2', 'Île Vierge')]),
      callsReply([append('a3', '[PENDING] height'), readPage('a4', vierge)]),
      callsReply([append('a5', finding)]),
      textReply('82.5 metres.'),
    );
    runtime.worker(
      'Height of Eddystone',
      callsReply([readPad('b1')]),
      callsReply([readPage('b2', eddystone)]),
      callsReply([append('b3', '[VERIFIED] 49 m. ACK MARKER-A7')]),
      textReply('49 metres.'),
    );
    const threadId = await createThread(tenant.client);
    const id = await startResearch(tenant.client, threadId);
    await runtime.idle();

    const run = await readRun(runtime, id);
    expect(run).toMatchObject({
      status: 'COMPLETED',
      output: answer,
      unverifiedCitations: ['https://elsewhere.example/x'],
      turnCount: 6,
      lastError: null,
    });
    expect(run.childRuns).toMatchObject([
      {
        kind: 'RESEARCH_WORKER',
        status: 'COMPLETED',
        task: 'Height of Île Vierge',
        output: '82.5 metres.',
        turnCount: 4,
      },
      { kind: 'RESEARCH_WORKER', status: 'COMPLETED', task: 'Height of Eddystone', output: '49 metres.', turnCount: 4 },
    ]);

    const requests = model.requests.slice(first);
    expectAnsweredCalls(requests);
    const [a, b, s] = [isWorkerOn('Île Vierge'), isWorkerOn('Eddystone'), isSupervisor].map((is) =>
      requests.filter(is),
    );
    expect(a!.at(-1)!.body.messages[1]).toEqual({
      role: 'user',
      content: 'Height of Île Vierge\n\nRequirements:\nIn metres.',
    });
    expect(answerTo(a![1]!, 'a1')).toContain('SEED-1');
    expect(answerTo(s![3]!, 's3')).toContain('MARKER-A7');
    expect(answerTo(b![1]!, 'b1')).toContain('SEED-1');
    expect(answerTo(b![1]!, 'b1')).toContain(finding);
    expect(JSON.parse(answerTo(s![2]!, 's2'))).toEqual({
      status: 'COMPLETED',
      report: '82.5 metres.',
      entries_appended: 2,
      urls_fetched: [vierge],
    });
    // Nothing of a worker's conversation is in the supervisor's, nor on the thread.
    const supervisorText = JSON.stringify(s!.map(({ body }) => body.messages));
    for (const private_ of ['perform_web_search', 'Granite', 'read_web_page', 'a2', 'a4']) {
      expect(supervisorText).not.toContain(`"${private_}"`);
    }
    expect(JSON.stringify(s!.map(({ body }) => body.tools))).not.toContain('read_web_page');
    expect(JSON.stringify(a!.map(({ body }) => body.tools))).not.toMatch(/update_scratchpad|delegate_research_task/);
    const messages = await messagesOf(threadId);
    expect(messages.map(({ role }) => role)).toEqual([
      'USER',
      ...Array.from({ length: 5 }, () => ['ASSISTANT', 'TOOL']).flat(),
      'ASSISTANT',
    ]);
    expect(messages.at(-1)!.content).toBe(answer);

    const padId = run.scratchpad!.id;
    expect(run.metaData).toEqual({ scratchpad_id: padId, scratch_pad_thread: threadId });
    expect(run.childRuns.map(({ metaData }) => metaData)).toEqual([run.metaData, run.metaData]);
    expect((await readState(tenant.client, padId)).content.text).toBe('[STRATEGY] SEED-1 heights of two lighthouses');
    expect(
      (await readLedger(tenant.client, padId)).map(({ content, author, runId }) => [content, author, runId]),
    ).toEqual([
      ['[PENDING] height', 'worker-1', run.childRuns[0]!.id],
      [finding, 'worker-1', run.childRuns[0]!.id],
      ['[VERIFIED] 49 m. ACK MARKER-A7', 'worker-2', run.childRuns[1]!.id],
    ]);
    expect(
      await runtime.service.psql('SELECT 1 FROM threads WHERE ephemeral UNION ALL SELECT 1 FROM assistants'),
    ).toEqual([]);
    expect(model.requests.every(({ headers }) => headers.authorization === `Bearer ${providerKey}`)).toBe(true);
  });

  it('tells its stream of every step in order, workers with it, and of its end once', async () => {
    const { tenant } = runtime;
    runtime.supervisor(
      callsReply([update('s1', '[STRATEGY] x')], { text: 'Let me plan.' }),
      callsReply([delegate('s2', 'Look at the tower')]),
      callsReply([readPad('s3')]),
      textReply('It stands there, as everybody knows.'),
    );
    runtime.worker('Look at the tower', callsReply([append('w1', 'It stands.')]), textReply('It stands.'));
    const id = await startResearch(tenant.client, await createThread(tenant.client));
    await runtime.idle();
    const run = await readRun(runtime, id);
    const worker = run.childRuns[0]!.id;
    const events = runtime.eventsOf(id);
    const who = (origin: string): string => (origin === id ? 'supervisor' : origin === worker ? 'worker' : origin);
    const lines = events.flatMap((event) => {
      if (event.type === 'status') return [`${who(event.originRunId)} ${event.phase} ${event.state}`];
      if (event.type === 'scratchpad') {
        const payload = event.entry?.content ?? event.content?.text;
        return [
          `${who(event.originRunId)} ${event.operation} ${event.state}${payload === undefined ? '' : `: ${payload}`}`,
        ];
      }
      return event.type === 'reasoning' ? [`${who(event.originRunId)} thinks: ${event.delta}`] : [];
    });
    expect(lines).toEqual([
      'supervisor STARTED IN_PROGRESS',
      'supervisor PLANNING IN_PROGRESS',
      'supervisor thinks: Let me plan.',
      'supervisor UPDATE IN_PROGRESS',
      'supervisor UPDATE SUCCESS: [STRATEGY] x',
      'supervisor UPDATE COMPLETED',
      'supervisor SCRATCHPAD_UPDATED COMPLETED',
      'supervisor DELEGATED IN_PROGRESS',
      'worker RESEARCHING IN_PROGRESS',
      'worker APPEND IN_PROGRESS',
      'worker APPEND SUCCESS: It stands.',
      'worker APPEND COMPLETED',
      'worker SCRATCHPAD_UPDATED COMPLETED',
      'worker WORKER_COMPLETED COMPLETED',
      'supervisor READ IN_PROGRESS',
      'supervisor READ SUCCESS',
      'supervisor READ COMPLETED',
      'supervisor SYNTHESISING IN_PROGRESS',
      'supervisor FINISHED COMPLETED',
    ]);
    const success = events.find((event) => event.type === 'scratchpad' && event.entry);
    expect(success).toMatchObject({
      scratchpadId: run.scratchpad!.id,
      tool: 'append_scratchpad',
      entry: { author: 'worker-1', runId: worker },
      replayed: false,
      expiresAt: expect.any(Date) as Date,
      assistantId: expect.stringMatching(/^asst_/) as string,
    });
    const said = events.flatMap((event) => (event.type === 'content' && event.originRunId === id ? [event.delta] : []));
    expect(said.join('')).toBe(run.output);
    // No call id, no function, nothing to execute.
    expect(JSON.stringify(events)).not.toMatch(/tool_call|"s1"|"w1"|arguments|function/);
  });

  it('tells of every call to the scratchpad that failed, also of one that never reached it', async () => {
    const { tenant } = runtime;
    runtime.supervisor(callsReply([delegate('s1', 'Look once')]), textReply('It stands.'));
    runtime.worker(
      'Look once',
      callsReply([
        { id: 'w1', name: 'append_scratchpad', arguments: '{"note": ' },
        { id: 'w2', name: 'append_scratchpad', arguments: { note: 'x', scratchpad_id: 'sp_1' } },
        update('w3', 'not for a worker'),
        { id: 'w4', name: 'no_such_tool', arguments: {} },
      ]),
      callsReply([append('w5', 'Seen.')], { finishReason: 'length' }),
      callsReply([append('w6', 'Seen.')]),
      textReply('I have seen it.'),
    );
    const id = await startResearch(tenant.client, await createThread(tenant.client));
    await runtime.idle();
    const padId = (await readRun(runtime, id)).scratchpad!.id;
    const events = runtime.eventsOf(id).flatMap((event) => (event.type === 'scratchpad' ? [event] : []));
    expect(events.every(({ scratchpadId, originRunId }) => scratchpadId === padId && originRunId !== id)).toBe(true);
    expect(events.map(({ tool, operation, state }) => [tool, operation, state].join(' '))).toEqual([
      // Calls of one message run side by side: one that nobody may make needs no look at its arguments.
      ...['UPDATE', 'APPEND', 'APPEND', 'APPEND'].flatMap((operation) =>
        ['IN_PROGRESS', 'ERROR'].map((state) => `${operation.toLowerCase()}_scratchpad ${operation} ${state}`),
      ),
      ...['IN_PROGRESS', 'SUCCESS', 'COMPLETED'].map((state) => `append_scratchpad APPEND ${state}`),
    ]);
    expect(await readLedger(tenant.client, padId)).toHaveLength(1);
  });

  it('says that the answer is being written with its first word, and never of what a supervisor says before a call', async () => {
    const { tenant } = runtime;
    const preamble = 'Before I go on, here is what the workers have found. '.repeat(40);
    runtime.supervisor(
      callsReply([delegate('s1', 'Look once')], { text: preamble }),
      callsReply([readPad('s2')]),
      callsReply([delegate('s3', 'Look twice')], { text: preamble }),
      callsReply([readPad('s4')]),
      callsReply([readPad('s5')], { text: preamble }),
      textReply('It stands there.'),
    );
    for (const task of ['Look once', 'Look twice']) {
      runtime.worker(task, callsReply([append('w1', 'Seen.')]), textReply('Seen.'));
    }
    const id = await startResearch(tenant.client, await createThread(tenant.client));
    await runtime.idle();
    const events = runtime.eventsOf(id);
    const phases = events.flatMap((event) => (event.type === 'status' ? [event.phase] : []));
    expect(phases.filter((phase) => phase === 'DELEGATED' || phase === 'SYNTHESISING')).toEqual([
      'DELEGATED',
      'DELEGATED',
      'SYNTHESISING',
    ]);
    const place = events.findIndex((event) => event.type === 'status' && event.phase === 'SYNTHESISING');
    expect(events[place + 1]).toMatchObject({ type: 'content', delta: 'It stands there.' });
  });

  it('has one answer, whatever was said before the calls: in its output, in its events, on its thread, in a report', async () => {
    const { tenant } = runtime;
    const chatter = 'CHATTER before a call, and much of it. '.repeat(60);
    runtime.supervisor(
      callsReply([delegate('s1', 'Look once')], { text: chatter }),
      callsReply([readPad('s2')], { text: chatter }),
      callsReply([readPad('s3')], { text: chatter }),
      textReply('It stands there.'),
    );
    runtime.worker(
      'Look once',
      callsReply([append('w1', 'Seen.')], { text: chatter }),
      callsReply([readPad('w2')], { text: chatter }),
      textReply('I have seen it.'),
    );
    const threadId = await createThread(tenant.client);
    const id = await startResearch(tenant.client, threadId);
    await runtime.idle();
    const run = await readRun(runtime, id);
    const worker = run.childRuns[0]!;
    expect([run.output, worker.output]).toEqual(['It stands there.', 'I have seen it.']);
    const tellOf = (type: 'content' | 'reasoning', origin: string): string =>
      runtime
        .eventsOf(id)
        .flatMap((event) => (event.type === type && event.originRunId === origin ? [event.delta] : []))
        .join('');
    expect([tellOf('content', id), tellOf('content', worker.id)]).toEqual([run.output, worker.output]);
    expect([tellOf('reasoning', id), tellOf('reasoning', worker.id)]).toEqual([chatter.repeat(3), chatter.repeat(2)]);
    expect((await messagesOf(threadId)).at(-1)).toEqual({ role: 'ASSISTANT', content: run.output });
    expect(JSON.parse(answerTo(runtime.model.requests.findLast(isSupervisor)!, 's1'))).toMatchObject({
      report: 'I have seen it.',
    });
  });

  it('streams its answer while it is being written where it can be nothing else', async () => {
    const { tenant } = runtime;
    const answer = 'Here is the whole of it, in every detail that anybody may ask for. '.repeat(10);
    runtime.supervisor(callsReply([delegate('s1', 'Look once')]), {
      ...textReply(answer),
      chunks: textReply(answer).chunks!.slice(0, -1),
      ending: 'hang',
    });
    runtime.worker('Look once', callsReply([append('w1', 'Seen.')]), textReply('Seen.'));
    const id = await startResearch(tenant.client, await createThread(tenant.client), { maxTurns: 2 });
    const said = (): string =>
      runtime
        .eventsOf(id)
        .flatMap((event) => (event.type === 'content' && event.originRunId === id ? [event.delta] : []))
        .join('');
    await expect.poll(said, { timeout: 10_000 }).toBe(answer);
    await tenant.client.run('mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { id } } }', { id });
    await runtime.idle();
    expect((await readRun(runtime, id)).status).toBe('CANCELLED');
  });
});

describe('a run of an assistant', () => {
  it('uses the tools it subscribed to, under its name, on its thread', async () => {
    const { tenant, web, model } = runtime;
    const first = model.requests.length;
    const assistantId = await createAssistant(tenant.client, [{ type: 'scratchpad' }, { type: 'web_search' }], 'small');
    const threadId = await createThread(tenant.client);
    model.script(
      callsReply([append('1', 'noted'), update('2', 'whole'), readPage('3', `${web.siteUrl}/eddystone`)]),
      textReply(`See ${web.siteUrl}/eddystone and https://nobody.example/read.`),
    );
    const { startRun } = await tenant.client.run<{ startRun: { run: { id: string } } }>(
      'mutation ($input: StartRunInput!) { startRun(input: $input) { run { id } } }',
      { input: { assistantId, threadId, message: 'Note it.' } },
    );
    await runtime.idle();
    const run = await readRun(runtime, startRun.run.id);
    expect(run).toMatchObject({
      status: 'COMPLETED',
      turnCount: 2,
      unverifiedCitations: ['https://nobody.example/read'],
    });
    expectAnsweredCalls(model.requests.slice(first));
    expect(model.requests[first]!.body).toMatchObject({
      model: 'small',
      messages: [
        { role: 'system', content: 'Find it.' },
        { role: 'user', content: 'Note it.' },
      ],
    });
    expect(await readLedger(tenant.client, run.scratchpad!.id)).toMatchObject([
      { content: 'noted', author: 'Librarian', runId: run.id },
    ]);
    const phases = runtime.eventsOf(run.id).flatMap((event) => (event.type === 'status' ? [event.phase] : []));
    expect([phases[0], phases.at(-1)]).toEqual(['STARTED', 'FINISHED']);
    expect(phases.filter((phase) => phase === 'FINISHED')).toHaveLength(1);
  });
});
