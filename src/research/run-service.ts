// Runs as tenants start, watch and cancel them. What executes a run is handed in.
import { z } from 'zod';
import type { Assistant, Prisma, PrismaClient, Run } from '../generated/prisma/client.js';
import type { AssistantService } from '../assistants/assistant-service.js';
import { findOwner, requireOwner, requireUser, type Principal } from '../identity/principal.js';
import type { ScratchpadService } from '../scratchpads/scratchpad-service.js';
import { DomainError, invalidInput, notFound, parseInput } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import type { Logger } from '../shared/logger.js';
import { isForeignKeyViolation, isUniqueViolation } from '../shared/sql-errors.js';
import { byteLength, nameText, storableText } from '../shared/text.js';
import { lockIdleThread, threadIsBusy } from '../threads/idle-thread.js';
import type { RunCancellation, RunDispatcher } from './run-cancellation.js';
import { statusEventsOf, type RunEventRecord, type RunEvents, type StatusEventRecord } from './run-event.js';
import { DEFAULT_MAX_WORKERS, LEAST_RESEARCH_TURNS, MOST_WORKERS, RUN_MAX_TURNS } from './run-limits.js';
import type { RunMetaData } from './run-store.js';

const taskText = storableText.refine((text) => text.trim() !== '', 'must not be blank');
const newRun = z.object({ assistantId: z.string(), threadId: z.string(), message: taskText });
const newResearch = z.object({
  threadId: z.string(),
  question: taskText,
  model: nameText.nullish(),
  maxTurns: z
    .int()
    .min(
      LEAST_RESEARCH_TURNS,
      `must be at least ${LEAST_RESEARCH_TURNS}: one turn to delegate and one, in which no tool can be called, to answer`,
    )
    .nullish(),
  maxWorkers: z.int().min(1, 'must be at least 1').max(MOST_WORKERS, `must be at most ${MOST_WORKERS}`).nullish(),
});

export interface RunInput {
  assistantId: string;
  threadId: string;
  message: string;
}

export interface ResearchInput {
  threadId: string;
  question: string;
  model?: string | null;
  /** Caps the turns of the supervisor and of each worker; at least 2. */
  maxTurns?: number | null;
  maxWorkers?: number | null;
}

/** Every method takes the principal first and reaches only its own runs; a delegated worker's run is one of them. */
export interface RunService {
  /** Null for what is not there, not the principal's, or no run id. */
  find(principal: Principal, runId: string, query?: Prisma.RunDefaultArgs): Promise<Run | null>;
  count(principal: Principal): Promise<number>;
  /** How many runs each of these threads of the principal has; threads without any are left out. */
  countByThread(principal: Principal, threadIds: readonly string[]): Promise<Map<string, number>>;
  /**
   * Puts the message on the thread and the run into the queue.
   * @throws DomainError NOT_FOUND, CONFLICT while another run is active on the thread, INVALID_INPUT, LIMIT_EXCEEDED, UNAVAILABLE (also when no
   *   model provider is configured); then neither message nor run is left
   */
  startRun(principal: Principal, input: RunInput): Promise<Run>;
  /** The same for a supervisor, which needs no assistant. */
  startResearch(principal: Principal, input: ResearchInput): Promise<Run>;
  /** A run that has ended stays as it is. @throws DomainError NOT_FOUND */
  cancel(principal: Principal, runId: string): Promise<void>;
  /** Everything that the run lets a client see; see {@link RunEvents}. @throws DomainError NOT_FOUND, INVALID_INPUT, UNAVAILABLE */
  subscribe(
    principal: Principal,
    runId: string,
    options: { after?: string | null },
  ): Promise<AsyncIterableIterator<RunEventRecord>>;
  /** Its progress alone, in the same stream with the same cursors. */
  subscribeToStatus(
    principal: Principal,
    runId: string,
    options: { after?: string | null },
  ): Promise<AsyncIterableIterator<StatusEventRecord>>;
}

/** Whether a model can be reached at all, and which one without a better wish. */
export interface ProviderSettings {
  baseUrl: string | undefined;
  model: string | undefined;
}

interface Dependencies {
  prisma: PrismaClient;
  assistants: Pick<AssistantService, 'find'>;
  scratchpads: Pick<ScratchpadService, 'ensureForThread'>;
  cancellation: Pick<RunCancellation, 'cancel'>;
  dispatcher: Pick<RunDispatcher, 'enqueue'>;
  runEvents: RunEvents;
  provider: ProviderSettings;
  /** Of the message or the question, in UTF-8. */
  maxContentBytes: number;
  logger: Logger;
}

/** What the two kinds of root runs differ in. */
interface Plan extends Pick<Run, 'kind' | 'assistantId' | 'task' | 'model' | 'maxTurns' | 'maxWorkers'> {
  threadId: string;
}

