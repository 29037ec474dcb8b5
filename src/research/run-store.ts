// The SQL side of runs for the runtime that executes them: rows and transitions, without a principal.
import type { Prisma, PrismaClient, Run } from '../generated/prisma/client.js';
import type { Clock } from '../shared/clock.js';
import { createId } from '../shared/ids.js';
import { activeRun } from '../threads/idle-thread.js';
import type { CapabilityPlaceholder } from '../tools/assistant-tools.js';

export type RunRow = Run;

/** `Run.lastError.code`. */
export type RunErrorCode =
  | 'PROVIDER_ERROR'
  | 'PROVIDER_PROTOCOL'
  | 'MAX_TURNS_EXCEEDED'
  | 'EMPTY_RESULT'
  | 'NO_EVIDENCE'
  | 'CONTEXT_OVERFLOW'
  | 'WORKER_LOST'
  | 'INTERNAL';

/** How an execution ended. `turnCount` stays what it was when it is left out. */
export type RunEnd = { turnCount?: number } &
  /** `output`: what the last turn said, which becomes part of the conversation with this end and no other. */
  (
    | { status: 'COMPLETED'; output: string; unverifiedCitations?: string[] }
    | { status: 'FAILED'; error: { code: RunErrorCode; message: string } }
    | { status: 'CANCELLED' | 'EXPIRED' }
  );

/** What a run hands on to everything below it. */
export interface RunMetaData {
  scratchpad_id?: string;
  scratch_pad_thread?: string;
}

/** Written by startRun, startResearch and createWorker alone. */
export const metaDataOf = (run: Pick<RunRow, 'metaData'>): RunMetaData => run.metaData as RunMetaData;

export interface WorkerOrder {
  task: string;
  requirements?: string;
  /** The assistant's name: the author of what it appends. */
  name: string;
  instructions: string;
  maxTurns: number;
}

export interface CreatedWorker {
  run: RunRow;
  threadId: string;
  assistantId: string;
  /** The first message of its conversation: the task and the requirements, word for word. */
  taskMessageId: string;
}

/** Transitions ask for the state that they leave: a terminal state never changes, whoever races. */
export interface RunStore {
  find(runId: string): Promise<RunRow | null>;
  /** QUEUED → IN_PROGRESS. Null when it is not QUEUED any more, or gone. */
  begin(runId: string): Promise<RunRow | null>;
  /** To a terminal state. Null when it was in one already, or is gone. */
  finish(runId: string, end: RunEnd): Promise<RunRow | null>;
  /** QUEUED → CANCELLED. Null when it is not QUEUED any more, or gone. */
  cancelQueued(runId: string): Promise<RunRow | null>;
  /** Leaves word for the executing process, which may not hear a signal. False when the run has ended, or is gone. */
  askToCancel(runId: string): Promise<boolean>;
  /** Of an active run; else nothing happens. */
  setTurnCount(runId: string, turnCount: number): Promise<void>;
  /**
   * A QUEUED run with an assistant and a conversation of its own, which no tenant sees, in one transaction. Its metadata is the parent's.
   * Null when the parent is not IN_PROGRESS any more.
   */
  createWorker(parent: RunRow, order: WorkerOrder): Promise<CreatedWorker | null>;
  /** Removes the conversation and the assistant of a worker; its row stays. Safe to repeat. */
  removeEphemera(workerRunId: string): Promise<void>;
  /** Every run that has not ended, workers too, oldest first. */
  activeRuns(): Promise<RunRow[]>;
  /** {@link removeEphemera} for every worker that has ended, and for what no run names. Returns how many conversations went. */
  removeStaleEphemera(): Promise<number>;
}

interface Dependencies {
  prisma: PrismaClient;
  now: Clock;
}

/** What every delegated worker has: in the row of its assistant, and when it is executed. */
export const workerTools: readonly CapabilityPlaceholder[] = [{ type: 'web_search' }, { type: 'scratchpad' }];

const firstMessageOf = ({ task, requirements }: WorkerOrder): string =>
  requirements === undefined || requirements.trim() === '' ? task : `${task}\n\nRequirements:\n${requirements}`;

function outcomeColumns(end: RunEnd): Prisma.RunUpdateManyMutationInput {
  const { status } = end;
  if (status === 'COMPLETED') return { status, output: end.output, unverifiedCitations: end.unverifiedCitations ?? [] };
  if (status === 'FAILED') return { status, lastErrorCode: end.error.code, lastErrorMessage: end.error.message };
  return { status };
}

