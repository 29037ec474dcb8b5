// Assistants as GraphQL sees them: what was persisted, and what a model would be given.
import { requireUser } from '../../../identity/principal.js';
import { visible } from '../../../identity/visible-to.js';
import type { CapabilityPlaceholder } from '../../../tools/assistant-tools.js';
import { hydrateTools } from '../../../tools/hydrate.js';
import { toFunctionDefinition } from '../../../tools/tool-definition.js';
import type { Builder } from '../builder.js';
import { addConnection, byId, pageArguments, planPage, toConnection } from '../connections.js';
import { found } from '../found.js';
import type { NodeRef } from './node.js';
import type { PageInfoRef } from './page-info.js';
import type { UserRef } from './user.js';

const order = byId('assistants', 'assistant');

/** Only ever written by the assistant service, which has checked them. */
const placeholdersOf = (tools: unknown): CapabilityPlaceholder[] => tools as CapabilityPlaceholder[];

interface References {
  node: NodeRef;
  pageInfo: PageInfoRef;
  user: UserRef;
}

export function addAssistant(builder: Builder, { node, pageInfo, user }: References) {
  const assistant = builder.prismaObject('Assistant', {
    description: 'Instructions for a model, and the platform capabilities that it may use.',
    interfaces: [node],
    select: { id: true },
    fields: (t) => ({
      id: t.exposeID('id'),
      name: t.exposeString('name'),
      instructions: t.exposeString('instructions'),
      model: t.exposeString('model', { nullable: true }),
      tools: t.field({
        type: ['JSONObject'],
        description: 'Exactly what was persisted: capability placeholders such as {type: "scratchpad"}.',
        select: { tools: true },
        resolve: ({ tools }) => placeholdersOf(tools).map(({ type }) => ({ type })),
      }),
      hydratedTools: t.field({
        type: ['JSONObject'],
        description:
          'What a model would be given at run time: concrete function definitions, without infrastructure identity.',
        select: { tools: true },
        resolve: ({ tools }) =>
          hydrateTools(placeholdersOf(tools), 'ASSISTANT').map((definition) => {
            const { name, description, parameters } = toFunctionDefinition(definition);
            return { type: 'function', function: { name, description, parameters } };
          }),
      }),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
    }),
  });

  const { connection } = addConnection(builder, { name: 'Assistant', node: assistant, pageInfo });
  builder.prismaObjectField(user, 'assistants', (t) =>
    t.field({
      type: connection,
      description: 'Oldest first.',
      args: pageArguments(t.arg),
      select: (args, _context, nestedSelection) => ({
        assistants: nestedSelection({ ...planPage(order, args, visible), select: { id: true } }, ['edges', 'node']),
      }),
      resolve: ({ id, assistants }, args, { services, principal }) => {
        requireUser(principal);
        return toConnection(order, id, args, assistants, () => services.assistants.count(principal));
      },
    }),
  );

  builder.queryField('assistant', (t) =>
    t.prismaField({
      type: assistant,
      nullable: true,
      args: { id: t.arg.id({ required: true }) },
      resolve: (query, _root, { id }, { services, principal }) => services.assistants.find(principal, id, query),
    }),
  );

  const createPayload = builder.objectRef<{ id: string }>('CreateAssistantPayload').implement({
    fields: (t) => ({
      assistant: t.prismaField({
        type: assistant,
        resolve: (query, { id }, _args, { services, principal }) =>
          found(services.assistants.find(principal, id, query)),
      }),
    }),
  });
  const createInput = builder.inputType('CreateAssistantInput', {
    fields: (t) => ({
      name: t.string({ required: true }),
      instructions: t.string({ required: true }),
      model: t.string({ description: "Absent: the server's own (LLM_MODEL)." }),
      tools: t.field({
        type: ['JSONObject'],
        required: true,
        description: 'Capability placeholders: {type: "scratchpad"}, {type: "web_search"}.',
      }),
    }),
  });
  builder.mutationField('createAssistant', (t) =>
    t.field({
      type: createPayload,
      description: 'Refuses functions, and everything else that is no known capability placeholder.',
      args: { input: t.arg({ type: createInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) => services.assistants.create(principal, input),
    }),
  );

  const deletePayload = builder.objectRef<{ deletedAssistantId: string }>('DeleteAssistantPayload').implement({
    fields: (t) => ({ deletedAssistantId: t.exposeID('deletedAssistantId') }),
  });
  const deleteInput = builder.inputType('DeleteAssistantInput', {
    fields: (t) => ({ assistantId: t.id({ required: true }) }),
  });
  builder.mutationField('deleteAssistant', (t) =>
    t.field({
      type: deletePayload,
      description: 'Cancels its active runs. The rows of its runs stay, with a null assistant.',
      args: { input: t.arg({ type: deleteInput, required: true }) },
      resolve: async (_root, { input }, { services, principal }) => ({
        deletedAssistantId: await services.assistants.delete(principal, input.assistantId),
      }),
    }),
  );
  return assistant;
}

export type AssistantRef = ReturnType<typeof addAssistant>;
