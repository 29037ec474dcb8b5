// Threads as GraphQL sees them.
import { requireUser } from '../../../identity/principal.js';
import { visible } from '../../../identity/visible-to.js';
import type { JsonObject } from '../../../shared/json.js';
import type { Builder } from '../builder.js';
import { addConnection, byId, pageArguments, planPage, toConnection } from '../connections.js';
import { found } from '../found.js';
import type { NodeRef } from './node.js';
import type { PageInfoRef } from './page-info.js';
import type { UserRef } from './user.js';

const order = byId('threads', 'thread');

export function addThread(builder: Builder, node: NodeRef, pageInfo: PageInfoRef, user: UserRef) {
  const thread = builder.prismaObject('Thread', {
    description: 'A conversation, and the parent of at most one scratchpad.',
    interfaces: [node],
    select: { id: true },
    fields: (t) => ({
      id: t.exposeID('id'),
      owner: t.relation('owner'),
      // Only ever written through the jsonObject schema.
      metaData: t.field({
        type: 'JSONObject',
        select: { metaData: true },
        resolve: ({ metaData }) => metaData as JsonObject,
      }),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
    }),
  });

  const { connection } = addConnection(builder, { name: 'Thread', node: thread, pageInfo });
  builder.prismaObjectField(user, 'threads', (t) =>
    t.field({
      type: connection,
      description: 'Oldest first.',
      args: pageArguments(t.arg),
      select: (args, _context, nestedSelection) => ({
        threads: nestedSelection({ ...planPage(order, args, visible), select: { id: true } }, ['edges', 'node']),
      }),
      resolve: ({ id, threads }, args, { services, principal }) => {
        requireUser(principal);
        return toConnection(order, id, args, threads, () => services.threads.count(principal));
      },
    }),
  );

  builder.queryField('thread', (t) =>
    t.prismaField({
      type: thread,
      nullable: true,
      args: { id: t.arg.id({ required: true }) },
      resolve: (query, _root, { id }, { services, principal }) => services.threads.find(principal, id, query),
    }),
  );

  const threadPayload = (name: string) =>
    builder.objectRef<{ id: string }>(name).implement({
      fields: (t) => ({
        thread: t.prismaField({
          type: thread,
          resolve: (query, { id }, _args, { services, principal }) =>
            found(services.threads.find(principal, id, query)),
        }),
      }),
    });
  const createThreadInput = builder.inputType('CreateThreadInput', {
    fields: (t) => ({ metaData: t.field({ type: 'JSONObject' }) }),
  });
  builder.mutationField('createThread', (t) =>
    t.field({
      type: threadPayload('CreateThreadPayload'),
      args: { input: t.arg({ type: createThreadInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) => services.threads.create(principal, input),
    }),
  );

  const updateThreadInput = builder.inputType('UpdateThreadInput', {
    description: 'Replaces metaData as a whole.',
    fields: (t) => ({
      threadId: t.id({ required: true }),
      metaData: t.field({ type: 'JSONObject', required: true }),
    }),
  });
  builder.mutationField('updateThread', (t) =>
    t.field({
      type: threadPayload('UpdateThreadPayload'),
      args: { input: t.arg({ type: updateThreadInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) =>
        services.threads.updateMetaData(principal, input.threadId, input.metaData),
    }),
  );

  const deletePayload = builder.objectRef<{ deletedThreadId: string }>('DeleteThreadPayload').implement({
    fields: (t) => ({ deletedThreadId: t.exposeID('deletedThreadId') }),
  });
  const deleteThreadInput = builder.inputType('DeleteThreadInput', {
    fields: (t) => ({ threadId: t.id({ required: true }) }),
  });
  builder.mutationField('deleteThread', (t) =>
    t.field({
      type: deletePayload,
      description: 'Takes its messages and its scratchpad along.',
      args: { input: t.arg({ type: deleteThreadInput, required: true }) },
      resolve: async (_root, { input }, { services, principal }) => ({
        deletedThreadId: await services.threads.delete(principal, input.threadId),
      }),
    }),
  );
  return thread;
}

export type ThreadRef = ReturnType<typeof addThread>;
