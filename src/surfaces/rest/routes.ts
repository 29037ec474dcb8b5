// All routes of the REST surface, and the OpenAPI document that describes them.
import type { ScratchpadService } from '../../scratchpads/scratchpad-service.js';
import type { MessageService } from '../../threads/message-service.js';
import type { ThreadService } from '../../threads/thread-service.js';
import { addMessages } from './messages.js';
import { createRouter, type RestRouter } from './router.js';
import { addScratchpadState } from './scratchpad-state.js';
import { addScratchpads } from './scratchpads.js';
import { addThreads } from './threads.js';
import { addTools } from './tools.js';

export interface RestServices {
  threads: ThreadService;
  messages: MessageService;
  scratchpads: ScratchpadService;
}

export interface RestRoutes {
  router: RestRouter;
  /** OpenAPI 3.1. */
  document: object;
  /** What a path has, by method in upper case: nothing for one that leads nowhere. */
  operationsAt(path: string): Map<string, Taken>;
}

/** What a request may say beside its path and its body. */
export interface Taken {
  queryParameters: string[];
  /** In lower case. */
  headers: string[];
}

interface DocumentedOperation {
  parameters?: { in: string; name: string }[];
}

function takenBy({ parameters = [] }: DocumentedOperation): Taken {
  const names = (place: string): string[] => parameters.filter((one) => one.in === place).map(({ name }) => name);
  return { queryParameters: names('query'), headers: names('header') };
}

const info = {
  title: 'Scratchpad',
  version: '1',
  description:
    'Threads, messages and scratchpads. Everything belongs to the user whose key is sent. An agent token is for its one scratchpad: ' +
    'with everything else it is answered as with what does not exist.',
};

export function createRoutes({ threads, messages, scratchpads }: RestServices): RestRoutes {
  const router = createRouter();
  addThreads(router, threads);
  addMessages(router, messages);
  addScratchpads(router, scratchpads);
  addScratchpadState(router, scratchpads);
  addTools(router, scratchpads);
  const registry = router.openAPIRegistry;
  registry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' });
  registry.registerComponent('securitySchemes', 'apiKey', { type: 'apiKey', in: 'header', name: 'X-API-Key' });
  const document = router.getOpenAPI31Document({ openapi: '3.1.0', info, security: [{ bearer: [] }, { apiKey: [] }] });
  const paths = Object.entries(document.paths ?? {}).map(([path, item]) => ({
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    operations: Object.entries(item as Record<string, DocumentedOperation>).map(
      ([method, operation]) => [method.toUpperCase(), takenBy(operation)] as const,
    ),
  }));
  return {
    router,
    document,
    operationsAt: (path) =>
      new Map(paths.filter(({ pattern }) => pattern.test(path)).flatMap(({ operations }) => operations)),
  };
}
