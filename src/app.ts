// The composition root: builds everything out of a Config, opens connections, closes them in order.
import { createAssistantService } from './assistants/assistant-service.js';
import type { Config } from './config.js';
import { createApiKeyService } from './identity/api-key-service.js';
import { createAuthentication } from './identity/authentication.js';
import { ensureDevelopmentUser } from './identity/development-user.js';
import { createUserService } from './identity/user-service.js';
import { createHttpServer } from './infra/http.js';
import { createMetrics, type Metrics } from './infra/metrics.js';
import { pendingMigrations } from './infra/migrations.js';
import type { Database } from './infra/postgres.js';
import { createRunCancellation, type RunDispatcher, type RunScope } from './research/run-cancellation.js';
import type { RunEvents } from './research/run-event.js';
import { createRunService } from './research/run-service.js';
import { createRunStore } from './research/run-store.js';
import { createDataPlane } from './scratchpads/data-plane.js';
import { createEventPlane } from './scratchpads/event-plane.js';
import { createIdentityPlane } from './scratchpads/identity-plane.js';
import { createNotebookConverger } from './scratchpads/legacy-notebook.js';
import { createPurgeQueue } from './scratchpads/purge-queue.js';
import { createPurge } from './scratchpads/purge.js';
import { createScratchpadService } from './scratchpads/scratchpad-service.js';
import { systemClock, type Clock } from './shared/clock.js';
import { DomainError, unavailable } from './shared/errors.js';
import type { Logger } from './shared/logger.js';
import { isSqlUnavailable } from './shared/sql-errors.js';
import { openStores, type OpenStores } from './stores.js';
import { createContext, type Services } from './surfaces/graphql/context.js';
import { createSchema } from './surfaces/graphql/schema.js';
import { createGraphqlServer } from './surfaces/graphql/server.js';
import { createMessageService } from './threads/message-service.js';
import { createThreadService } from './threads/thread-service.js';

/** A running service. */
export interface App {
  /** The address that it answers at. */
  readonly url: string;
  /** With embedded stores: the secret of the development user. */
  readonly developmentSecret: string | undefined;
  /** Completes subscriptions, lets running requests end, stops background loops, then closes the stores. */
  close(): Promise<void>;
}

/** What executes runs and keeps their events. */
export interface RunRuntime {
  dispatcher: RunDispatcher;
  events: RunEvents;
}

interface Options {
  logger: Logger;
  now?: Clock;
  /** Called once for each SQL statement: how tests count them. */
  onStatement?: () => void;
  runRuntime?: RunRuntime;
  /** Called when this process lost its data directory to another one: it has to end without touching it. */
  onDirectoryLost?: () => void;
  /** Tests put a broken service into the place of a whole one. */
  overrideServices?: (services: Services) => Services;
}

const refuse = (): Promise<never> =>
  Promise.reject(new DomainError('UNAVAILABLE', 'This version of the server executes no runs.'));

const noRunRuntime: RunRuntime = {
  dispatcher: { enqueue: refuse, requestCancel: refuse, endedUnexecuted: refuse },
  events: { subscribe: refuse },
};

const purgeIntervalMs = 2000;

/** A database that lacks migrations is not served: its operator decides when to migrate. */
async function refuseDatabaseBehind(database: Database): Promise<void> {
  const pending = await pendingMigrations(database);
  if (pending.length > 0) {
    throw new Error(`The database lacks ${pending.join(', ')}: run \`node dist/cli.js migrate\`, then start again.`);
  }
}

/** Whether a store answers, and nothing about why not. */
const answers = (ping: Promise<void>): Promise<boolean> =>
  ping.then(
    () => true,
    () => false,
  );

/** Opens the stores and starts to listen. @throws Error that says what to do when it cannot start */
export async function createApp(config: Config, options: Options): Promise<App> {
  const { logger, now = systemClock, runRuntime = noRunRuntime, overrideServices = (services) => services } = options;
  const metrics = createMetrics();
  const { stores, close: closeStores } = await openStores(config, options);
  try {
    return await startApp(config, stores, { logger, now, overrideServices, metrics, closeStores, runRuntime });
  } catch (error) {
    await closeStores();
    throw error;
  }
}

