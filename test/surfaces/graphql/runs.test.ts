// Runs over HTTP: started once for each thread, cancelled, watched, gone with what they hang on. Nothing is executed here.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase, type Database } from '../../../src/infra/postgres.js';
import { createRunStore, type RunStore } from '../../../src/research/run-store.js';
import { systemClock } from '../../../src/shared/clock.js';
import { unavailable } from '../../../src/shared/errors.js';
import { createId } from '../../../src/shared/ids.js';
import { createLogger } from '../../../src/shared/logger.js';
import { lockIdleThread } from '../../../src/threads/idle-thread.js';
import {
  createAssistant,
  createScratchpad,
  createThread,
  deleteThread,
  startResearch,
  startResearchDocument,
} from '../../support/operations.js';
import { createRecordingRunRuntime } from '../../support/run-runtime.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

const runtime = createRecordingRunRuntime();
let service: Service;
let database: Database;
let runStore: RunStore;
let alice: Tenant;
let bob: Tenant;

beforeAll(async () => {
  service = await startService({
    runRuntime: runtime,
    environment: { LLM_BASE_URL: 'http://127.0.0.1:9/v1', LLM_MODEL: 'house-model', MAX_CONTENT_BYTES: '1000' },
  });
  database = await openDatabase({ databaseUrl: service.databaseUrl, logger: createLogger('silent') });
  runStore = createRunStore({ prisma: database.prisma, now: systemClock });
  alice = await service.createTenant('Alice');
  bob = await service.createTenant('Bob');
});
afterAll(async () => {
  await database.close();
  await service.close();
});
beforeEach(() => {
  Object.assign(runtime, { beforeEnqueue: () => {}, beforeSignal: () => {}, told: [] });
});

const startRunDocument =
  'mutation ($input: StartRunInput!) { startRun(input: $input) { run { id status kind maxTurns } } }';
const createMessageDocument =
  'mutation ($input: CreateMessageInput!) { createMessage(input: $input) { message { id } } }';
const cancelDocument = 'mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { id status finishedAt } } }';

const statusOf = async (id: string): Promise<string | undefined> =>
  (await alice.client.run<{ run: { status: string } | null }>('query ($id: ID!) { run(id: $id) { status } }', { id }))
    .run?.status;

const messagesOf = async (id: string): Promise<object[]> =>
  (
    await alice.client.run<{ thread: { messages: { edges: { node: object }[] } } }>(
      'query ($id: ID!) { thread(id: $id) { messages { edges { node { role content } } } } }',
      { id },
    )
  ).thread.messages.edges.map(({ node }) => node);

const codeOf = async (tenant: Tenant, document: string, variables: object): Promise<unknown> =>
  (await tenant.client.fail(document, variables)).extensions.code;

