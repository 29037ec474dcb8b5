// Messages as GraphQL sees them: always in canonical persistence order.
import type { Builder } from '../builder.js';
import { addConnection, bySequenceNo, pageArguments, planPage, toConnection } from '../connections.js';
import { found } from '../found.js';
import type { NodeRef } from './node.js';
import type { PageInfoRef } from './page-info.js';
import type { ThreadRef } from './thread.js';

export function addMessage(builder: Builder, node: NodeRef, pageInfo: PageInfoRef, thread: ThreadRef): void {
  const role = builder.enumType('MessageRole', { values: ['SYSTEM', 'USER', 'ASSISTANT', 'TOOL'] as const });
  const message = builder.prismaObject('Message', {
    interfaces: [node],
    select: { id: true, sequenceNo: true },
    fields: (t) => ({
      id: t.exposeID('id'),
      sequenceNo: t.string({
        description: 'Canonical, strictly increasing persistence order, as a decimal string (64 bits).',
        resolve: ({ sequenceNo }) => String(sequenceNo),
      }),
      role: t.expose('role', { type: role }),
      content: t.exposeString('content'),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
    }),
  });

  const { connection } = addConnection(builder, { name: 'Message', node: message, pageInfo });
  builder.prismaObjectField(thread, 'messages', (t) =>
    t.field({
      type: connection,
      description: 'In canonical persistence order (sequenceNo), never by timestamp.',
      args: pageArguments(t.arg),
      select: (args, _context, nestedSelection) => ({
        messages: nestedSelection({ ...planPage(bySequenceNo, args), select: { id: true, sequenceNo: true } }, [
          'edges',
          'node',
        ]),
      }),
      resolve: ({ id, messages }, args, { loaders }) =>
        toConnection(bySequenceNo, id, args, messages, () => loaders.countMessages(id)),
    }),
  );

  const createPayload = builder.objectRef<{ id: string }>('CreateMessagePayload').implement({
    fields: (t) => ({
      message: t.prismaField({
        type: message,
        resolve: (query, { id }, _args, { services, principal }) => found(services.messages.find(principal, id, query)),
      }),
    }),
  });
  const createMessageInput = builder.inputType('CreateMessageInput', {
    description: 'USER or ASSISTANT only; CONFLICT while a run is active on the thread.',
    fields: (t) => ({
      threadId: t.id({ required: true }),
      content: t.string({ required: true }),
      role: t.field({ type: role, defaultValue: 'USER' }),
    }),
  });
  builder.mutationField('createMessage', (t) =>
    t.field({
      type: createPayload,
      args: { input: t.arg({ type: createMessageInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) =>
        services.messages.create(principal, { ...input, role: input.role ?? 'USER' }),
    }),
  );
}