export function createRunStore({ prisma, now }: Dependencies): RunStore {
  async function transition(
    where: Prisma.RunWhereInput,
    data: Prisma.RunUpdateManyMutationInput,
  ): Promise<RunRow | null> {
    const [row] = await prisma.run.updateManyAndReturn({ where, data });
    return row ?? null;
  }

  const removeEphemeraOf = (which: Prisma.RunWhereInput): Promise<number> =>
    prisma.$transaction(async (transaction) => {
      // A thread takes its runs along: the row lets go of it first.
      await transaction.run.updateMany({
        where: { kind: 'RESEARCH_WORKER', OR: [{ threadId: { not: null } }, { assistantId: { not: null } }], ...which },
        data: { threadId: null, assistantId: null },
      });
      const unnamed = { ephemeral: true, runs: { none: {} } };
      const { count } = await transaction.thread.deleteMany({ where: unnamed });
      await transaction.assistant.deleteMany({ where: unnamed });
      return count;
    });

  return {
    async find(runId) {
      return await prisma.run.findUnique({ where: { id: runId } });
    },

    begin: (runId) => transition({ id: runId, status: 'QUEUED' }, { status: 'IN_PROGRESS', startedAt: now() }),

    async finish(runId, end) {
      const data = {
        ...outcomeColumns(end),
        ...(end.turnCount !== undefined && { turnCount: end.turnCount }),
        finishedAt: now(),
      };
      if (end.status !== 'COMPLETED') return await transition({ id: runId, ...activeRun }, data);
      return await prisma.$transaction(async (transaction) => {
        // A run that never began cannot have completed.
        const where = { id: runId, status: 'IN_PROGRESS' } as const;
        const [row] = await transaction.run.updateManyAndReturn({ where, data });
        if (!row) return null;
        // In one step with the end: whoever runs next on this thread reads an answer that held, or none.
        if (row.threadId !== null && end.output !== '') {
          const { threadId } = row;
          await transaction.message.create({
            data: { id: createId('message'), threadId, role: 'ASSISTANT', content: end.output },
          });
        }
        return row;
      });
    },

    cancelQueued: (runId) => transition({ id: runId, status: 'QUEUED' }, { status: 'CANCELLED', finishedAt: now() }),

    async askToCancel(runId) {
      const { count } = await prisma.run.updateMany({
        where: { id: runId, ...activeRun },
        data: { cancelRequestedAt: now() },
      });
      return count > 0;
    },

    async setTurnCount(runId, turnCount) {
      await prisma.run.updateMany({ where: { id: runId, ...activeRun }, data: { turnCount } });
    },

    async createWorker(parent, order) {
      const { ownerId } = parent;
      const [threadId, assistantId, taskMessageId] = [createId('thread'), createId('assistant'), createId('message')];
      return await prisma.$transaction(async (transaction) => {
        // Locked, so that the parent cannot end in between and leave a worker that nobody waits for.
        const rows = await transaction.$queryRaw<unknown[]>`
          SELECT 1 FROM runs WHERE id = ${parent.id} AND status = 'IN_PROGRESS' FOR NO KEY UPDATE`;
        if (rows.length === 0) return null;
        await transaction.assistant.create({
          data: {
            id: assistantId,
            ownerId,
            name: order.name,
            instructions: order.instructions,
            model: parent.model,
            tools: workerTools.map(({ type }) => ({ type })),
            ephemeral: true,
          },
        });
        await transaction.thread.create({ data: { id: threadId, ownerId, ephemeral: true } });
        await transaction.message.create({
          data: { id: taskMessageId, threadId, role: 'USER', content: firstMessageOf(order) },
        });
        const run = await transaction.run.create({
          data: {
            id: createId('run'),
            ownerId,
            kind: 'RESEARCH_WORKER',
            parentRunId: parent.id,
            assistantId,
            threadId,
            scratchpadId: parent.scratchpadId,
            task: order.task,
            taskMessageId,
            model: parent.model,
            maxTurns: order.maxTurns,
            metaData: { ...metaDataOf(parent) },
          },
        });
        return { run, threadId, assistantId, taskMessageId };
      });
    },

    async removeEphemera(workerRunId) {
      await removeEphemeraOf({ id: workerRunId });
    },

    async activeRuns() {
      return await prisma.run.findMany({ where: activeRun, orderBy: { id: 'asc' } });
    },

    removeStaleEphemera: () => removeEphemeraOf({ NOT: activeRun }),
  };
}