describe('a start', () => {
  it('puts the question on the thread and the run into the queue, with the pad that it will share', async () => {
    const threadId = await createThread(alice.client);
    const id = await startResearch(alice.client, threadId);
    const { run } = await alice.client.run<{ run: { scratchpad: { id: string } } }>(
      `query ($id: ID!) { run(id: $id) {
        __typename kind status task output unverifiedCitations lastError { code message } turnCount maxTurns metaData startedAt finishedAt
        assistant { id } thread { id activeRun { id } } scratchpad { id thread { id } } parentRun { id } childRuns { id }
      } }`,
      { id },
    );
    const padId = run.scratchpad.id;
    expect(run).toEqual({
      __typename: 'Run',
      kind: 'RESEARCH',
      status: 'QUEUED',
      task: 'How far is the Moon?',
      output: null,
      unverifiedCitations: [],
      lastError: null,
      turnCount: 0,
      maxTurns: 24,
      metaData: { scratchpad_id: padId, scratch_pad_thread: threadId },
      startedAt: null,
      finishedAt: null,
      assistant: null,
      thread: { id: threadId, activeRun: { id } },
      scratchpad: { id: padId, thread: { id: threadId } },
      parentRun: null,
      childRuns: [],
    });
    expect(await messagesOf(threadId)).toEqual([{ role: 'USER', content: 'How far is the Moon?' }]);
    expect(runtime.enqueued.at(-1)).toMatchObject({ id, ownerId: alice.userId, model: 'house-model', maxWorkers: 3 });
  });

  it('works on the pad that the thread has, and passes the wishes of the caller on', async () => {
    const threadId = await createThread(alice.client);
    const padId = await createScratchpad(alice.client, threadId);
    await startResearch(alice.client, threadId, { model: 'other-model', maxTurns: 5, maxWorkers: 10 });
    expect(runtime.enqueued.at(-1)).toMatchObject({
      scratchpadId: padId,
      model: 'other-model',
      maxTurns: 5,
      maxWorkers: 10,
    });
    await startResearch(alice.client, await createThread(alice.client), { maxTurns: 1000 });
    expect(runtime.enqueued.at(-1)).toMatchObject({ maxTurns: 24 });
  });

  it('of an assistant takes its model and delegates nothing', async () => {
    const [own, house] = [await createAssistant(alice.client, [], 'own-model'), await createAssistant(alice.client)];
    for (const [assistantId, model] of [
      [own, 'own-model'],
      [house, 'house-model'],
    ]) {
      const threadId = await createThread(alice.client);
      const { startRun } = await alice.client.run<{ startRun: { run: object } }>(startRunDocument, {
        input: { assistantId, threadId, message: 'Hello' },
      });
      expect(startRun.run).toMatchObject({ status: 'QUEUED', kind: 'ASSISTANT', maxTurns: 24 });
      expect(runtime.enqueued.at(-1)).toMatchObject({ assistantId, model, maxWorkers: 0 });
    }
  });

  it('refuses what it cannot carry out, and leaves nothing behind', async () => {
    const threadId = await createThread(alice.client);
    const assistantId = await createAssistant(alice.client);
    const foreign = await createThread(bob.client);
    const before = runtime.enqueued.length;
    for (const [change, code] of [
      [{ question: ' \n' }, 'BAD_USER_INPUT'],
      [{ question: 'a\u0000b' }, 'BAD_USER_INPUT'],
      [{ question: 'é'.repeat(501) }, 'LIMIT_EXCEEDED'],
      [{ maxTurns: 0 }, 'BAD_USER_INPUT'],
      [{ maxTurns: 1 }, 'BAD_USER_INPUT'],
      [{ maxWorkers: 0 }, 'BAD_USER_INPUT'],
      [{ maxWorkers: 11 }, 'BAD_USER_INPUT'],
      [{ model: ' ' }, 'BAD_USER_INPUT'],
      [{ threadId: foreign }, 'NOT_FOUND'],
      [{ threadId: 'thread_0' }, 'NOT_FOUND'],
      [{ threadId: assistantId }, 'NOT_FOUND'],
    ] as const) {
      const input = { threadId, question: 'x', ...change };
      expect(await codeOf(alice, startResearchDocument, { input })).toBe(code);
    }
    for (const [change, code] of [
      [{ message: ' ' }, 'BAD_USER_INPUT'],
      [{ assistantId: 'asst_0' }, 'NOT_FOUND'],
      [{ threadId: foreign }, 'NOT_FOUND'],
    ] as const) {
      const input = { threadId, assistantId, message: 'x', ...change };
      expect(await codeOf(alice, startRunDocument, { input })).toBe(code);
    }
    expect(runtime.enqueued).toHaveLength(before);
    expect(await messagesOf(threadId)).toEqual([]);
  });

  it('is a conflict while another run is active, and so is a message', async () => {
    const threadId = await createThread(alice.client);
    const id = await startResearch(alice.client, threadId);
    const input = { threadId, question: 'And Mars?' };
    for (const state of ['QUEUED', 'IN_PROGRESS']) {
      expect(await statusOf(id)).toBe(state);
      expect(await codeOf(alice, startResearchDocument, { input })).toBe('CONFLICT');
      expect(await codeOf(alice, createMessageDocument, { input: { threadId, content: 'x' } })).toBe('CONFLICT');
      await runStore.begin(id);
    }
    await runStore.finish(id, { status: 'COMPLETED', output: 'Far.' });
    await alice.client.run(createMessageDocument, { input: { threadId, content: 'Thanks.' } });
    await startResearch(alice.client, threadId, { question: 'And Mars?' });
    const contents = ['Far.', 'Thanks.', 'And Mars?'].map((content) => ({ content }));
    expect((await messagesOf(threadId)).slice(1)).toMatchObject(contents);
  });

  it('succeeds once of twenty at the same time, and the others are conflicts', async () => {
    const threadId = await createThread(alice.client);
    const before = runtime.enqueued.length;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        alice.client.send<{ startResearch: { run: { id: string } } }>(startResearchDocument, {
          input: { threadId, question: `question ${index}` },
        }),
      ),
    );
    expect(answers.filter(({ errors }) => errors.length === 0)).toHaveLength(1);
    const codes = answers.flatMap(({ errors }) => errors.map(({ extensions }) => extensions.code));
    expect(codes).toEqual(Array.from({ length: 19 }, () => 'CONFLICT'));
    expect(runtime.enqueued).toHaveLength(before + 1);
    expect(await messagesOf(threadId)).toHaveLength(1);
  });

  it('lets no message of a client slip in while it is under way', async () => {
    const threadId = await createThread(alice.client);
    const pad = await createScratchpad(alice.client, threadId);
    let writing: Promise<string | undefined> | undefined;
    await database.prisma.$transaction(async (transaction) => {
      await lockIdleThread(transaction, alice.userId, threadId);
      await transaction.run.create({
        data: {
          id: createId('run'),
          ownerId: alice.userId,
          threadId,
          scratchpadId: pad,
          kind: 'RESEARCH',
          task: 'x',
          taskMessageId: createId('message'),
          maxTurns: 1,
        },
      });
      writing = alice.client
        .send(createMessageDocument, { input: { threadId, content: 'late' } })
        .then(({ errors }) => errors[0]?.extensions.code);
      // Time enough for the message to be written, if nothing held it back.
      await sleep(500);
    });
    expect(await writing).toBe('CONFLICT');
    expect(await messagesOf(threadId)).toEqual([]);
  });

  it('leaves nothing behind when the queue is away, and works again afterwards', async () => {
    const threadId = await createThread(alice.client);
    runtime.beforeEnqueue = () => {
      throw unavailable('Redis');
    };
    expect(await codeOf(alice, startResearchDocument, { input: { threadId, question: 'x' } })).toBe('UNAVAILABLE');
    const { thread } = await alice.client.run<{ thread: object }>(
      'query ($id: ID!) { thread(id: $id) { activeRun { id } runs { totalCount } messages { totalCount } } }',
      { id: threadId },
    );
    expect(thread).toEqual({ activeRun: null, runs: { totalCount: 0 }, messages: { totalCount: 0 } });
    runtime.beforeEnqueue = () => {};
    await startResearch(alice.client, threadId);
  });

  it('stands when only the answer of the queue was lost', async () => {
    runtime.beforeEnqueue = async (run) => {
      await runStore.begin(run.id);
      throw unavailable('Redis');
    };
    const id = await startResearch(alice.client, await createThread(alice.client));
    expect(await statusOf(id)).toBe('IN_PROGRESS');
  });
});

