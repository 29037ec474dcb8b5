// The code-first schema, put together type by type. `schema.graphql` at the project's root is printed from it.
import type { GraphQLSchema } from 'graphql';
import { createBuilder, type RelationSource } from './builder.js';
import { addAgentToken } from './types/agent-token.js';
import { addApiKey } from './types/api-key.js';
import { addAssistant } from './types/assistant.js';
import { addMessage } from './types/message.js';
import { addNode } from './types/node.js';
import { addPageInfo } from './types/page-info.js';
import { addRunEvent, addRunSubscriptions } from './types/run-event.js';
import { addRunMutations } from './types/run-mutations.js';
import { addRun } from './types/run.js';
import { addScalars } from './types/scalars.js';
import { addScratchpadEvents } from './types/scratchpad-event.js';
import { addScratchpadMutations } from './types/scratchpad-mutations.js';
import { addScratchpadState } from './types/scratchpad-state.js';
import { addScratchpad } from './types/scratchpad.js';
import { addThread } from './types/thread.js';
import { addUser } from './types/user.js';

/** @param prisma loads the relations of rows that the services found */
export function createSchema(prisma: RelationSource): GraphQLSchema {
  const builder = createBuilder(prisma);
  builder.queryType({});
  builder.mutationType({});
  builder.subscriptionType({});
  addScalars(builder);
  const node = addNode(builder);
  const pageInfo = addPageInfo(builder);
  const user = addUser(builder, node);
  addApiKey(builder, node, user);
  const thread = addThread(builder, node, pageInfo, user);
  addMessage(builder, node, pageInfo, thread);
  const state = addScratchpadState(builder, pageInfo);
  const scratchpad = addScratchpad(builder, { node, pageInfo, user, thread, state });
  addScratchpadMutations(builder, scratchpad, state);
  addAgentToken(builder, node, scratchpad);
  const runEvents = addRunEvent(builder);
  addScratchpadEvents(builder, scratchpad, state, runEvents);
  const assistant = addAssistant(builder, { node, pageInfo, user });
  const run = addRun(builder, { node, pageInfo, user, thread, assistant });
  addRunMutations(builder, run);
  addRunSubscriptions(builder, run, runEvents);
  return builder.toSchema();
}
