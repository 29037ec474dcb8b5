// What is seen of runs over HTTP: by their tenant, by others, and never by anybody of what is private to a delegated worker.
import { createClient } from 'graphql-sse';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, type Database } from '../../../src/infra/postgres.js';
import type { RunEventRecord } from '../../../src/research/run-event.js';
import { createRunStore, type RunStore } from '../../../src/research/run-store.js';
import { systemClock } from '../../../src/shared/clock.js';
import { createLogger } from '../../../src/shared/logger.js';
import { createScratchpad, createThread, startResearch, startResearchDocument } from '../../support/operations.js';
import { createRecordingRunRuntime } from '../../support/run-runtime.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

const runtime = createRecordingRunRuntime();
let service: Service;
let database: Database;
let runStore: RunStore;
let alice: Tenant;

beforeAll(async () => {
  service = await startService({
    runRuntime: runtime,
    environment: { LLM_BASE_URL: 'http://127.0.0.1:9/v1', LLM_MODEL: 'house-model' },
  });
  database = await openDatabase({ databaseUrl: service.databaseUrl, logger: createLogger('silent') });
  runStore = createRunStore({ prisma: database.prisma, now: systemClock });
  alice = await service.createTenant('Alice');
});
afterAll(async () => {
  await database.close();
  await service.close();
});

it('shows another tenant nothing, in no way', async () => {
  const threadId = await createThread(alice.client);
  const id = await startResearch(alice.client, threadId);
  const carol = await service.createTenant('Carol');
  expect(await carol.client.run('query ($id: ID!) { run(id: $id) { id } node(id: $id) { id } }', { id })).toEqual({
    run: null,
    node: null,
  });
  expect(await carol.client.run('{ viewer { runs { totalCount edges { node { id } } } } }')).toEqual({
    viewer: { runs: { totalCount: 0, edges: [] } },
  });
  const subscriptions = runtime.subscriptions.length;
  const answers = [];
  for (const runId of [id, 'run_0', threadId]) {
    answers.push(
      await carol.client.fail('mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { id } } }', { id: runId }),
    );
    for (const field of ['researchStatus', 'runEvents']) answers.push(...(await failures(carol, field, runId)));
  }
  expect(answers).toHaveLength(9);
  expect(new Set(answers.map(({ message }) => message)).size).toBe(1);
  expect(answers.map(({ extensions }) => extensions.code)).toEqual(answers.map(() => 'NOT_FOUND'));
  expect(runtime.subscriptions).toHaveLength(subscriptions);
  expect(await runStore.find(id)).toMatchObject({ status: 'QUEUED', cancelRequestedAt: null });
});

