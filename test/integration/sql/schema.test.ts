// What the database itself guarantees, by behaviour and on both kinds of store.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createId } from '../../../src/shared/ids.js';
import { isForeignKeyViolation, isSqlUnavailable, isUniqueViolation } from '../../../src/shared/sql-errors.js';
import { sqlStores, type OpenSqlStore } from '../../support/sql-stores.js';

const failure = (work: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(work).then(
    () => {
      throw new Error('It succeeded.');
    },
    (error: unknown) => error,
  );

describe.each(sqlStores)('on $name', (kind) => {
  let store: OpenSqlStore;
  let prisma: OpenSqlStore['database']['prisma'];

  beforeAll(async () => {
    store = await kind.open();
    prisma = store.database.prisma;
  });

  afterAll(() => store.close());

  beforeEach(async () => {
    await store.psql('TRUNCATE users CASCADE; DELETE FROM purge_tasks');
  });

  async function createTree(pads = 1) {
    const userId = createId('user');
    await prisma.user.create({ data: { id: userId, name: 'Ada' } });
    const trees = [];
    for (let index = 0; index < pads; index += 1) {
      const threadId = createId('thread');
      const scratchpadId = createId('scratchpad');
      await prisma.thread.create({ data: { id: threadId, ownerId: userId } });
      await prisma.scratchpad.create({ data: { id: scratchpadId, ownerId: userId, threadId } });
      trees.push({ threadId, scratchpadId });
    }
    return { userId, trees, ...trees[0]! };
  }

  const purgeTasks = async () =>
    (await prisma.purgeTask.findMany())
      .map(({ kind, ownerId, resourceId }) => `${kind} ${ownerId} ${resourceId}`)
      .sort();

  describe('a deleted row leaves a purge task', () => {
    it('for a scratchpad', async () => {
      const { userId, scratchpadId } = await createTree();
      await prisma.scratchpad.delete({ where: { id: scratchpadId } });
      expect(await purgeTasks()).toEqual([`SCRATCHPAD ${userId} ${scratchpadId}`]);
    });

    it('for a thread, and by cascade for its scratchpad', async () => {
      const { userId, threadId, scratchpadId } = await createTree();
      await prisma.thread.delete({ where: { id: threadId } });
      expect(await purgeTasks()).toEqual([`SCRATCHPAD ${userId} ${scratchpadId}`, `THREAD ${userId} ${threadId}`]);
    });

    it.each([
      ['a deleted user', (id: string) => `DELETE FROM users WHERE id = '${id}'`],
      [
        'DELETE of all users in another schema',
        () => 'SET search_path = pg_catalog; DELETE FROM public.users; RESET search_path',
      ],
      ['TRUNCATE', () => 'TRUNCATE users CASCADE'],
    ])('for everything that goes with %s', async (_name, sql) => {
      const { userId, trees } = await createTree(3);
      await store.psql(sql(userId));
      expect(await prisma.user.count()).toBe(0);
      expect(await prisma.scratchpad.count()).toBe(0);
      expect(await purgeTasks()).toEqual(
        trees
          .flatMap(({ threadId, scratchpadId }) => [
            `SCRATCHPAD ${userId} ${scratchpadId}`,
            `THREAD ${userId} ${threadId}`,
          ])
          .sort(),
      );
    });

    it('in the same transaction: a rollback takes both back', async () => {
      const { scratchpadId } = await createTree();
      await store.psql(`BEGIN; DELETE FROM scratchpads WHERE id = '${scratchpadId}'; ROLLBACK`);
      expect(await prisma.scratchpad.count()).toBe(1);
      expect(await purgeTasks()).toEqual([]);
    });

    it('and none for a row that stays', async () => {
      const { userId, trees } = await createTree(2);
      await store.psql(`DELETE FROM threads WHERE id = '${trees[1]!.threadId}'`);
      await store.psql(`UPDATE scratchpads SET meta_data = '{"a": 1}'`);
      expect(await purgeTasks()).toEqual([
        `SCRATCHPAD ${userId} ${trees[1]!.scratchpadId}`,
        `THREAD ${userId} ${trees[1]!.threadId}`,
      ]);
    });
  });

  describe('ownership', () => {
    it('gives a thread at most one scratchpad', async () => {
      const { userId, threadId } = await createTree();
      const second = { id: createId('scratchpad'), ownerId: userId, threadId };
      const error = await failure(prisma.scratchpad.create({ data: second }));
      expect(isUniqueViolation(error)).toBe(true);
      expect(isUniqueViolation(error, 'thread_id')).toBe(true);
      expect(isUniqueViolation(error, 'owner_id')).toBe(false);
      expect(isForeignKeyViolation(error)).toBe(false);
      expect(isSqlUnavailable(error)).toBe(false);
    });

    it('tells a duplicate in raw SQL in the same way', async () => {
      const { userId, threadId } = await createTree();
      const error = await failure(
        prisma.$executeRaw`INSERT INTO scratchpads (id, owner_id, thread_id) VALUES ('sp_x', ${userId}, ${threadId})`,
      );
      expect(isUniqueViolation(error, 'thread_id')).toBe(true);
    });

    it('tells a duplicate on several columns, and a duplicate id', async () => {
      await store.psql(
        'CREATE TABLE pairs (id text PRIMARY KEY, left_no int, "rightNo" int, UNIQUE (left_no, "rightNo"))',
      );
      const insert = (id: string) => prisma.$executeRaw`INSERT INTO pairs VALUES (${id}, 1, 2)`;
      await insert('a');
      const error = await failure(insert('b'));
      expect(isUniqueViolation(error, 'left_no', 'rightNo')).toBe(true);
      expect(isUniqueViolation(error, 'left_no')).toBe(false);
      const duplicate = await failure(insert('a'));
      expect(isUniqueViolation(duplicate)).toBe(true);
      expect(isUniqueViolation(duplicate, 'left_no', 'rightNo')).toBe(false);
      await store.psql('DROP TABLE pairs');
    });

    it('refuses a scratchpad without a thread', async () => {
      const { userId } = await createTree();
      const data = { id: createId('scratchpad'), ownerId: userId, threadId: createId('thread') };
      const error = await failure(prisma.scratchpad.create({ data }));
      expect(isForeignKeyViolation(error)).toBe(true);
      expect(isUniqueViolation(error)).toBe(false);
      const without = `INSERT INTO scratchpads (id, owner_id, thread_id) VALUES ('sp_x', '${userId}', NULL)`;
      await expect(store.psql(without)).rejects.toThrow(/null value/);
    });

    it('refuses a scratchpad whose owner is not the owner of its thread', async () => {
      const [mine, theirs] = [await createTree(), await createTree()];
      const threadId = createId('thread');
      await prisma.thread.create({ data: { id: threadId, ownerId: mine.userId } });
      const foreign = { id: createId('scratchpad'), ownerId: theirs.userId, threadId };
      expect(isForeignKeyViolation(await failure(prisma.scratchpad.create({ data: foreign })))).toBe(true);
    });

    it.each([
      ['a scratchpad', 'scratchpads'],
      ['a thread that has a scratchpad', 'threads'],
    ])('refuses to change the owner of %s', async (_name, table) => {
      const [mine, theirs] = [await createTree(), await createTree()];
      const update = `UPDATE ${table} SET owner_id = '${theirs.userId}' WHERE owner_id = '${mine.userId}'`;
      expect(isForeignKeyViolation(await failure(store.psql(update)))).toBe(true);
      expect(await prisma.thread.count({ where: { ownerId: mine.userId } })).toBe(1);
      expect(await prisma.scratchpad.count({ where: { ownerId: mine.userId } })).toBe(1);
    });

    it('refuses to rename a user or a thread under what hangs on it', async () => {
      const { userId, threadId } = await createTree();
      expect(isForeignKeyViolation(await failure(store.psql(`UPDATE users SET id = 'x' WHERE id = '${userId}'`)))).toBe(
        true,
      );
      expect(
        isForeignKeyViolation(await failure(store.psql(`UPDATE threads SET id = 'x' WHERE id = '${threadId}'`))),
      ).toBe(true);
    });

    it('refuses an agent token whose owner is not the owner of the scratchpad', async () => {
      const [mine, theirs] = [await createTree(), await createTree()];
      const token = {
        id: createId('agentToken'),
        ownerId: theirs.userId,
        scratchpadId: mine.scratchpadId,
        name: 'worker',
        role: 'WORKER' as const,
        prefix: 'p',
        secretHash: 'h',
      };
      expect(isForeignKeyViolation(await failure(prisma.agentToken.create({ data: token })))).toBe(true);
      await prisma.agentToken.create({ data: { ...token, ownerId: mine.userId } });
      await prisma.scratchpad.delete({ where: { id: mine.scratchpadId } });
      expect(await prisma.agentToken.count()).toBe(0);
    });
  });

  it('numbers messages by itself, uniquely and increasingly, whoever writes at once', async () => {
    const { threadId, trees } = await createTree(4);
    const add = (thread: string, content: string) =>
      prisma.message.create({ data: { id: createId('message'), threadId: thread, role: 'USER', content } });
    const written = await Promise.all(
      Array.from({ length: 100 }, (_, index) => add(trees[index % 4]!.threadId, `${index}`)),
    );
    expect(new Set(written.map(({ sequenceNo }) => sequenceNo)).size).toBe(100);
    const highest = written.reduce((max, { sequenceNo }) => (sequenceNo > max ? sequenceNo : max), 0n);
    let last = highest;
    for (let index = 0; index < 10; index += 1) {
      const { sequenceNo } = await add(threadId, 'one after another');
      expect(sequenceNo).toBeGreaterThan(last);
      last = sequenceNo;
    }
    const duplicate = prisma.message.update({ where: { sequenceNo: last }, data: { sequenceNo: highest } });
    expect(isUniqueViolation(await failure(duplicate), 'sequence_no')).toBe(true);
  });

  it('names every table, column and type in snake case', async () => {
    const rows = await store.psql<{ name: string }>(`
      SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'
      UNION SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'
      UNION SELECT typname FROM pg_type WHERE typtype = 'e'`);
    expect(rows.length).toBeGreaterThan(30);
    expect(rows.map(({ name }) => name).filter((name) => !/^_?[a-z]+(_[a-z]+)*$/.test(name))).toEqual([]);
  });

  it('keeps instants, JSON and large numbers exactly, joined or not, whatever the zone of the server', async () => {
    const { userId, threadId } = await createTree();
    const createdAt = new Date('2031-07-08T23:59:59.987Z');
    const metaData = { date: '2020-01-01T00:00:00Z', z: [1, -1.5, null, { '': 'é😀"\\' }], a: '\u200f\n', n: 1e21 };
    await prisma.thread.update({ where: { id: threadId }, data: { createdAt, metaData } });
    const message = { id: createId('message'), threadId, role: 'TOOL' as const, content: 'ひ', createdAt };
    await prisma.message.create({ data: message });
    await store.psql('UPDATE messages SET sequence_no = 9007199254740993');
    const expected = {
      createdAt,
      metaData,
      messages: [expect.objectContaining({ ...message, sequenceNo: 9_007_199_254_740_993n })],
    };

    for (const relationLoadStrategy of ['join', 'query'] as const) {
      const user = await prisma.user.findUniqueOrThrow({
        where: { id: userId },
        relationLoadStrategy,
        select: { threads: { select: { createdAt: true, metaData: true, messages: true } } },
      });
      expect(user.threads).toEqual([expected]);
      expect(Object.keys(user.threads[0]!.metaData as object).toSorted()).toEqual(Object.keys(metaData).toSorted());
    }
    const [row] = await store.psql<{ instant: string }>(
      `SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS') AS instant FROM messages`,
    );
    expect(`${row?.instant}Z`).toBe(createdAt.toISOString());
    expect(await prisma.message.count({ where: { createdAt: { gte: createdAt, lte: createdAt } } })).toBe(1);
  });

  it('reads a user, a page of threads and their scratchpads in one statement', async () => {
    const { userId } = await createTree(20);
    store.takeStatementCount();
    const user = await prisma.user.findUnique({
      where: { id: userId },
      select: { threads: { take: 50, orderBy: { id: 'desc' }, include: { scratchpad: true, messages: { take: 3 } } } },
    });
    expect(user?.threads.map(({ scratchpad }) => scratchpad?.ownerId)).toEqual(
      Array.from({ length: 20 }, () => userId),
    );
    expect(store.takeStatementCount()).toBe(1);
  });

  it('counts every statement, those of a transaction too', async () => {
    await prisma.user.count();
    store.takeStatementCount();
    await prisma.$transaction(async (transaction) => {
      await transaction.user.count();
      await transaction.$executeRaw`SELECT 1`;
    });
    expect(store.takeStatementCount()).toBe(4);
    await failure(
      prisma.$transaction(async (transaction) => {
        await transaction.user.count();
        throw new Error('no');
      }),
    );
    expect(store.takeStatementCount()).toBe(3);
    await store.database.ping();
    expect(store.takeStatementCount()).toBe(1);
  });
});
