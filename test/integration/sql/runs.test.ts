// What the database guarantees of runs, and what the run store makes of it, on both kinds of store.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createRunStore, type CreatedWorker, type RunEnd, type RunStore } from '../../../src/research/run-store.js';
import { createSqlConversation } from '../../../src/research/sql-conversation.js';
import { createId } from '../../../src/shared/ids.js';
import { isForeignKeyViolation, isUniqueViolation } from '../../../src/shared/sql-errors.js';
import { sqlStores, type OpenSqlStore } from '../../support/sql-stores.js';

const failure = (work: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(work).then(
    () => {
      throw new Error('It succeeded.');
    },
    (error: unknown) => error,
  );

const instant = new Date('2031-07-08T23:59:59.987Z');
const ends: RunEnd[] = [
  { status: 'COMPLETED', output: 'Far.', unverifiedCitations: ['https://a.example/'], turnCount: 3 },
  { status: 'FAILED', error: { code: 'NO_EVIDENCE', message: 'Nobody found anything.' } },
  { status: 'CANCELLED', turnCount: 2 },
  { status: 'EXPIRED' },
];

describe.each(sqlStores)('on $name', (kind) => {
  let store: OpenSqlStore;
  let prisma: OpenSqlStore['database']['prisma'];
  let runStore: RunStore;

  beforeAll(async () => {
    store = await kind.open();
    prisma = store.database.prisma;
    runStore = createRunStore({ prisma, now: () => instant });
  });
  afterAll(() => store.close());
  beforeEach(async () => {
    await store.psql('TRUNCATE users CASCADE; DELETE FROM purge_tasks');
  });

  async function createTree() {
    const [ownerId, threadId, scratchpadId, assistantId] = [
      createId('user'),
      createId('thread'),
      createId('scratchpad'),
      createId('assistant'),
    ];
    await prisma.user.create({ data: { id: ownerId, name: 'Ada' } });
    await prisma.thread.create({ data: { id: threadId, ownerId } });
    await prisma.scratchpad.create({ data: { id: scratchpadId, ownerId, threadId } });
    await prisma.assistant.create({ data: { id: assistantId, ownerId, name: 'A', instructions: '', tools: [] } });
    return { ownerId, threadId, scratchpadId, assistantId };
  }

  const runOn = (tree: Awaited<ReturnType<typeof createTree>>) => ({
    id: createId('run'),
    ownerId: tree.ownerId,
    threadId: tree.threadId,
    scratchpadId: tree.scratchpadId,
    assistantId: tree.assistantId,
    kind: 'RESEARCH' as const,
    task: 'How far?',
    taskMessageId: createId('message'),
    maxTurns: 24,
    maxWorkers: 3,
    model: 'm',
    metaData: { scratchpad_id: tree.scratchpadId, scratch_pad_thread: tree.threadId },
  });

  async function createRun() {
    const tree = await createTree();
    const run = await prisma.run.create({ data: runOn(tree) });
    return { ...tree, run };
  }

  const order = {
    task: 'Find it.',
    requirements: 'Two sources.',
    name: 'worker 1',
    instructions: 'Search.',
    maxTurns: 8,
  };

  async function createWorker() {
    const created = await createRun();
    const parent = await runStore.begin(created.run.id);
    const worker = parent && (await runStore.createWorker(parent, order));
    if (!worker) throw new Error('the parent does not run');
    return { ...created, worker };
  }

  const ephemeraOf = async ({ threadId, assistantId }: CreatedWorker) =>
    (await prisma.thread.count({ where: { id: threadId } })) +
    (await prisma.assistant.count({ where: { id: assistantId } }));

  const purgedRuns = async () =>
    (await prisma.purgeTask.findMany({ where: { kind: 'RUN' }, orderBy: { resourceId: 'asc' } })).map(
      ({ resourceId }) => resourceId,
    );

  describe('a run', () => {
    it.each(['threadId', 'scratchpadId', 'assistantId'] as const)(
      'has the owner of what its %s names',
      async (column) => {
        const [mine, theirs] = [await createTree(), await createTree()];
        const data = { ...runOn(mine), [column]: theirs[column] };
        expect(isForeignKeyViolation(await failure(prisma.run.create({ data })))).toBe(true);
        const run = await prisma.run.create({ data: runOn(mine) });
        const change = prisma.run.update({ where: { id: run.id }, data: { [column]: theirs[column] } });
        expect(isForeignKeyViolation(await failure(change))).toBe(true);
        expect(isForeignKeyViolation(await failure(store.psql(`UPDATE runs SET owner_id = '${theirs.ownerId}'`)))).toBe(
          true,
        );
      },
    );

    it('has the owner of the run that delegated it', async () => {
      const [{ run }, other] = [await createRun(), await createTree()];
      const data = { ...runOn(other), kind: 'RESEARCH_WORKER' as const, parentRunId: run.id };
      expect(isForeignKeyViolation(await failure(prisma.run.create({ data })))).toBe(true);
    });

    it('is a worker exactly when it has a parent', async () => {
      const { run, ...tree } = await createRun();
      await runStore.cancelQueued(run.id);
      for (const data of [
        { ...runOn(tree), kind: 'RESEARCH_WORKER' as const },
        { ...runOn(tree), parentRunId: run.id },
      ]) {
        expect(String(await failure(prisma.run.create({ data })))).toContain('runs_parent_check');
      }
    });

    it('is the only active root run of its thread, and a worker does not count', async () => {
      const { run, ...tree } = await createRun();
      for (const state of ['QUEUED', 'IN_PROGRESS']) {
        expect(await runStore.find(run.id)).toMatchObject({ status: state });
        const error = await failure(prisma.run.create({ data: runOn(tree) }));
        expect(isUniqueViolation(error, 'thread_id')).toBe(true);
        await runStore.begin(run.id);
      }
      await prisma.run.create({ data: { ...runOn(tree), kind: 'RESEARCH_WORKER', parentRunId: run.id } });
      await runStore.finish(run.id, { status: 'EXPIRED' });
      await prisma.run.create({ data: runOn(tree) });
    });

    it.each([
      ['an output before it is completed', `output = 'x'`, 'runs_output_check'],
      [
        'no output although it is completed',
        `status = 'COMPLETED', started_at = now(), finished_at = now()`,
        'runs_output_check',
      ],
      ['an error although it did not fail', `last_error_code = 'X', last_error_message = 'x'`, 'runs_last_error_check'],
      ['no error although it failed', `status = 'FAILED', finished_at = now()`, 'runs_last_error_check'],
      ['an end without an instant', `status = 'CANCELLED'`, 'runs_finished_check'],
      ['an instant without an end', 'finished_at = now()', 'runs_finished_check'],
      ['a start without an instant', `status = 'IN_PROGRESS'`, 'runs_started_check'],
      ['an instant without a start', 'started_at = now()', 'runs_started_check'],
      ['no turn at all', 'max_turns = 0', 'runs_turns_check'],
      ['less than no turn', 'turn_count = -1', 'runs_turns_check'],
    ])('never has %s', async (_name, change, constraint) => {
      await createRun();
      await expect(store.psql(`UPDATE runs SET ${change}`)).rejects.toThrow(constraint);
    });

    it.each(ends)('that is $status never changes again, whoever tries', async (end) => {
      const { run, ...tree } = await createRun();
      await runStore.begin(run.id);
      const ended = await runStore.finish(run.id, end);
      expect(ended).toMatchObject({ status: end.status, finishedAt: instant, turnCount: end.turnCount ?? 0 });
      for (const other of ends) expect(await runStore.finish(run.id, other)).toBeNull();
      expect(await runStore.begin(run.id)).toBeNull();
      expect(await runStore.cancelQueued(run.id)).toBeNull();
      expect(await runStore.askToCancel(run.id)).toBe(false);
      await runStore.setTurnCount(run.id, 20);
      for (const change of [
        `status = 'QUEUED', started_at = NULL, finished_at = NULL, output = NULL, last_error_code = NULL, last_error_message = NULL`,
        `status = 'IN_PROGRESS', finished_at = NULL, output = NULL, last_error_code = NULL, last_error_message = NULL`,
        `unverified_citations = '{x}'`,
        'turn_count = 9',
        `finished_at = now()`,
        'cancel_requested_at = now()',
        ...(end.status === 'COMPLETED' ? [`output = 'Near.'`] : []),
        ...(end.status === 'FAILED' ? [`last_error_code = 'INTERNAL'`, `last_error_message = 'x'`] : []),
        ...(end.status === 'CANCELLED' ? [`status = 'EXPIRED'`] : []),
        ...(end.status === 'EXPIRED' ? [`status = 'CANCELLED'`] : []),
      ]) {
        await expect(store.psql(`UPDATE runs SET ${change}`), change).rejects.toThrow('stays so');
      }
      expect(await runStore.find(run.id)).toEqual(ended);
      // What it hangs on may still go.
      await prisma.scratchpad.delete({ where: { id: tree.scratchpadId } });
      await prisma.assistant.delete({ where: { id: tree.assistantId } });
      expect(await runStore.find(run.id)).toEqual({ ...ended, scratchpadId: null, assistantId: null });
    });

    it('ends once, whoever races', async () => {
      const { run } = await createRun();
      await runStore.begin(run.id);
      const ended = await Promise.all(
        Array.from({ length: 5 }, () => ends)
          .flat()
          .map((end) => runStore.finish(run.id, end)),
      );
      const winners = ended.filter((row) => row !== null);
      expect(winners).toHaveLength(1);
      expect(await runStore.find(run.id)).toEqual(winners[0]);
    });

    it('begins once, whoever races, and completes only when it began', async () => {
      const { run } = await createRun();
      expect(await runStore.finish(run.id, { status: 'COMPLETED', output: 'x' })).toBeNull();
      const begun = await Promise.all(Array.from({ length: 10 }, () => runStore.begin(run.id)));
      expect(begun.filter((row) => row !== null)).toEqual([
        expect.objectContaining({ id: run.id, status: 'IN_PROGRESS', startedAt: instant }),
      ]);
      await expect(store.psql(`UPDATE runs SET status = 'QUEUED', started_at = NULL`)).rejects.toThrow('stays so');
      await runStore.setTurnCount(run.id, 4);
      expect(await runStore.askToCancel(run.id)).toBe(true);
      expect(await runStore.cancelQueued(run.id)).toBeNull();
      expect(await runStore.find(run.id)).toMatchObject({
        turnCount: 4,
        cancelRequestedAt: instant,
        status: 'IN_PROGRESS',
      });
      expect((await runStore.activeRuns()).map(({ id }) => id)).toEqual([run.id]);
    });

    it.each([
      ['its thread', ({ threadId }: { threadId: string }) => `DELETE FROM threads WHERE id = '${threadId}'`],
      ['its user', ({ ownerId }: { ownerId: string }) => `DELETE FROM users WHERE id = '${ownerId}'`],
      ['DELETE', () => 'DELETE FROM runs'],
      ['TRUNCATE', () => 'TRUNCATE users CASCADE'],
    ])(
      'that goes with %s takes its workers and all that is theirs along, and leaves a purge task for each',
      async (_name, sql) => {
        const tree = await createWorker();
        const bystander = await createWorker();
        await store.psql(sql(tree));
        const isHere = async ({ run, worker }: typeof tree) =>
          (await prisma.run.count({ where: { id: { in: [run.id, worker.run.id] } } })) === 2;
        expect(await isHere(tree)).toBe(false);
        expect(await ephemeraOf(tree.worker)).toBe(0);
        const gone = (await isHere(bystander)) ? [tree] : [tree, bystander];
        expect(await ephemeraOf(bystander.worker)).toBe(gone.length === 1 ? 2 : 0);
        expect(await purgedRuns()).toEqual(gone.flatMap(({ run, worker }) => [run.id, worker.run.id]));
      },
    );
  });

  describe('a worker', () => {
    it('gets its own assistant and conversation, which begins with task and requirements word for word', async () => {
      const { run, worker, ...tree } = await createWorker();
      expect(worker.run).toMatchObject({
        kind: 'RESEARCH_WORKER',
        status: 'QUEUED',
        ownerId: tree.ownerId,
        parentRunId: run.id,
        scratchpadId: tree.scratchpadId,
        metaData: { scratchpad_id: tree.scratchpadId, scratch_pad_thread: tree.threadId },
        task: 'Find it.',
        model: 'm',
        maxTurns: 8,
        taskMessageId: worker.taskMessageId,
      });
      expect(await prisma.assistant.findUnique({ where: { id: worker.assistantId } })).toMatchObject({
        name: 'worker 1',
        instructions: 'Search.',
        tools: [{ type: 'web_search' }, { type: 'scratchpad' }],
        ephemeral: true,
      });
      const conversation = createSqlConversation({ prisma, threadId: worker.threadId });
      expect(await conversation.read()).toEqual([
        { id: worker.taskMessageId, role: 'user', content: 'Find it.\n\nRequirements:\nTwo sources.' },
      ]);
    });

    it.each(['QUEUED', 'CANCELLED'])('is not made for a parent that is %s', async (status) => {
      const { run } = await createRun();
      if (status === 'CANCELLED') {
        await runStore.begin(run.id);
        await runStore.finish(run.id, { status });
      }
      expect(await runStore.createWorker(run, order)).toBeNull();
      expect(await prisma.thread.count({ where: { ephemeral: true } })).toBe(0);
      expect(await prisma.assistant.count({ where: { ephemeral: true } })).toBe(0);
    });

    it('loses its conversation and its assistant and keeps its row, once or twice', async () => {
      const { worker, ...tree } = await createWorker();
      await runStore.begin(worker.run.id);
      const ended = await runStore.finish(worker.run.id, { status: 'COMPLETED', output: 'Done.' });
      for (let times = 0; times < 2; times += 1) await runStore.removeEphemera(worker.run.id);
      expect(await ephemeraOf(worker)).toBe(0);
      expect(await prisma.message.count({ where: { threadId: worker.threadId } })).toBe(0);
      expect(await runStore.find(worker.run.id)).toEqual({ ...ended, threadId: null, assistantId: null });
      expect(await purgedRuns()).toEqual([]);
      // A tenant's own assistant and thread are not touched, whoever asks.
      await runStore.removeEphemera(tree.run.id);
      expect(await runStore.find(tree.run.id)).toMatchObject({
        threadId: tree.threadId,
        assistantId: tree.assistantId,
      });
    });

    it('that a dead process left behind is swept, and one that works is not', async () => {
      const [dead, alive, lost] = [await createWorker(), await createWorker(), await createWorker()];
      await runStore.finish(dead.worker.run.id, { status: 'FAILED', error: { code: 'WORKER_LOST', message: 'x' } });
      await store.psql(
        `ALTER TABLE runs DISABLE TRIGGER runs_ephemera_deleted;
         DELETE FROM runs WHERE id = '${lost.worker.run.id}';
         ALTER TABLE runs ENABLE TRIGGER runs_ephemera_deleted`,
      );
      expect(await ephemeraOf(lost.worker)).toBe(2);
      expect(await runStore.removeStaleEphemera()).toBe(2);
      expect(await ephemeraOf(dead.worker)).toBe(0);
      expect(await ephemeraOf(lost.worker)).toBe(0);
      expect(await ephemeraOf(alive.worker)).toBe(2);
      expect(await runStore.removeStaleEphemera()).toBe(0);
    });
  });

  describe('a conversation', () => {
    it('reads back exactly what was appended, in that order, and nothing of another thread', async () => {
      const [{ threadId }, other] = [await createTree(), await createTree()];
      const conversation = createSqlConversation({ prisma, threadId });
      const messages = [
        { role: 'user' as const, content: 'How far? 🌞\n' },
        {
          role: 'assistant' as const,
          content: '',
          toolCalls: [
            { id: 'call_1', name: 'read_scratchpad', arguments: '{}' },
            { id: 'call_1b', name: 'perform_web_search', arguments: '{"query": "é\\u0000", "n": 1e400' },
          ],
          reasoning: { field: 'reasoning_content' as const, text: ' Hm.\n' },
        },
        { role: 'tool' as const, toolCallId: 'call_1b', content: '{"is_error":true}', isError: true },
        { role: 'tool' as const, toolCallId: 'call_1', content: '', isError: false },
        { role: 'assistant' as const, content: 'Far.' },
      ];
      for (const message of messages) await conversation.append(message);
      await createSqlConversation({ prisma, threadId: other.threadId }).append({ role: 'user', content: 'x' });
      await store.psql(`UPDATE messages SET created_at = now() - sequence_no * interval '1 hour'`);
      expect(await conversation.read()).toEqual(
        messages.map((message) => ({ ...message, id: expect.stringMatching(/^msg_/) as string })),
      );
    });

    it('cannot be gone on with when its thread is gone', async () => {
      const { threadId } = await createTree();
      await prisma.thread.delete({ where: { id: threadId } });
      const append = createSqlConversation({ prisma, threadId }).append({ role: 'user', content: 'x' });
      expect(isForeignKeyViolation(await failure(append))).toBe(true);
    });
  });
});