describe('a delegated worker', () => {
  let parentId: string;
  let threadId: string;
  let worker: { runId: string; threadId: string; assistantId: string; messageId: string };

  beforeAll(async () => {
    threadId = await createThread(alice.client);
    parentId = await startResearch(alice.client, threadId);
    const parent = await runStore.begin(parentId);
    const order = { task: 'Find the distance.', name: 'worker 1', instructions: 'Search.', maxTurns: 8 };
    const created = parent && (await runStore.createWorker(parent, order));
    if (!created) throw new Error('the parent does not run');
    worker = {
      runId: created.run.id,
      threadId: created.threadId,
      assistantId: created.assistantId,
      messageId: created.taskMessageId,
    };
  });

  it('is a run of its parent, on the same pad, without a conversation or an assistant that anybody sees', async () => {
    const { run } = await alice.client.run<{ run: { childRuns: object[]; scratchpad: { id: string } } }>(
      `query ($id: ID!) { run(id: $id) { scratchpad { id } childRuns {
        id kind task status maxTurns metaData thread { id } assistant { id } scratchpad { id } parentRun { id childRuns { id } }
      } } }`,
      { id: parentId },
    );
    const padId = run.scratchpad.id;
    expect(run.childRuns).toEqual([
      {
        id: worker.runId,
        kind: 'RESEARCH_WORKER',
        task: 'Find the distance.',
        status: 'QUEUED',
        maxTurns: 8,
        metaData: { scratchpad_id: padId, scratch_pad_thread: threadId },
        thread: null,
        assistant: null,
        scratchpad: { id: padId },
        parentRun: { id: parentId, childRuns: [{ id: worker.runId }] },
      },
    ]);
  });

  it('has a thread, a message and an assistant that no look-up finds', async () => {
    for (const id of [worker.threadId, worker.messageId, worker.assistantId]) {
      expect(await alice.client.run('query ($id: ID!) { node(id: $id) { id } }', { id }), id).toEqual({ node: null });
    }
    expect(
      await alice.client.run(
        'query ($t: ID!, $a: ID!) { thread(id: $t) { id } assistant(id: $a) { id } scratchpadByThread(threadId: $t) { id } }',
        { t: worker.threadId, a: worker.assistantId },
      ),
    ).toEqual({ thread: null, assistant: null, scratchpadByThread: null });
  });

  it('has a thread, a message and an assistant that no list and no count holds', async () => {
    const answer = await alice.client.run<{
      viewer: Record<'threads' | 'assistants' | 'runs', { totalCount: number; edges: { node: { id: string } }[] }>;
    }>(`{ viewer {
      threads(first: 100) { totalCount edges { node { id messages { edges { node { id } } } runs { edges { node { id } } } } } }
      assistants(first: 100) { totalCount edges { node { id } } }
      runs(first: 100) { totalCount edges { node { id thread { id } assistant { id } } } }
    } }`);
    const text = JSON.stringify(answer);
    for (const id of [worker.threadId, worker.messageId, worker.assistantId]) expect(text).not.toContain(id);
    for (const { totalCount, edges } of Object.values(answer.viewer)) expect(totalCount).toBe(edges.length);
    expect(answer.viewer.runs.edges.map(({ node }) => node.id)).toContain(worker.runId);
  });

  it('has a thread and an assistant that nothing can be done with', async () => {
    const { threadId: id, assistantId } = worker;
    const ownThread = await createThread(alice.client);
    for (const [document, input] of [
      ['mutation ($input: DeleteThreadInput!) { deleteThread(input: $input) { deletedThreadId } }', { threadId: id }],
      [
        'mutation ($input: CreateMessageInput!) { createMessage(input: $input) { message { id } } }',
        { threadId: id, content: 'x' },
      ],
      [
        'mutation ($input: CreateScratchpadInput!) { createScratchpad(input: $input) { scratchpad { id } } }',
        { threadId: id },
      ],
      [startResearchDocument, { threadId: id, question: 'x' }],
      [
        'mutation ($input: DeleteAssistantInput!) { deleteAssistant(input: $input) { deletedAssistantId } }',
        { assistantId },
      ],
      [
        'mutation ($input: StartRunInput!) { startRun(input: $input) { run { id } } }',
        { assistantId, threadId: ownThread, message: 'x' },
      ],
    ] as const) {
      expect((await alice.client.fail(document, { input })).extensions.code, document).toBe('NOT_FOUND');
    }
    expect(await database.prisma.thread.count({ where: { id } })).toBe(1);
    expect(await database.prisma.assistant.count({ where: { id: assistantId } })).toBe(1);
  });
});

interface RunPage {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null };
  totalCount: number;
}