export function createRunService(dependencies: Dependencies): RunService {
  const { prisma, assistants, scratchpads, cancellation, dispatcher, runEvents, provider, logger } = dependencies;

  function requireProvider(): void {
    if (provider.baseUrl !== undefined) return;
    throw new DomainError(
      'UNAVAILABLE',
      'This server has no model to run: its operator has to set LLM_BASE_URL, LLM_API_KEY and LLM_MODEL.',
    );
  }

  /** @throws DomainError INVALID_INPUT when nobody names a model */
  function modelFor(...wishes: (string | null | undefined)[]): string {
    const model = wishes.find((wish) => wish != null) ?? provider.model;
    if (model === undefined)
      throw invalidInput('model: name one, here or in the assistant; this server has no LLM_MODEL.');
    return model;
  }

  function checkSize(task: string): void {
    if (byteLength(task) <= dependencies.maxContentBytes) return;
    throw new DomainError(
      'LIMIT_EXCEEDED',
      `A message may have at most ${dependencies.maxContentBytes} bytes in UTF-8.`,
    );
  }

  /** The message and the run, or neither. */
  async function create(ownerId: string, scratchpadId: string, { threadId, ...plan }: Plan): Promise<Run> {
    const metaData: RunMetaData = { scratchpad_id: scratchpadId, scratch_pad_thread: threadId };
    try {
      return await prisma.$transaction(async (transaction) => {
        await lockIdleThread(transaction, ownerId, threadId);
        const { id: taskMessageId } = await transaction.message.create({
          data: { id: createId('message'), threadId, role: 'USER', content: plan.task },
          select: { id: true },
        });
        return await transaction.run.create({
          data: {
            id: createId('run'),
            ownerId,
            threadId,
            scratchpadId,
            taskMessageId,
            metaData: { ...metaData },
            ...plan,
          },
        });
      });
    } catch (error) {
      if (isUniqueViolation(error, 'thread_id')) throw threadIsBusy();
      // The scratchpad or the assistant was deleted a moment ago.
      if (isForeignKeyViolation(error)) throw notFound();
      throw error;
    }
  }

  /** @returns false when it is being executed, or has been: then it was started after all */
  const takeBack = (run: Run): Promise<boolean> =>
    prisma.$transaction(async (transaction) => {
      const { count } = await transaction.run.deleteMany({ where: { id: run.id, status: 'QUEUED' } });
      if (count > 0) await transaction.message.deleteMany({ where: { id: run.taskMessageId } });
      return count > 0;
    });

  async function start(principal: Principal, plan: Plan): Promise<Run> {
    const { userId } = requireOwner(principal);
    const pad = await scratchpads.ensureForThread(principal, plan.threadId);
    const run = await create(userId, pad.id, plan);
    try {
      await dispatcher.enqueue(run);
    } catch (error) {
      logger.warn({ err: error, runId: run.id }, 'could not put a run into the queue');
      if (await takeBack(run)) throw error;
    }
    return run;
  }

  async function requireRun(principal: Principal, runId: string): Promise<Run> {
    const { userId } = requireOwner(principal);
    const run = isId('run', runId) ? await prisma.run.findFirst({ where: { id: runId, ownerId: userId } }) : null;
    if (!run) throw notFound();
    return run;
  }

  const subscribe: RunService['subscribe'] = async (principal, runId, { after }) => {
    const { ownerId, parentRunId } = await requireRun(principal, runId);
    return await runEvents.subscribe({ ownerId, runId, parentRunId }, after == null ? {} : { after });
  };

  return {
    subscribe,

    async subscribeToStatus(principal, runId, options) {
      return statusEventsOf(await subscribe(principal, runId, options));
    },

    async find(principal, runId, query = {}) {
      const owner = findOwner(principal);
      if (!owner || !isId('run', runId)) return null;
      return await prisma.run.findFirst({ ...query, where: { id: runId, ownerId: owner.userId } });
    },

    async count(principal) {
      return await prisma.run.count({ where: { ownerId: requireUser(principal).userId } });
    },

    async countByThread(principal, threadIds) {
      const { userId } = requireUser(principal);
      const groups = await prisma.run.groupBy({
        by: ['threadId'],
        where: { threadId: { in: [...threadIds] }, ownerId: userId },
        _count: true,
      });
      return new Map(groups.map(({ threadId, _count }) => [threadId ?? '', _count]));
    },

    async startRun(principal, input) {
      requireOwner(principal);
      const { assistantId, threadId, message } = parseInput(newRun, input);
      checkSize(message);
      requireProvider();
      const assistant: Assistant | null = await assistants.find(principal, assistantId);
      if (!assistant) throw notFound();
      return await start(principal, {
        kind: 'ASSISTANT',
        assistantId,
        threadId,
        task: message,
        model: modelFor(assistant.model),
        maxTurns: RUN_MAX_TURNS,
        maxWorkers: 0,
      });
    },

    async startResearch(principal, input) {
      requireOwner(principal);
      const { threadId, question, model, maxTurns, maxWorkers } = parseInput(newResearch, input);
      checkSize(question);
      requireProvider();
      return await start(principal, {
        kind: 'RESEARCH',
        assistantId: null,
        threadId,
        task: question,
        model: modelFor(model),
        maxTurns: Math.min(maxTurns ?? RUN_MAX_TURNS, RUN_MAX_TURNS),
        maxWorkers: maxWorkers ?? DEFAULT_MAX_WORKERS,
      });
    },

    async cancel(principal, runId) {
      await cancellation.cancel(await requireRun(principal, runId));
    },
  };
}