describe('a cancellation', () => {
  it('ends a waiting run at once', async () => {
    const id = await startResearch(alice.client, await createThread(alice.client));
    const { cancelRun } = await alice.client.run<{ cancelRun: { run: { finishedAt: string } } }>(cancelDocument, {
      id,
    });
    expect(cancelRun.run).toMatchObject({ id, status: 'CANCELLED', finishedAt: expect.any(String) as string });
    expect(runtime.endedUnexecuted.at(-1)).toMatchObject({ id, status: 'CANCELLED' });
    expect(await runStore.begin(id)).toBeNull();
  });

  it('leaves word for an executing run, also when the signal is lost', async () => {
    const id = await startResearch(alice.client, await createThread(alice.client));
    await runStore.begin(id);
    await alice.client.run(cancelDocument, { id });
    expect(runtime.cancelRequested.at(-1)).toMatchObject({ id });
    runtime.beforeSignal = () => {
      throw unavailable('Redis');
    };
    await alice.client.run(cancelDocument, { id });
    expect(await runStore.find(id)).toMatchObject({
      status: 'IN_PROGRESS',
      cancelRequestedAt: expect.any(Date) as Date,
    });
  });

  it('changes nothing of a run that has ended', async () => {
    const id = await startResearch(alice.client, await createThread(alice.client));
    await runStore.begin(id);
    await runStore.finish(id, { status: 'FAILED', error: { code: 'PROVIDER_ERROR', message: 'It hung up.' } });
    const before = await runStore.find(id);
    await alice.client.run(cancelDocument, { id });
    expect(await runStore.find(id)).toEqual(before);
    const { run } = await alice.client.run<{ run: object }>(
      'query ($id: ID!) { run(id: $id) { lastError { code message } } }',
      { id },
    );
    expect(run).toEqual({ lastError: { code: 'PROVIDER_ERROR', message: 'It hung up.' } });
  });
});