describe.each(['Thread.runs', 'User.runs'])('%s', (name) => {
  const ids: string[] = [];
  let threadId: string;
  let tenant: Tenant;
  const selection =
    'runs(first: $first, after: $after, last: $last, before: $before) { totalCount edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }';
  const variables = '$first: Int, $after: String, $last: Int, $before: String';

  beforeAll(async () => {
    tenant = await service.createTenant(name);
    threadId = await createThread(tenant.client);
    for (let index = 0; index < 7; index += 1) {
      const id = await startResearch(tenant.client, threadId);
      if (index < 6) await runStore.cancelQueued(id);
      ids.unshift(id);
    }
  });

  const read = async (page: object): Promise<RunPage> => {
    if (name === 'User.runs') {
      const { viewer } = await tenant.client.run<{ viewer: { runs: RunPage } }>(
        `query (${variables}) { viewer { ${selection} } }`,
        page,
      );
      return viewer.runs;
    }
    const { thread } = await tenant.client.run<{ thread: { runs: RunPage } }>(
      `query ($id: ID!, ${variables}) { thread(id: $id) { ${selection} } }`,
      { id: threadId, ...page },
    );
    return thread.runs;
  };
  const idsOf = (page: RunPage): string[] => page.edges.map(({ node }) => node.id);

  it('begins with the newest, and its cursors lead to older ones', async () => {
    const all = await read({});
    expect(idsOf(all)).toEqual(ids);
    expect(all.totalCount).toBe(7);
    const seen: string[] = [];
    for (let after: string | null = null, more = true; more;) {
      const page = await read({ first: 3, after });
      expect(page.pageInfo.hasPreviousPage).toBe(after !== null);
      seen.push(...idsOf(page));
      after = page.pageInfo.endCursor;
      more = page.pageInfo.hasNextPage;
    }
    expect(seen).toEqual(ids);
    const backwards: string[] = [];
    for (let before: string | null = null, more = true; more;) {
      const page = await read({ last: 3, before });
      expect(page.pageInfo.hasNextPage).toBe(before !== null);
      backwards.unshift(...idsOf(page));
      before = page.pageInfo.startCursor;
      more = page.pageInfo.hasPreviousPage;
    }
    expect(backwards).toEqual(ids);
    const [after, before] = [all.edges[1]?.cursor, all.edges[5]?.cursor];
    expect(idsOf(await read({ after, before }))).toEqual(ids.slice(2, 5));
    expect(idsOf(await read({ last: 2, after, before }))).toEqual(ids.slice(3, 5));
  });

  it('is not moved by runs that start during a walk', async () => {
    const first = await read({ first: 2 });
    const other = await createThread(tenant.client);
    await startResearch(tenant.client, name === 'User.runs' ? other : await freed(threadId));
    const second = await read({ first: 2, after: first.pageInfo.endCursor });
    expect(idsOf(second)).toEqual(ids.slice(2, 4));
  });

  async function freed(thread: string): Promise<string> {
    for (const run of await database.prisma.run.findMany({ where: { threadId: thread, status: 'QUEUED' } })) {
      await runStore.cancelQueued(run.id);
    }
    return thread;
  }
});

it('refuses a cursor of one list of runs in another', async () => {
  const threadId = await createThread(alice.client);
  await startResearch(alice.client, threadId);
  const { viewer } = await alice.client.run<{ viewer: { runs: RunPage } }>('{ viewer { runs { edges { cursor } } } }');
  const error = await alice.client.fail(
    'query ($id: ID!, $after: String) { thread(id: $id) { runs(after: $after) { totalCount } } }',
    { id: threadId, after: viewer.runs.edges[0]?.cursor },
  );
  expect(error.extensions.code).toBe('BAD_USER_INPUT');
});

it('shows the active run beside the list of all runs, for a page of threads in few statements', async () => {
  const dana = await service.createTenant('Dana');
  const active: string[] = [];
  for (let index = 0; index < 10; index += 1) {
    const threadId = await createThread(dana.client);
    await runStore.cancelQueued(await startResearch(dana.client, threadId));
    active.push(await startResearch(dana.client, threadId));
  }
  service.takeStatementCount();
  const { viewer } = await dana.client.run<{
    viewer: { threads: { edges: { node: { activeRun: { id: string }; runs: RunPage } }[] } };
  }>('{ viewer { threads { edges { node { activeRun { id status } runs { totalCount edges { node { id } } } } } } } }');
  const nodes = viewer.threads.edges.map(({ node }) => node);
  expect(nodes.map((node) => node.activeRun.id)).toEqual(active);
  expect(nodes.map((node) => node.runs.totalCount)).toEqual(nodes.map(() => 2));
  expect(nodes.map((node) => node.runs.edges[0]?.node.id)).toEqual(active);
  // The key, the page with one of the two lists, the other list, the counts.
  expect(service.takeStatementCount()).toBeLessThanOrEqual(4);
});

