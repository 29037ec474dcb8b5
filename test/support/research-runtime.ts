// A service that executes its runs in this process: real stores, a scripted model, a small web. Events are kept in memory, in order.
import { setTimeout as sleep } from 'node:timers/promises';
import { createAssistantService } from '../../src/assistants/assistant-service.js';
import { openDatabase } from '../../src/infra/postgres.js';
import { openRedis } from '../../src/infra/redis.js';
import { createOpenAiProvider } from '../../src/research/provider/openai-provider.js';
import type { NewRunEvent } from '../../src/research/run-event.js';
import { createRunExecutor, type RunExecutorDependencies } from '../../src/research/run-executor.js';
import { createStopSignal, type StopSignal } from '../../src/research/run-stop.js';
import { createRunStore, type RunRow } from '../../src/research/run-store.js';
import { createSqlConversation } from '../../src/research/sql-conversation.js';
import { terminalEventOf } from '../../src/research/terminal-event.js';
import { createDataPlane } from '../../src/scratchpads/data-plane.js';
import { createIdentityPlane } from '../../src/scratchpads/identity-plane.js';
import { createNotebookConverger } from '../../src/scratchpads/legacy-notebook.js';
import { createScratchpadService } from '../../src/scratchpads/scratchpad-service.js';
import { systemClock } from '../../src/shared/clock.js';
import { createId } from '../../src/shared/ids.js';
import { createLogger } from '../../src/shared/logger.js';
import { createPageFetcher } from '../../src/tools/web/fetch-page.js';
import { createHtmlConverter } from '../../src/tools/web/html-converter.js';
import { createSearchEngine } from '../../src/tools/web/search-engine.js';
import { createRecordingRunRuntime } from './run-runtime.js';
import {
  startScriptedModelServer,
  type ModelRequest,
  type Reply,
  type ScriptedCall,
  type ScriptedModelServer,
  type WireMessage,
} from './scripted-model-server.js';
import { startService, type Service, type Tenant } from './service.js';
import { startSmallWeb, type SmallWeb } from './small-web.js';

export const providerKey = 'sk-provider-key-of-the-tests-4711';

type TextOfReply = Reply | ((request: ModelRequest) => Reply);

export interface ResearchRuntime {
  service: Service;
  tenant: Tenant;
  model: ScriptedModelServer;
  web: SmallWeb;
  /** What executes runs, and what it is given instead for the runs that are started from now on. */
  dependencies: RunExecutorDependencies;
  overrides: Partial<RunExecutorDependencies>;
  /** Called between the queue and the execution. */
  beforeExecution: (run: RunRow) => Promise<void>;
  /** What one run's stream was told, its workers' events with it, in order. */
  eventsOf(runId: string): NewRunEvent[];
  /** Everything that was logged. */
  log: string[];
  /** The next replies of supervisors, and of the worker whose task contains this text. */
  supervisor(...replies: TextOfReply[]): void;
  worker(task: string, ...replies: TextOfReply[]): void;
  /** Resolves when nothing is executed any more. */
  idle(): Promise<void>;
  /** For runs that are started from now on. */
  wallClockMs: number;
  /** Undoes what a test has set. @throws when the model was asked for something else than was scripted */
  reset(): void;
  close(): Promise<void>;
}

const systemOf = ({ body }: ModelRequest): string => body.messages[0]?.content ?? '';
export const isSupervisor = (request: ModelRequest): boolean => systemOf(request).startsWith('You lead');
export const isWorkerOn =
  (task: string) =>
  (request: ModelRequest): boolean =>
    systemOf(request).startsWith('You are a research worker') &&
    request.body.messages.some(({ role, content }) => role === 'user' && content?.includes(task) === true);

