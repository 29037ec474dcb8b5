// The composition root: builds everything out of a Config, opens connections, closes them in order.
import { ConfigurationError, type Config } from './config.js';
import { createDomain, type Domain, type RunRuntime } from './domain.js';
import { createAgentTokenService } from './identity/agent-token-service.js';
import { createApiKeyService } from './identity/api-key-service.js';
import { createAuthentication, type Authentication } from './identity/authentication.js';
import { ensureDevelopmentUser } from './identity/development-user.js';
import { createUserService } from './identity/user-service.js';
import { createHttpServer, type HttpServer } from './infra/http.js';
import { createMetrics, type Metrics } from './infra/metrics.js';
import { pendingMigrations } from './infra/migrations.js';
import type { Database } from './infra/postgres.js';
import { createRateLimiter } from './infra/rate-limiter.js';
import { createRunService } from './research/run-service.js';
import { requestCountPrefix } from './scratchpads/scratchpad-keys.js';
import { systemClock, type Clock } from './shared/clock.js';
import { DomainError, unavailable } from './shared/errors.js';
import type { Logger } from './shared/logger.js';
import { isSqlUnavailable } from './shared/sql-errors.js';
import { openStores, type OpenStores } from './stores.js';
import { createContext, type Services } from './surfaces/graphql/context.js';
import { createSchema } from './surfaces/graphql/schema.js';
import { createGraphqlServer } from './surfaces/graphql/server.js';
import { createMcpSurface } from './surfaces/mcp/mcp-surface.js';
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

interface Options {
  logger: Logger;
  now?: Clock;
  /** Called once for each SQL statement: how tests count them. */
  onStatement?: () => void;
  /** Stands in for what executes runs, in tests. */
  runRuntime?: RunRuntime | undefined;
  /** Called when this process lost its data directory to another one: it has to end without touching it. */
  onDirectoryLost?: () => void;
  /** Tests put a broken service into the place of a whole one. */
  overrideServices?: (services: Services) => Services;
}

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

async function askStores({ database, redis }: OpenStores): Promise<{ sql: boolean; redis: boolean }> {
  const [sql, keyValue] = await Promise.all([answers(database.ping()), answers(redis.ping())]);
  return { sql, redis: keyValue };
}

/** Opens the stores and starts to listen. @throws Error that says what to do when it cannot start */
export async function createApp(config: Config, options: Options): Promise<App> {
  const { logger, now = systemClock, runRuntime, overrideServices = (services) => services } = options;
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
  runRuntime: RunRuntime | undefined;
}

async function startApp(config: Config, stores: OpenStores, parts: Parts): Promise<App> {
  const { database, redis: connections } = stores;
  const { logger, now, metrics, runRuntime } = parts;
  const redis = { ...connections, onFailure: () => metrics.storeFailed('Redis') };
  const { prisma } = database;
  await refuseDatabaseBehind(database);

  const authentication = createAuthentication({
    prisma,
    administratorSecret: config.administratorSecret,
    countRequest: createRateLimiter({
      commands: connections.commands,
      keyPrefix: requestCountPrefix,
      requestsPerMinute: config.rateLimitPerMinute,
      onUncounted: () => metrics.requestUncounted(),
      logger,
    }),
    now,
    logger,
  });
  const domain = createDomain(config, { stores: { prisma, redis }, hooks: metrics, now, logger, runRuntime });
  try {
    return await serve(config, stores, { ...parts, authentication, domain });
  } catch (error) {
    // Both have timers: nothing of a server that could not start stays behind.
    await Promise.all([domain.close(), authentication.close()]);
    throw error;
  }
}

/** @throws when the address is taken; what the surfaces keep running has ended then */
async function listen(http: HttpServer): Promise<{ url: string }> {
  try {
    return await http.listen();
  } catch (error) {
    await http.close();
    throw error;
  }
}

interface ServedParts extends Parts {
  authentication: Authentication;
  domain: Domain;
}