describe('the subscriptions', () => {
  const occurredAt = new Date('2031-07-08T23:59:59.987Z');

  it('carry every kind of event with its fields', async () => {
    const padId = await createScratchpad(alice.client, await createThread(alice.client));
    const threadId = await createThread(alice.client);
    const runId = await startResearch(alice.client, threadId);
    const base = { runId, originRunId: 'run_of_a_worker', occurredAt };
    runtime.told = [
      { ...base, cursor: '1', type: 'status', phase: 'STARTED', activity: 'Starts', state: 'IN_PROGRESS', tool: null },
      { ...base, cursor: '2', type: 'reasoning', delta: 'Hm.' },
      { ...base, cursor: '3', type: 'content', delta: 'Far.' },
      {
        ...base,
        cursor: '4',
        type: 'scratchpad',
        scratchpadId: padId,
        operation: 'APPEND',
        state: 'SUCCESS',
        activity: 'Notes',
        tool: 'append_scratchpad',
        entry: {
          id: 'entry_1',
          content: 'x',
          author: 'worker 1',
          runId,
          createdAt: occurredAt.toISOString(),
          sequence: 7,
        },
        expiresAt: occurredAt,
        assistantId: 'asst_1',
        replayed: false,
      },
      { ...base, cursor: '5', type: 'status', phase: 'FINISHED', activity: 'Ends', state: 'COMPLETED', tool: null },
    ] satisfies RunEventRecord[];
    const common = 'cursor runId originRunId occurredAt';
    const results = await subscribe(
      alice,
      `subscription { runEvents(runId: "${runId}", after: "0") {
        __typename ${common}
        ... on ResearchStatusEvent { run { id } phase activity state tool }
        ... on ContentEvent { delta }
        ... on ReasoningEvent { delta }
        ... on ScratchpadEvent {
          scratchpadId scratchpad { id } operation scratchpadState: state scratchpadActivity: activity tool
          entry { id content author runId createdAt } content { text } expiresAt assistantId replayed
        }
      } }`,
    );
    const told = { runId, originRunId: 'run_of_a_worker', occurredAt: occurredAt.toISOString() };
    expect(results.map(({ data }) => (data as { runEvents: object }).runEvents)).toEqual([
      {
        ...told,
        __typename: 'ResearchStatusEvent',
        cursor: '1',
        run: { id: runId },
        phase: 'STARTED',
        activity: 'Starts',
        state: 'IN_PROGRESS',
        tool: null,
      },
      { ...told, __typename: 'ReasoningEvent', cursor: '2', delta: 'Hm.' },
      { ...told, __typename: 'ContentEvent', cursor: '3', delta: 'Far.' },
      {
        ...told,
        __typename: 'ScratchpadEvent',
        cursor: '4',
        scratchpadId: padId,
        scratchpad: { id: padId },
        operation: 'APPEND',
        scratchpadState: 'SUCCESS',
        scratchpadActivity: 'Notes',
        tool: 'append_scratchpad',
        entry: { id: 'entry_1', content: 'x', author: 'worker 1', runId, createdAt: occurredAt.toISOString() },
        content: null,
        expiresAt: occurredAt.toISOString(),
        assistantId: 'asst_1',
        replayed: false,
      },
      expect.objectContaining({ cursor: '5', phase: 'FINISHED' }),
    ]);
    expect(runtime.subscriptions.at(-1)).toEqual({
      run: { ownerId: alice.userId, runId, parentRunId: null },
      after: '0',
    });

    const statuses = await subscribe(
      alice,
      `subscription { researchStatus(runId: "${runId}") { cursor phase run { id } } }`,
    );
    expect(statuses.map(({ data }) => (data as { researchStatus: object }).researchStatus)).toEqual([
      { cursor: '1', phase: 'STARTED', run: { id: runId } },
      { cursor: '5', phase: 'FINISHED', run: { id: runId } },
    ]);
    expect(runtime.subscriptions.at(-1)?.after).toBeUndefined();
  });
});

async function subscribe(tenant: Tenant, query: string): Promise<{ data?: unknown; errors?: readonly unknown[] }[]> {
  const client = createClient({
    url: `${service.url}/graphql`,
    headers: { authorization: `Bearer ${tenant.secret}` },
    retryAttempts: 0,
  });
  const results = [];
  for await (const result of client.iterate({ query })) results.push(result);
  client.dispose();
  return results;
}

interface Failure {
  message: string;
  extensions: { code: string };
}

const failures = async (tenant: Tenant, field: string, runId: string): Promise<Failure[]> =>
  (await subscribe(tenant, `subscription { ${field}(runId: "${runId}") { cursor } }`)).flatMap(
    ({ errors = [] }) => errors as Failure[],
  );
