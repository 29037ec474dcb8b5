// The domain, put together out of a Config and open stores: what the server and a process that only executes runs have in common.
import { createAssistantService, type AssistantService } from './assistants/assistant-service.js';
import type { Config } from './config.js';
import { createOpenAiProvider } from './research/provider/openai-provider.js';
import type { Provider } from './research/provider/provider-types.js';
import {
  createRunCancellation,
  type RunCancellation,
  type RunDispatcher,
  type RunScope,
} from './research/run-cancellation.js';
import type { RunEvents } from './research/run-event.js';
import type { RunHooks } from './research/run-executions.js';
import { createRunExecutor } from './research/run-executor.js';
import { createRunRuntime } from './research/run-runtime.js';
import { createRunStore, type RunRow } from './research/run-store.js';
import { createSqlConversation } from './research/sql-conversation.js';
import { createDataPlane } from './scratchpads/data-plane.js';
import { createEventPlane } from './scratchpads/event-plane.js';
import { createIdentityPlane } from './scratchpads/identity-plane.js';
import { createNotebookConverger } from './scratchpads/legacy-notebook.js';
import { createPurgeQueue } from './scratchpads/purge-queue.js';
import { createPurge } from './scratchpads/purge.js';
import { createScratchpadService, type ScratchpadService } from './scratchpads/scratchpad-service.js';
import type { Clock } from './shared/clock.js';
import { createId } from './shared/ids.js';
import type { Logger } from './shared/logger.js';
import type { OpenStores } from './stores.js';
import { createPageFetcher } from './tools/web/fetch-page.js';
import { createHtmlConverter } from './tools/web/html-converter.js';
import { createSearchEngine } from './tools/web/search-engine.js';

/** What starts, stops and executes runs, and keeps their events. */
export interface RunRuntime {
  dispatcher: RunDispatcher;
  events: RunEvents;
}

export interface Domain {
  readonly scratchpads: ScratchpadService;
  readonly assistants: AssistantService;
  readonly runRuntime: RunRuntime;
  readonly cancellation: RunCancellation;
  cancelRuns(this: void, scope: RunScope): Promise<void>;
  purgeOwner(this: void, ownerId: string): Promise<void>;
  /** Deletes that Redis does not know of yet. */
  purgeBacklog(): Promise<number>;
  /** Runs that wait for a free place. */
  waitingRuns(): Promise<number>;
  /** Starts the background loops, and to execute runs. */
  start(): void;
  /** Ends what runs in the background, and every subscription. */
  close(): Promise<void>;
}

interface Parts {
  stores: { prisma: OpenStores['database']['prisma']; redis: OpenStores['redis'] & { onFailure?: () => void } };
  hooks: RunHooks;
  now: Clock;
  logger: Logger;
  /** Stands in for the real one in tests. */
  runRuntime?: RunRuntime | undefined;
}

const purgeIntervalMs = 2000;

function createProviderFor(config: Config, logger: Logger) {
  return ({ id, model }: Pick<RunRow, 'id' | 'model'>): Provider => {
    const { llmBaseUrl, llmApiKey, llmModel } = config;
    if (llmBaseUrl === undefined) throw new Error('This process has no model to run.');
    return createOpenAiProvider({
      baseUrl: llmBaseUrl,
      apiKey: llmApiKey,
      model: model ?? llmModel ?? '',
      newCallId: () => createId('call'),
      onFailedTry: ({ error, attempt, retryInMs }) =>
        logger.warn({ runId: id, reason: error.message, attempt, retryInMs }, 'the model provider failed'),
    });
  };
}

export function createDomain(config: Config, { stores, hooks, now, logger, runRuntime }: Parts): Domain {
  const { prisma, redis } = stores;
  const { maxContentBytes } = config;
  const runStore = createRunStore({ prisma, now });
  const identityPlane = createIdentityPlane({ prisma, now });
  const dataPlane = createDataPlane({ redis, limits: config });
  const eventPlane = createEventPlane({
    redis,
    dataPlane,
    padExists: (pad) => identityPlane.existsNow(pad.ownerId, pad.scratchpadId),
    bufferEvents: config.subscriberBufferEvents,
    logger,
  });
  const purge = createPurge({
    queue: createPurgeQueue({ prisma }),
    redis,
    purgeRun: (ownerId, runId) => runtime.purge(ownerId, runId),
    logger,
    intervalMs: purgeIntervalMs,
  });
  const purgeOwner = (ownerId: string): Promise<void> => purge.drainOwner(ownerId);
  const cancelRuns = (scope: RunScope): Promise<void> => cancellation.cancelAll(scope);

  const assistants = createAssistantService({ prisma, cancelRuns, maxContentBytes });
  const scratchpads = createScratchpadService({
    identityPlane,
    dataPlane,
    eventPlane,
    convergeNotebook: createNotebookConverger({ redis, limits: config, logger }),
    cancelRuns,
    purgeOwner,
    logger,
  });

  const fetcher = createPageFetcher(config.webAllowPrivateHosts ? { isPermitted: () => true } : {});
  const converter = createHtmlConverter();
  const runtime = createRunRuntime({
    prisma,
    runStore,
    redis,
    createExecutor: (events) =>
      createRunExecutor({
        runStore,
        assistants,
        conversationOf: (threadId) => createSqlConversation({ prisma, threadId }),
        scratchpads,
        createProvider: createProviderFor(config, logger),
        web: { engine: createSearchEngine(config.searxngUrl), fetcher, converter },
        events,
        limits: { contextMaxTokens: config.contextMaxTokens },
        logger,
        now,
      }),
    limits: {
      // A process without a model leaves runs to those that have one.
      runWorkers: config.llmBaseUrl === undefined ? 0 : config.runWorkers,
      runMaxSeconds: config.runMaxSeconds,
      runEventsTtlSeconds: config.runEventsTtlSeconds,
    },
    hooks,
    now,
    logger,
  });
  const { dispatcher, events } = runRuntime ?? runtime;
  const cancellation = createRunCancellation({ prisma, runStore, dispatcher, logger });

  return {
    scratchpads,
    assistants,
    runRuntime: { dispatcher, events },
    cancellation,
    cancelRuns,
    purgeOwner,
    purgeBacklog: () => purge.backlog(),
    waitingRuns: () => runtime.waiting(),
    start() {
      purge.start();
      if (!runRuntime) runtime.start();
    },
    async close() {
      await runtime.close();
      eventPlane.close();
      await Promise.all([purge.close(), fetcher.close(), converter.close()]);
    },
  };
}