interface Parts {
  logger: Logger;
  now: Clock;
  overrideServices: (services: Services) => Services;
  metrics: Metrics;
  closeStores: () => Promise<void>;
  runRuntime: RunRuntime;
}

async function startApp(config: Config, { database, redis: connections }: OpenStores, parts: Parts): Promise<App> {
  const { logger, now, overrideServices, metrics, closeStores, runRuntime } = parts;
  const redis = { ...connections, onFailure: () => metrics.storeFailed('Redis') };
  const { prisma } = database;
  await refuseDatabaseBehind(database);

  const authentication = createAuthentication({ prisma, administratorSecret: config.administratorSecret, now, logger });
  const identityPlane = createIdentityPlane({ prisma, now });
  const dataPlane = createDataPlane({ redis, limits: config });
  const eventPlane = createEventPlane({
    redis,
    dataPlane,
    padExists: (pad) => identityPlane.existsNow(pad.ownerId, pad.scratchpadId),
    bufferEvents: config.subscriberBufferEvents,
    logger,
  });
  const purge = createPurge({ queue: createPurgeQueue({ prisma }), redis, logger, intervalMs: purgeIntervalMs });
  const purgeOwner = (ownerId: string): Promise<void> => purge.drainOwner(ownerId);

  const { dispatcher } = runRuntime;
  const cancellation = createRunCancellation({
    prisma,
    runStore: createRunStore({ prisma, now }),
    dispatcher,
    logger,
  });
  const cancelRuns = (scope: RunScope): Promise<void> => cancellation.cancelAll(scope);

  const { maxContentBytes } = config;
  const assistants = createAssistantService({ prisma, cancelRuns, maxContentBytes });
  const scratchpads = createScratchpadService({
    identityPlane,
    dataPlane,
    eventPlane,
    convergeNotebook: createNotebookConverger({ redis, limits: config }),
    cancelRuns,
    purgeOwner,
    logger,
  });
  const services = overrideServices({
    users: createUserService({ prisma, authentication, cancelRuns, purgeOwner }),
    apiKeys: createApiKeyService({ prisma, authentication, now }),
    threads: createThreadService({ prisma, cancelRuns, purgeOwner }),
    messages: createMessageService({ prisma, maxContentBytes }),
    scratchpads,
    assistants,
    runs: createRunService({
      prisma,
      assistants,
      scratchpads,
      cancellation,
      dispatcher,
      runEvents: runRuntime.events,
      provider: { baseUrl: config.llmBaseUrl, model: config.llmModel },
      maxContentBytes,
      logger,
    }),
  });
  const developmentSecret = config.embedded
    ? await ensureDevelopmentUser({
        prisma,
        dataDirectory: config.dataDirectory,
        chosenSecret: config.developmentSecret,
      })
    : undefined;

  const graphql = createGraphqlServer({
    schema: createSchema(prisma),
    authentication,
    createContext: (principal, requestId) => createContext(services, principal, requestId),
    introspection: config.introspection,
    graphiql: { enabled: config.graphiql, developmentSecret },
    maxMessageBytes: config.maxBodyBytes,
    logger,
    metrics,
    translateError: (error) => {
      if (error instanceof DomainError || !isSqlUnavailable(error)) return error;
      metrics.storeFailed('SQL');
      return unavailable('SQL', error);
    },
  });
  const http = createHttpServer({
    host: config.host,
    port: config.port,
    maxBodyBytes: config.maxBodyBytes,
    corsOrigins: config.corsOrigins,
    surfaces: [{ path: '/graphql', surface: graphql }],
    readiness: async () => {
      const [sql, keyValue] = await Promise.all([answers(database.ping()), answers(redis.ping())]);
      return { sql, redis: keyValue };
    },
    logger,
    metrics,
  });
  metrics.watchPurgeBacklog(() => purge.backlog());
  purge.start();
  const { url } = await http.listen();

  return {
    url,
    developmentSecret,
    async close() {
      await http.close();
      eventPlane.close();
      await Promise.all([purge.close(), authentication.close()]);
      await closeStores();
    },
  };
}
