// The whole service in this process, over a real PostgreSQL and a real Redis, reached over real HTTP.
import { createApp, type App } from '../../src/app.js';
import { readConfig } from '../../src/config.js';
import type { RunRuntime } from '../../src/domain.js';
import { createLogger } from '../../src/shared/logger.js';
import { createGraphqlClient, type GraphqlClient } from './graphql-client.js';
import { startPostgres, type PostgresServer } from './postgres.js';
import { startRedis, type TestRedis, type TestRedisOptions } from './redis.js';

export interface Tenant {
  userId: string;
  secret: string;
  client: GraphqlClient;
}

export interface Service {
  url: string;
  app: App;
  administrator: GraphqlClient;
  redis: TestRedis;
  databaseUrl: string;
  clientFor(secret: string | undefined): GraphqlClient;
  createTenant(name: string): Promise<Tenant>;
  /** SQL statements of this service since the last call. */
  takeStatementCount(): number;
  /** SQL as an administrator types it in psql. */
  psql<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

export interface ServiceOptions extends TestRedisOptions {
  /** Environment variables of configuration.md. */
  environment?: Record<string, string>;
  postgres?: PostgresServer;
  /** Stands in for what executes runs. */
  runRuntime?: RunRuntime;
  overrideServices?: Parameters<typeof createApp>[1]['overrideServices'];
  usesBeforeCompilation?: number;
}

export const administratorSecret = 'administrator-secret-of-the-tests';

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const postgres = options.postgres ?? (await startPostgres());
  const redis = await startRedis(options);
  const databaseUrl = await postgres.createDatabase();
  let statements = 0;
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    ADMIN_API_KEY: administratorSecret,
    INTROSPECTION: 'true',
    ...options.environment,
  });
  const logger = createLogger(process.env['TEST_LOG_LEVEL'] ?? 'silent');
  const { runRuntime, usesBeforeCompilation } = options;
  const app = await createApp(config, {
    logger,
    onStatement: () => (statements += 1),
    overrideServices: options.overrideServices,
    ...(runRuntime && { runRuntime }),
    ...(usesBeforeCompilation !== undefined && { usesBeforeCompilation }),
  });
  const clientFor = (secret: string | undefined): GraphqlClient => createGraphqlClient(app.url, secret);
  const administrator = clientFor(administratorSecret);
  return {
    url: app.url,
    app,
    administrator,
    redis,
    databaseUrl,
    clientFor,
    async createTenant(name) {
      const { createUser } = await administrator.run<{ createUser: { secret: string; user: { id: string } } }>(
        'mutation ($name: String!) { createUser(input: { name: $name }) { secret user { id } } }',
        { name },
      );
      return { userId: createUser.user.id, secret: createUser.secret, client: clientFor(createUser.secret) };
    },
    takeStatementCount() {
      const count = statements;
      statements = 0;
      return count;
    },
    psql: (sql, values) => postgres.query(databaseUrl, sql, values),
    async close() {
      await app.close();
      await redis.stop();
      if (!options.postgres) await postgres.close();
    },
  };
}
