// Users as GraphQL sees them: the viewer, and what the administrator may do.
import type { Builder } from '../builder.js';
import type { NodeRef } from './node.js';

export function addUser(builder: Builder, node: NodeRef) {
  const user = builder.prismaObject('User', {
    description: 'A tenant: everything else belongs to one.',
    interfaces: [node],
    select: { id: true },
    fields: (t) => ({
      id: t.exposeID('id'),
      name: t.exposeString('name'),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
    }),
  });

  builder.queryField('viewer', (t) =>
    t.prismaField({
      type: user,
      nullable: true,
      description: 'The authenticated user; null for an agent token and for the administrator.',
      resolve: (query, _root, _args, { services, principal }) => services.users.viewer(principal, query),
    }),
  );

  const createUserPayload = builder
    .objectRef<{ user: { id: string; name: string; createdAt: Date }; secret: string }>('CreateUserPayload')
    .implement({
      description: 'secret is shown this once and stored only as a hash.',
      fields: (t) => ({
        user: t.field({ type: user, resolve: (payload) => payload.user }),
        secret: t.exposeString('secret'),
      }),
    });
  const createUserInput = builder.inputType('CreateUserInput', {
    fields: (t) => ({ name: t.string({ required: true }) }),
  });
  builder.mutationField('createUser', (t) =>
    t.field({
      type: createUserPayload,
      description: 'Administrator only.',
      args: { input: t.arg({ type: createUserInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) => services.users.create(principal, input),
    }),
  );

  const deletedUserPayload = (name: string) =>
    builder
      .objectRef<{ deletedUserId: string }>(name)
      .implement({ fields: (t) => ({ deletedUserId: t.exposeID('deletedUserId') }) });
  const deleteUserInput = builder.inputType('DeleteUserInput', {
    fields: (t) => ({ userId: t.id({ required: true }) }),
  });
  builder.mutationField('deleteUser', (t) =>
    t.field({
      type: deletedUserPayload('DeleteUserPayload'),
      description: 'Administrator only.',
      args: { input: t.arg({ type: deleteUserInput, required: true }) },
      resolve: async (_root, { input }, { services, principal }) => ({
        deletedUserId: await services.users.delete(principal, input.userId),
      }),
    }),
  );

  const deleteViewerInput = builder.inputType('DeleteViewerInput', {
    description: "The user's own id, typed again, as a guard against a slip.",
    fields: (t) => ({ confirmUserId: t.id({ required: true }) }),
  });
  builder.mutationField('deleteViewer', (t) =>
    t.field({
      type: deletedUserPayload('DeleteViewerPayload'),
      description: 'Deletes the authenticated user and everything it owns, in SQL and in Redis.',
      args: { input: t.arg({ type: deleteViewerInput, required: true }) },
      resolve: async (_root, { input }, { services, principal }) => ({
        deletedUserId: await services.users.deleteViewer(principal, input.confirmUserId),
      }),
    }),
  );
  return user;
}

export type UserRef = ReturnType<typeof addUser>;