export async function startResearchRuntime(): Promise<ResearchRuntime> {
  const [model, web] = await Promise.all([startScriptedModelServer(), startSmallWeb()]);
  const recording = createRecordingRunRuntime();
  const service = await startService({
    runRuntime: recording,
    environment: { LLM_BASE_URL: model.baseUrl, LLM_MODEL: 'house-model', LLM_API_KEY: providerKey },
  });
  const log: string[] = [];
  const logger = createLogger('trace', { write: (line) => void log.push(line) });
  const database = await openDatabase({ databaseUrl: service.databaseUrl, logger });
  const redis = await openRedis({ redisUrl: service.redis.url }, logger);
  const { prisma } = database;
  const limits = {
    scratchpadTtlSeconds: 86_400,
    maxContentBytes: 1_048_576,
    maxEntryBytes: 65_536,
    maxEntries: 100_000,
    formattedViewMaxBytes: 65_536,
  };
  const runStore = createRunStore({ prisma, now: systemClock });
  const fetcher = createPageFetcher({ isPermitted: () => true });
  const converter = createHtmlConverter();
  const streams = new Map<string, NewRunEvent[]>();
  const streamOf = ({ id, parentRunId }: Pick<RunRow, 'id' | 'parentRunId'>): NewRunEvent[] => {
    const key = parentRunId ?? id;
    const stream = streams.get(key) ?? [];
    streams.set(key, stream);
    return stream;
  };
  const dependencies: RunExecutorDependencies = {
    runStore,
    assistants: createAssistantService({ prisma, cancelRuns: async () => {}, maxContentBytes: limits.maxContentBytes }),
    conversationOf: (threadId) => createSqlConversation({ prisma, threadId }),
    scratchpads: createScratchpadService({
      identityPlane: createIdentityPlane({ prisma, now: systemClock }),
      dataPlane: createDataPlane({ redis, limits }),
      eventPlane: {
        subscribe: () => Promise.reject(new Error('Nobody subscribes here.')),
        farewell: () => undefined,
      },
      convergeNotebook: createNotebookConverger({ redis, limits, logger }),
      cancelRuns: async () => {},
      purgeOwner: async () => {},
      logger,
    }),
    createProvider: (run) =>
      createOpenAiProvider({
        baseUrl: model.baseUrl,
        apiKey: providerKey,
        model: run.model ?? '',
        newCallId: () => createId('call'),
        sleep: async () => {},
        onFailedTry: (failure) => logger.warn({ failure }, 'a try failed'),
      }),
    web: { engine: createSearchEngine(web.searchUrl), fetcher, converter },
    events: {
      publisher: (run) => ({
        publish: (event) => void streamOf(run).push(event),
        flush: async () => {},
      }),
    },
    limits: { contextMaxTokens: 100_000 },
    logger,
    now: systemClock,
  };

  const stops = new Map<string, StopSignal>();
  const executions = new Set<Promise<void>>();
  const cancellations: ((runId: string) => boolean)[] = [];
  Object.assign(recording.dispatcher, {
    enqueue(run: RunRow) {
      const stop = createStopSignal(runtime.wallClockMs);
      stops.set(run.id, stop);
      const executor = createRunExecutor({ ...dependencies, ...runtime.overrides });
      cancellations.push((runId) => executor.cancelWorker(runId));
      const execution = runtime
        .beforeExecution(run)
        .then(() => executor.execute(run.id, stop))
        .finally(() => {
          stop.dispose();
          executions.delete(execution);
        });
      executions.add(execution);
      return Promise.resolve();
    },
    requestCancel(run: RunRow) {
      stops.get(run.id)?.cancel();
      for (const cancel of cancellations) cancel(run.id);
      return Promise.resolve();
    },
    endedUnexecuted(run: RunRow) {
      streamOf(run).push(terminalEventOf(run, new Date()));
      return Promise.resolve();
    },
  });

  const expect = (when: (request: ModelRequest) => boolean, replies: TextOfReply[]): void =>
    model.script(...replies.map((reply) => ({ when, reply })));

  const defaults = { overrides: {}, beforeExecution: async () => {}, wallClockMs: 60_000 };
  const runtime: ResearchRuntime = {
    ...defaults,
    service,
    tenant: await service.createTenant('Ada'),
    model,
    web,
    dependencies,
    eventsOf: (id) => [...streamOf({ id, parentRunId: null })],
    log,
    supervisor: (...replies) => expect(isSupervisor, replies),
    worker: (task, ...replies) => expect(isWorkerOn(task), replies),
    async idle() {
      while (executions.size > 0) await Promise.all(executions);
    },
    reset() {
      Object.assign(runtime, defaults);
      model.verify();
    },
    async close() {
      for (const stop of stops.values()) stop.cancel();
      await Promise.allSettled(executions);
      await Promise.all([model.close(), web.close(), fetcher.close(), converter.close()]);
      await database.close();
      await redis.close();
      await service.close();
    },
  };
  return runtime;
}

