// What a resolver may reach: who asks, the services, and the loaders of this one operation.
import type { AssistantService } from '../../assistants/assistant-service.js';
import type { AgentTokenService } from '../../identity/agent-token-service.js';
import type { ApiKeyService } from '../../identity/api-key-service.js';
import type { Principal } from '../../identity/principal.js';
import type { UserService } from '../../identity/user-service.js';
import type { RunService } from '../../research/run-service.js';
import type { ScratchpadService } from '../../scratchpads/scratchpad-service.js';
import type { MessageService } from '../../threads/message-service.js';
import type { ThreadService } from '../../threads/thread-service.js';
import { createLoaders, type Loaders } from './loaders.js';

export interface Services {
  users: UserService;
  apiKeys: ApiKeyService;
  agentTokens: AgentTokenService;
  threads: ThreadService;
  messages: MessageService;
  scratchpads: ScratchpadService;
  assistants: AssistantService;
  runs: RunService;
}

export interface Context {
  principal: Principal;
  requestId: string;
  services: Services;
  loaders: Loaders;
}

class OperationContext implements Context {
  #loaders: Loaders | undefined;

  constructor(
    readonly services: Services,
    readonly principal: Principal,
    readonly requestId: string,
  ) {}

  /** Most mutations want none. */
  get loaders(): Loaders {
    return (this.#loaders ??= createLoaders(this.services, this.principal));
  }
}

/** One context for each operation; for each delivered event of a subscription a fresh one (see {@link forEvent}). */
export const createContext = (services: Services, principal: Principal, requestId: string): Context =>
  new OperationContext(services, principal, requestId);
