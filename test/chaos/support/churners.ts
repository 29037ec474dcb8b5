// Those who create and delete users, threads and pads at random, from every server, while others write into the same pads.
import { administratorSecret } from '../../support/cluster.js';
import type { Answer } from './requests.js';
import { pause, takePart, type Part, type Participant } from './session.js';
import { appendOnce } from './writers.js';

interface ChurnedPad {
  id: string;
  threadId: string;
}
interface ChurnedThread {
  id: string;
  user: ChurnedUser;
  pad?: ChurnedPad | undefined;
}
interface ChurnedUser {
  id: string;
  secret: string;
  threads: ChurnedThread[];
  /** Threads of it that get their notebook just now: until then it is not deleted, or the notebook would come after the purge. */
  expecting: number;
}

/** What all churners know together: that is how one deletes what another one is writing to. */
export interface ChurnedWorld {
  readonly users: ChurnedUser[];
  /** Whatever a deletion was sent for. */
  readonly tried: Set<string>;
  /** Leaves a notebook of the time before scratchpads under a thread. */
  leaveNotebook(threadId: string): Promise<void>;
}

const documents = {
  user: 'mutation ($name: String!) { createUser(input: { name: $name }) { secret user { id } } }',
  thread: 'mutation { createThread(input: {}) { thread { id } } }',
  scratchpad: 'mutation ($id: ID!) { createScratchpad(input: { threadId: $id }) { scratchpad { id } } }',
  find: 'query ($id: ID!) { scratchpadByThread(threadId: $id) { id } }',
  deleteUser: 'mutation ($id: ID!) { deleteUser(input: { userId: $id }) { deletedUserId } }',
  deleteViewer: 'mutation ($id: ID!) { deleteViewer(input: { confirmUserId: $id }) { deletedUserId } }',
  deleteThread: 'mutation ($id: ID!) { deleteThread(input: { threadId: $id }) { deletedThreadId } }',
  deleteScratchpad: 'mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }',
};

const mostUsers = 6;
const mostThreads = 8;
/** For each server, from when a deletion is sent on. */
const lateWrites = 8;