export interface EndedRun {
  id: string;
  kind: string;
  status: string;
  task: string;
  output: string | null;
  unverifiedCitations: string[];
  lastError: { code: string; message: string } | null;
  turnCount: number;
  maxTurns: number;
  thread: { id: string } | null;
  assistant: { id: string } | null;
  scratchpad: { id: string } | null;
  metaData: object;
  startedAt: string | null;
  finishedAt: string | null;
  childRuns: EndedRun[];
}

const runFields = `id kind status task output unverifiedCitations lastError { code message } turnCount maxTurns
  thread { id } assistant { id } scratchpad { id } metaData startedAt finishedAt`;

export async function readRun({ tenant }: ResearchRuntime, id: string): Promise<EndedRun> {
  const { run } = await tenant.client.run<{ run: EndedRun }>(
    `query ($id: ID!) { run(id: $id) { ${runFields} childRuns { ${runFields} } } }`,
    { id },
  );
  return run;
}

const deadlineMs = 20_000;

/** Waits until the condition holds. @throws after a while */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`It never came to this: ${what}`);
    await sleep(10);
  }
}

export const delegate = (id: string, task: string, requirements?: string): ScriptedCall => ({
  id,
  name: 'delegate_research_task',
  arguments: { task, ...(requirements !== undefined && { requirements }) },
});
export const append = (id: string, note: string): ScriptedCall => ({
  id,
  name: 'append_scratchpad',
  arguments: { note },
});
export const update = (id: string, content: string): ScriptedCall => ({
  id,
  name: 'update_scratchpad',
  arguments: { content },
});
export const readPad = (id: string): ScriptedCall => ({ id, name: 'read_scratchpad', arguments: {} });
export const readPage = (id: string, url: string): ScriptedCall => ({ id, name: 'read_web_page', arguments: { url } });
export const search = (id: string, query: string): ScriptedCall => ({
  id,
  name: 'perform_web_search',
  arguments: { query },
});

/** What the last request's message said in answer to this call. */
export function answerTo(request: ModelRequest, callId: string): string {
  const answer = request.body.messages.findLast(({ tool_call_id }) => tool_call_id === callId);
  if (!answer) throw new Error(`The call ${callId} was not answered.`);
  return answer.content ?? '';
}

/** @throws unless every call of every request is answered exactly once, directly after its message, in call order */
export function expectAnsweredCalls(requests: ModelRequest[]): void {
  for (const { body } of requests) {
    if (body.stream !== true) throw new Error('A request was not streamed.');
    const rest: WireMessage[] = [...body.messages];
    for (let message = rest.shift(); message; message = rest.shift()) {
      if (message.role === 'tool') throw new Error(`Nobody asked for the answer to ${message.tool_call_id}.`);
      const calls = message.tool_calls ?? [];
      const answers = rest.splice(0, calls.length).map((answer) => answer.tool_call_id);
      if (answers.join() !== calls.map(({ id }) => id).join()) {
        throw new Error(`The calls ${calls.map(({ id }) => id).join()} were answered by ${answers.join()}.`);
      }
    }
  }
}

export const cancelRun = ({ tenant }: ResearchRuntime, id: string): Promise<unknown> =>
  tenant.client.run('mutation ($id: ID!) { cancelRun(input: { runId: $id }) { run { id } } }', { id });

/** @throws when a delegated worker's conversation or assistant is left */
export async function expectNoEphemera({ service }: ResearchRuntime): Promise<void> {
  const [row] = await service.psql<{ count: number }>(
    `SELECT (SELECT count(*) FROM threads WHERE ephemeral)::int + (SELECT count(*) FROM assistants WHERE ephemeral)::int AS count`,
  );
  if (row!.count > 0) throw new Error(`${row!.count} conversations and assistants of workers are left.`);
}

/** The events that end a run or a worker in a stream, by who ended. */
export const terminalEvents = (events: readonly NewRunEvent[]): string[] =>
  events.flatMap((event) =>
    event.type === 'status' && ['FINISHED', 'WORKER_COMPLETED', 'WORKER_FAILED'].includes(event.phase)
      ? [`${event.originRunId} ${event.phase}`]
      : [],
  );