async function serve(config: Config, stores: OpenStores, parts: ServedParts): Promise<App> {
  const { logger, now, overrideServices, metrics, closeStores, authentication, domain } = parts;
  const { prisma } = stores.database;
  const { scratchpads, assistants, cancellation, cancelRuns, purgeOwner } = domain;
  const { dispatcher, events: runEvents } = domain.runRuntime;
  const { maxContentBytes } = config;
  const services = overrideServices({
    users: createUserService({ prisma, authentication, cancelRuns, purgeOwner }),
    apiKeys: createApiKeyService({ prisma, authentication, now }),
    agentTokens: createAgentTokenService({ prisma, authentication, now }),
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
      runEvents,
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

  const translateError = (error: unknown): unknown => {
    if (error instanceof DomainError || !isSqlUnavailable(error)) return error;
    metrics.storeFailed('SQL');
    return unavailable('SQL', error);
  };
  const graphql = createGraphqlServer({
    schema: createSchema(prisma),
    authentication,
    createContext: (principal, requestId) => createContext(services, principal, requestId),
    introspection: config.introspection,
    graphiql: { enabled: config.graphiql, developmentSecret },
    maxMessageBytes: config.maxBodyBytes,
    logger,
    metrics,
    translateError,
  });
  const mcp = createMcpSurface({ authentication, scratchpads: services.scratchpads, translateError });
  const http = createHttpServer({
    host: config.host,
    port: config.port,
    maxBodyBytes: config.maxBodyBytes,
    corsOrigins: config.corsOrigins,
    surfaces: [
      { path: '/graphql', surface: graphql },
      { path: '/mcp', surface: mcp },
    ],
    readiness: () => askStores(stores),
    logger,
    metrics,
    metricsToken: config.metricsToken,
  });
  metrics.watchPurgeBacklog(() => domain.purgeBacklog());
  metrics.watchWaitingRuns(() => domain.waitingRuns());
  const { url } = await listen(http);
  domain.start();

  return {
    url,
    developmentSecret,
    async close() {
      // Side by side: each has its own time to let what is under way end.
      await Promise.all([http.close(), domain.close()]);
      await authentication.close();
      await closeStores();
    },
  };
}

/** A process that executes runs, and answers its operator alone. */
export type RunWorker = Pick<App, 'url' | 'close'>;

/** @throws ConfigurationError when this process could execute nothing */
function requireWork({ databaseUrl, redisUrl, llmBaseUrl, runWorkers }: Config): void {
  if (databaseUrl === undefined || redisUrl === undefined) {
    throw new ConfigurationError('A worker shares its stores with a server: set DATABASE_URL and REDIS_URL');
  }
  if (llmBaseUrl === undefined) throw new ConfigurationError('A worker needs a model to run: set LLM_BASE_URL');
  if (runWorkers === 0) throw new ConfigurationError('A worker with RUN_WORKERS=0 has nothing to do: unset it');
}

/** Opens the stores and starts to execute runs. @throws Error that says what to do when it cannot start */
export async function createRunWorker(config: Config, { logger }: { logger: Logger }): Promise<RunWorker> {
  requireWork(config);
  const metrics = createMetrics();
  const { stores, close: closeStores } = await openStores(config, { logger });
  try {
    await refuseDatabaseBehind(stores.database);
    const redis = { ...stores.redis, onFailure: () => metrics.storeFailed('Redis') };
    const { prisma } = stores.database;
    const domain = createDomain(config, { stores: { prisma, redis }, hooks: metrics, now: systemClock, logger });
    const http = createHttpServer({
      host: config.host,
      port: config.port,
      maxBodyBytes: config.maxBodyBytes,
      corsOrigins: [],
      surfaces: [],
      readiness: () => askStores(stores),
      logger,
      metrics,
      metricsToken: config.metricsToken,
    });
    const { url } = await listen(http).catch(async (error: unknown) => {
      await domain.close();
      throw error;
    });
    domain.start();
    return {
      url,
      async close() {
        await Promise.all([http.close(), domain.close()]);
        await closeStores();
      },
    };
  } catch (error) {
    await closeStores();
    throw error;
  }
}
