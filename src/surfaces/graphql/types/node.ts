// The Node interface, and the one query that finds anything by its id.
import { requireTenant } from '../../../identity/principal.js';
import { kindOfId, type IdKind } from '../../../shared/ids.js';
import type { Builder } from '../builder.js';
import type { Context } from '../context.js';

/** How each kind of id is found; what a principal may see is decided by the services. */
type Finder = (context: Context, id: string) => Promise<{ id: string } | null>;

const finders: Partial<Record<IdKind, { typeName: string; find: Finder }>> = {
  user: { typeName: 'User', find: ({ services, principal }, id) => services.users.find(principal, id) },
  apiKey: { typeName: 'ApiKey', find: ({ services, principal }, id) => services.apiKeys.find(principal, id) },
  agentToken: {
    typeName: 'AgentToken',
    find: ({ services, principal }, id) => services.agentTokens.find(principal, id),
  },
  thread: { typeName: 'Thread', find: ({ services, principal }, id) => services.threads.find(principal, id) },
  message: { typeName: 'Message', find: ({ services, principal }, id) => services.messages.find(principal, id) },
  scratchpad: {
    typeName: 'Scratchpad',
    find: ({ services, principal }, id) => services.scratchpads.find(principal, id),
  },
  assistant: {
    typeName: 'Assistant',
    find: ({ services, principal }, id) => services.assistants.find(principal, id),
  },
  run: { typeName: 'Run', find: ({ services, principal }, id) => services.runs.find(principal, id) },
};

const finderOf = (id: string) => {
  const kind = kindOfId(id);
  return kind && finders[kind];
};

export function addNode(builder: Builder) {
  const node = builder.interfaceRef<{ id: string }>('Node').implement({
    description: 'Anything with an id of its own.',
    fields: (t) => ({ id: t.exposeID('id') }),
    resolveType: ({ id }) => finderOf(id)?.typeName,
  });
  builder.queryField('node', (t) =>
    t.field({
      type: node,
      nullable: true,
      description: 'Anything of yours by its id; null for what is not there or not yours.',
      args: { id: t.arg.id({ required: true }) },
      resolve: async (_root, { id }, context) => {
        requireTenant(context.principal);
        return (await finderOf(id)?.find(context, id)) ?? null;
      },
    }),
  );
  return node;
}

export type NodeRef = ReturnType<typeof addNode>;