export function startChurner(part: Part, world: ChurnedWorld): Participant {
  const { session, random, name } = part;
  const { tried, users } = world;

  const send = <Data>(secret: string, document: string, variables: object = {}): Promise<Answer<Data>> =>
    session.requests.send<Data>(random.whole(0, session.servers - 1), secret, document, variables);
  const note = (
    operation: 'create' | 'delete',
    kind: 'user' | 'thread' | 'scratchpad',
    id: string,
    parentId: string | null,
    { startedAtMs, answeredAtMs }: { startedAtMs: number; answeredAtMs: number },
  ): void =>
    session.recorder.acknowledge({
      operation,
      kind,
      id,
      parentId,
      client: name,
      attempts: 1,
      startedAtMs,
      answeredAtMs,
    });

  /** What is refused must have been deleted, or the store must have been away. */
  const judge = (what: string, answer: Answer<unknown>, ids: readonly string[], more: readonly string[] = []): void => {
    if (answer.kind !== 'refused' || answer.code === 'UNAVAILABLE' || more.includes(answer.code)) return;
    const isGone = ids.some((id) => tried.has(id));
    if (isGone && (answer.code === 'NOT_FOUND' || answer.code === 'UNAUTHENTICATED')) return;
    session.complain(`${name} was refused ${what} of ${ids.join(' in ')}: ${answer.code}`);
  };

  async function createUser(): Promise<boolean> {
    const answer = await send<{ createUser: { secret: string; user: { id: string } } }>(
      administratorSecret,
      documents.user,
      { name },
    );
    judge('a user', answer, []);
    if (answer.kind !== 'success') return false;
    const { secret, user } = answer.data.createUser;
    note('create', 'user', user.id, null, answer);
    users.push({ id: user.id, secret, threads: [], expecting: 0 });
    return true;
  }

  async function createThread(user: ChurnedUser): Promise<boolean> {
    user.expecting += 1;
    try {
      const answer = await send<{ createThread: { thread: { id: string } } }>(user.secret, documents.thread);
      judge('a thread', answer, [user.id]);
      if (answer.kind !== 'success') return false;
      const { id } = answer.data.createThread.thread;
      note('create', 'thread', id, user.id, answer);
      if (random.next() < 0.3) await world.leaveNotebook(id);
      user.threads.push({ id, user });
      return true;
    } finally {
      user.expecting -= 1;
    }
  }

  async function createScratchpad(thread: ChurnedThread): Promise<boolean> {
    const { secret, id: userId } = thread.user;
    const ids = [thread.id, userId];
    const answer = await send<{ createScratchpad: { scratchpad: { id: string } } }>(secret, documents.scratchpad, {
      id: thread.id,
    });
    // A conflict: another churner was faster, or an earlier answer was lost.
    judge('a scratchpad', answer, ids, ['CONFLICT']);
    let padId: string | undefined;
    if (answer.kind === 'success') {
      padId = answer.data.createScratchpad.scratchpad.id;
      note('create', 'scratchpad', padId, thread.id, answer);
    } else {
      const found = await send<{ scratchpadByThread: { id: string } | null }>(secret, documents.find, {
        id: thread.id,
      });
      judge('the scratchpad', found, ids);
      if (found.kind === 'success') padId = found.data.scratchpadByThread?.id;
    }
    if (padId !== undefined && !tried.has(padId)) thread.pad = { id: padId, threadId: thread.id };
    return answer.kind === 'success';
  }

  async function write(thread: ChurnedThread, pad: ChurnedPad, entryName: string, server: number): Promise<boolean> {
    const target = { scratchpadId: pad.id, secret: thread.user.secret };
    const answer = await appendOnce(part, target, { name: entryName, length: random.whole(10, 300) }, server);
    judge('an append', answer, [pad.id, thread.id, thread.user.id]);
    return answer.kind === 'success';
  }

  /** Every server knows that the pad is there, and goes on to write into it when it is not any more. */
  async function removeWhileWriting(
    thread: ChurnedThread,
    pad: ChurnedPad,
    index: number,
    removal: () => Promise<boolean>,
  ): Promise<boolean> {
    const servers = Array.from({ length: session.servers }, (_, server) => server);
    await Promise.all(servers.map((server) => write(thread, pad, `${name}-${index}-before-${server}`, server)));
    const removing = removal();
    const late = async (server: number): Promise<void> => {
      for (let times = 0; times < lateWrites; times += 1) {
        await write(thread, pad, `${name}-${index}-late-${server}-${times}`, server);
      }
    };
    const [isRemoved] = await Promise.all([removing, ...servers.map(late)]);
    return isRemoved;
  }

  async function remove(
    kind: 'user' | 'thread' | 'scratchpad',
    id: string,
    owner: ChurnedUser,
    parentId: string | null,
  ): Promise<boolean> {
    tried.add(id);
    const [secret, document] =
      kind === 'thread'
        ? [owner.secret, documents.deleteThread]
        : kind === 'scratchpad'
          ? [owner.secret, documents.deleteScratchpad]
          : random.next() < 0.5
            ? [administratorSecret, documents.deleteUser]
            : [owner.secret, documents.deleteViewer];
    const answer = await send(secret, document, { id });
    judge('the deletion', answer, [id, owner.id, ...(parentId === null ? [] : [parentId])]);
    if (answer.kind === 'success') note('delete', kind, id, parentId, answer);
    return answer.kind === 'success';
  }

  return takePart(part, async (index) => {
    await pause(session, random.whole(5, 60));
    const dice = random.next();
    if (users.length === 0 || (dice < 0.05 && users.length < mostUsers)) return await createUser();
    const user = random.pick(users);
    if (dice < 0.08 && user.expecting === 0) {
      users.splice(users.indexOf(user), 1);
      return await remove('user', user.id, user, null);
    }
    if (user.threads.length === 0 || (dice < 0.2 && user.threads.length < mostThreads)) return await createThread(user);
    const thread = random.pick(user.threads);
    const { pad } = thread;
    if (dice < 0.26) {
      user.threads.splice(user.threads.indexOf(thread), 1);
      const removal = () => remove('thread', thread.id, user, user.id);
      return pad ? await removeWhileWriting(thread, pad, index, removal) : await removal();
    }
    if (!pad) return await createScratchpad(thread);
    if (dice < 0.34) {
      thread.pad = undefined;
      return await removeWhileWriting(thread, pad, index, () => remove('scratchpad', pad.id, user, thread.id));
    }
    return await write(thread, pad, `${name}-${index}`, random.whole(0, session.servers - 1));
  });
}
