// Scratchpads as GraphQL sees them: identity out of SQL, working state out of Redis, and where each may be missing.
import { queryFromInfo } from '@pothos/plugin-prisma';
import { seesAroundPad } from '../../../identity/agent-access.js';
import { requireTenant, requireUser } from '../../../identity/principal.js';
import { entryCursorCodec } from '../../../scratchpads/ledger-page.js';
import { DomainError } from '../../../shared/errors.js';
import type { JsonObject } from '../../../shared/json.js';
import { parsePageArguments } from '../../../shared/pagination.js';
import type { Builder } from '../builder.js';
import { addConnection, byId, pageArguments, planPage, toConnection } from '../connections.js';
import { columnOf, createSelectionCheck, isPlanned } from '../selected-fields.js';
import { unchanging } from '../unchanging.js';
import type { NodeRef } from './node.js';
import type { PageInfoRef } from './page-info.js';
import type { ScratchpadStateRefs } from './scratchpad-state.js';
import type { ThreadRef } from './thread.js';
import type { UserRef } from './user.js';

const order = byId('scratchpads', 'scratchpad');

const addressOf = (pad: { id: string; ownerId: string }) => ({ ownerId: pad.ownerId, scratchpadId: pad.id });

const idsOfPad = { id: true, ownerId: true } as const;

/** Working state is found by ids alone: nothing has to be planned. */
const wantsIds = createSelectionCheck((field) => !isPlanned(field) || (columnOf(field) ?? '') in idsOfPad);

interface References {
  node: NodeRef;
  pageInfo: PageInfoRef;
  user: UserRef;
  thread: ThreadRef;
  state: ScratchpadStateRefs;
}

export function addScratchpad(builder: Builder, { node, pageInfo, user, thread, state }: References) {
  const scratchpad = builder.prismaObject('Scratchpad', {
    description: 'The shared working memory of one thread: a replaceable content and an append-only ledger of entries.',
    interfaces: [node],
    select: idsOfPad,
    fields: (t) => ({
      id: t.exposeID('id'),
      owner: t.field({
        type: user,
        nullable: true,
        description: 'Null for an agent token, which sees the pad and nothing around it. The same for thread.',
        select: (_args, _context, nestedSelection) => ({ owner: nestedSelection({ select: { id: true } }) }),
        resolve: ({ owner }, _args, { principal }) => (seesAroundPad(principal) ? owner : null),
      }),
      thread: t.field({
        type: thread,
        nullable: true,
        select: (_args, _context, nestedSelection) => ({ thread: nestedSelection({ select: { id: true } }) }),
        resolve: (pad, _args, { principal }) => (seesAroundPad(principal) ? pad.thread : null),
      }),
      // Only ever written through the jsonObject schema.
      metaData: t.field({
        type: 'JSONObject',
        select: { metaData: true },
        resolve: ({ metaData }) => metaData as JsonObject,
      }),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
      updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
      content: t.field({
        type: state.content,
        nullable: true,
        extensions: unchanging,
        description:
          'The replaceable working body. Empty text and a null updatedAt when nothing was ever set, or it expired.',
        resolve: async (pad, _args, { loaders }) =>
          (await loaders.readPad(addressOf(pad), { content: true })).content ?? null,
      }),
      entries: t.field({
        type: state.entryConnection,
        nullable: true,
        description: 'The append-only ledger, oldest first, in append order.',
        extensions: unchanging,
        args: pageArguments(t.arg),
        resolve: async (pad, args, { loaders }) => {
          const request = parsePageArguments(args, entryCursorCodec(pad.id));
          const reading = await loaders.readPad(addressOf(pad), { pages: [request] });
          const page = reading.pages?.[0];
          if (page instanceof DomainError) throw page;
          return page ?? null;
        },
      }),
      entryCount: t.int({
        nullable: true,
        resolve: async (pad, _args, { loaders }) =>
          (await loaders.readPad(addressOf(pad), { entryCount: true })).entryCount ?? null,
      }),
      formattedView: t.string({
        nullable: true,
        description:
          'What an agent reads: both planes in one text, exactly what the read_scratchpad tool returns. Bounded: content first, then the newest entries in order, with the number of the older ones left out.',
        resolve: async (pad, _args, { loaders }) =>
          (await loaders.readPad(addressOf(pad), { formattedView: true })).formattedView ?? null,
      }),
      eventCursor: t.string({
        nullable: true,
        description:
          'The event cursor of the state that this answer shows, read in the same step as content and entries. Give it to scratchpadEvents(after:) to go on from exactly here.',
        resolve: async (pad, _args, { loaders }) =>
          (await loaders.readPad(addressOf(pad), { eventCursor: true })).eventCursor ?? null,
      }),
      expiresAt: t.field({
        type: 'DateTime',
        nullable: true,
        description: 'When the working state expires unless written again; null when it is empty or never expires.',
        resolve: async (pad, _args, { loaders }) =>
          (await loaders.readPad(addressOf(pad), { expiresAt: true })).expiresAt ?? null,
      }),
    }),
  });

  builder.prismaObjectField(thread, 'scratchpad', (t) => t.relation('scratchpad', { nullable: true }));

  const { connection } = addConnection(builder, { name: 'Scratchpad', node: scratchpad, pageInfo });
  builder.prismaObjectField(user, 'scratchpads', (t) =>
    t.field({
      type: connection,
      description: 'Oldest first.',
      args: pageArguments(t.arg),
      select: (args, _context, nestedSelection) => ({
        scratchpads: nestedSelection({ ...planPage(order, args), select: idsOfPad }, ['edges', 'node']),
      }),
      resolve: ({ id, scratchpads }, args, { services, principal }) => {
        requireUser(principal);
        return toConnection(order, id, args, scratchpads, () => services.scratchpads.count(principal));
      },
    }),
  );

  builder.queryFields((t) => ({
    scratchpad: t.field({
      type: scratchpad,
      nullable: true,
      args: { id: t.arg.id({ required: true }) },
      resolve: (_root, { id }, context, info) => {
        const query = wantsIds(info) ? { select: idsOfPad } : queryFromInfo({ context, info });
        return context.services.scratchpads.find(context.principal, id, query);
      },
    }),
    scratchpadByThread: t.prismaField({
      type: scratchpad,
      nullable: true,
      description: 'Queries never create anything.',
      args: { threadId: t.arg.id({ required: true }) },
      resolve: (query, _root, { threadId }, { services, principal }) =>
        services.scratchpads.findByThread(principal, threadId, query),
    }),
    scratchpads: t.field({
      type: connection,
      description: 'Every scratchpad of the authenticated user, oldest first; for an agent token its one scratchpad.',
      args: pageArguments(t.arg),
      resolve: async (_root, args, context, info) => {
        const { services, principal } = context;
        const tenant = requireTenant(principal);
        const rows = await services.scratchpads.list(principal, {
          ...planPage(order, args),
          ...queryFromInfo({ context, info, select: idsOfPad, path: ['edges', 'node'] }),
        });
        // A cursor can be read by whoever holds it: an agent's does not name its owner.
        const holderId = tenant.kind === 'user' ? tenant.userId : tenant.tokenId;
        return toConnection(order, holderId, args, rows, () => services.scratchpads.count(principal));
      },
    }),
  }));
  return scratchpad;
}

export type ScratchpadRef = ReturnType<typeof addScratchpad>;