describe('a delete', () => {
  const startTwo = async (tenant: Tenant) => {
    const [waiting, executing] = [await createThread(tenant.client), await createThread(tenant.client)];
    const runs = [await startResearch(tenant.client, waiting), await startResearch(tenant.client, executing)] as const;
    await runStore.begin(runs[1]);
    return { threads: [waiting, executing], runs };
  };
  /** What the database said of a run when it was signalled. */
  const recordRowsAtSignal = (): Map<string, string | undefined> => {
    const rows = new Map<string, string | undefined>();
    runtime.beforeSignal = async ({ id }) => void rows.set(id, (await runStore.find(id))?.status);
    return rows;
  };

  it('of a thread cancels its run first, and takes its runs and their events along', async () => {
    const { threads, runs } = await startTwo(alice);
    const redis = service.redis.client();
    for (const id of runs) await redis.rpush(`run:${alice.userId}:${id}:events`, '{}');
    const rows = recordRowsAtSignal();
    for (const threadId of threads) await deleteThread(alice.client, threadId);
    expect([...rows]).toEqual([
      [runs[0], 'CANCELLED'],
      [runs[1], 'IN_PROGRESS'],
    ]);
    for (const id of runs) {
      expect(await runStore.find(id)).toBeNull();
      expect(await redis.exists(`run:${alice.userId}:${id}:events`)).toBe(0);
    }
  });

  it('of a scratchpad cancels the runs that work on it; their rows stay, without it', async () => {
    const { runs } = await startTwo(alice);
    const rows = recordRowsAtSignal();
    for (const id of runs) {
      const scratchpadId = (await runStore.find(id))?.scratchpadId;
      await alice.client.run(
        'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }',
        {
          id: scratchpadId,
        },
      );
      expect(await alice.client.run('query ($id: ID!) { run(id: $id) { scratchpad { id } } }', { id })).toEqual({
        run: { scratchpad: null },
      });
    }
    expect([...rows.keys()]).toEqual([...runs]);
    expect(await statusOf(runs[0])).toBe('CANCELLED');
    expect((await runStore.find(runs[1]))?.cancelRequestedAt).toBeInstanceOf(Date);
  });

  it.each(['itself', 'through the administrator'])(
    'of a user %s cancels all of its runs and no others',
    async (how) => {
      const carol = await service.createTenant('Carol');
      const bystander = await startResearch(bob.client, await createThread(bob.client));
      const { runs } = await startTwo(carol);
      const rows = recordRowsAtSignal();
      if (how === 'itself') {
        await carol.client.run(
          'mutation ($id: ID!) { deleteViewer(input: { confirmUserId: $id }) { deletedUserId } }',
          {
            id: carol.userId,
          },
        );
      } else {
        await service.administrator.run(
          'mutation ($id: ID!) { deleteUser(input: { userId: $id }) { deletedUserId } }',
          {
            id: carol.userId,
          },
        );
      }
      expect([...rows.keys()].toSorted()).toEqual(runs.toSorted());
      for (const id of runs) expect(await runStore.find(id)).toBeNull();
      expect(await runStore.find(bystander)).toMatchObject({ status: 'QUEUED' });
    },
  );

  it('succeeds when the signal is lost', async () => {
    const { threads } = await startTwo(alice);
    runtime.beforeSignal = () => {
      throw unavailable('Redis');
    };
    for (const threadId of threads) {
      expect(await deleteThread(alice.client, threadId)).toEqual({ deleteThread: { deletedThreadId: threadId } });
    }
  });

  it('that finds nothing cancels nothing', async () => {
    const { threads, runs } = await startTwo(alice);
    const document = 'mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedThreadId } }';
    for (const id of threads) expect(await codeOf(bob, document, { id })).toBe('NOT_FOUND');
    expect(await statusOf(runs[0])).toBe('QUEUED');
    expect((await runStore.find(runs[1]))?.cancelRequestedAt).toBeNull();
  });
});

it('is not for the administrator', async () => {
  for (const document of [
    '{ run(id: "run_0") { id } }',
    'mutation { startResearch(input: { threadId: "thread_0", question: "x" }) { run { id } } }',
    'mutation { startRun(input: { assistantId: "asst_0", threadId: "thread_0", message: "x" }) { run { id } } }',
    'mutation { cancelRun(input: { runId: "run_0" }) { run { id } } }',
  ]) {
    expect((await service.administrator.fail(document)).extensions.code).toBe('FORBIDDEN');
  }
});

describe('without a model', () => {
  it.each([
    ['provider', {}, 'UNAVAILABLE', 'LLM_BASE_URL'],
    ['name of a model', { LLM_BASE_URL: 'http://127.0.0.1:9/v1' }, 'BAD_USER_INPUT', 'LLM_MODEL'],
  ])('a start answers what to configure when there is no %s', async (_name, environment, code, variable) => {
    const own = createRecordingRunRuntime();
    const bare = await startService({ runRuntime: own, environment });
    try {
      const { client } = await bare.createTenant('Alice');
      const threadId = await createThread(client);
      const assistantId = await createAssistant(client);
      for (const [document, input] of [
        [startResearchDocument, { threadId, question: 'x' }],
        [startRunDocument, { threadId, assistantId, message: 'x' }],
      ] as const) {
        const error = await client.fail(document, { input });
        expect(error.extensions.code).toBe(code);
        expect(error.message).toContain(variable);
      }
      expect(own.enqueued).toEqual([]);
      if (code === 'BAD_USER_INPUT') await startResearch(client, threadId, { model: 'named' });
    } finally {
      await bare.close();
    }
  });
});
