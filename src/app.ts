// The composition root: builds everything out of a Config, opens connections, closes them in order.
import type { Config } from './config.js';
import { createApiKeyService } from './identity/api-key-service.js';
import { createAuthentication } from './identity/authentication.js';
import { ensureDevelopmentUser } from './identity/development-user.js';
import { createUserService } from './identity/user-service.js';
import { createHttpServer } from './infra/http.js';
import { createMetrics } from './infra/metrics.js';
import { pendingMigrations } from './infra/migrations.js';
import { createDataPlane } from './scratchpads/data-plane.js';
import { createEventPlane } from './scratchpads/event-plane.js';
import { createIdentityPlane } from './scratchpads/identity-plane.js';
import { createNotebookConverger } from './scratchpads/legacy-notebook.js';
import { createPurgeQueue } from './scratchpads/purge-queue.js';
import { createPurge } from './scratchpads/purge.js';
import { createScratchpadService } from './scratchpads/scratchpad-service.js';
import { systemClock, type Clock } from './shared/clock.js';
import type { Logger } from './shared/logger.js';
import { openStores } from './stores.js';
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
  /** Ends background loops, completes subscriptions, closes sockets, then the stores. */
  close(): Promise<void>;
}

interface Options {
  logger: Logger;
  now?: Clock;
  /** Called once for each SQL statement: how tests count them. */
  onStatement?: () => void;
}
