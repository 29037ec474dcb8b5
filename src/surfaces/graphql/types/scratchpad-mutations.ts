// The mutations of scratchpads: one input object each, one payload each.
import { entryCursorCodec } from '../../../scratchpads/ledger-page.js';
import type { ContentState, EntryState } from '../../../scratchpads/data-plane.js';
import type { ClearScope } from '../../../scratchpads/scratchpad-service.js';
import type { Builder } from '../builder.js';
import { found } from '../found.js';
import type { ScratchpadRef } from './scratchpad.js';
import type { ScratchpadStateRefs } from './scratchpad-state.js';

interface PadPayload {
  scratchpadId: string;
}

export function addScratchpadMutations(builder: Builder, scratchpad: ScratchpadRef, state: ScratchpadStateRefs): void {
  /** A payload that shows the pad as it is after the mutation. */
  const padPayload = <Payload extends PadPayload>(name: string) => {
    const payload = builder.objectRef<Payload>(name);
    payload.implement({});
    builder.objectField(payload, 'scratchpad', (t) =>
      t.prismaField({
        type: scratchpad,
        resolve: (query, { scratchpadId }, _args, { services, principal }) =>
          found(services.scratchpads.find(principal, scratchpadId, query)),
      }),
    );
    return payload;
  };

  const createInput = builder.inputType('CreateScratchpadInput', {
    description: "Takes only the parent thread: the owner is the authenticated user, the id is the server's.",
    fields: (t) => ({ threadId: t.id({ required: true }), metaData: t.field({ type: 'JSONObject' }) }),
  });
  builder.mutationField('createScratchpad', (t) =>
    t.field({
      type: padPayload('CreateScratchpadPayload'),
      description: 'CONFLICT when the thread has a scratchpad already.',
      args: { input: t.arg({ type: createInput, required: true }) },
      resolve: async (_root, { input }, { services, principal }) => ({
        scratchpadId: (await services.scratchpads.create(principal, input)).id,
      }),
    }),
  );

  const updateInput = builder.inputType('UpdateScratchpadInput', {
    description: 'Replaces metaData as a whole.',
    fields: (t) => ({
      scratchpadId: t.id({ required: true }),
      metaData: t.field({ type: 'JSONObject', required: true }),
    }),
  });
  builder.mutationField('updateScratchpad', (t) =>
    t.field({
      type: padPayload('UpdateScratchpadPayload'),
      args: { input: t.arg({ type: updateInput, required: true }) },
      resolve: async (_root, { input }, { services, principal }) => ({
        scratchpadId: (await services.scratchpads.updateMetaData(principal, input.scratchpadId, input.metaData)).id,
      }),
    }),
  );

  const setContentInput = builder.inputType('SetScratchpadContentInput', {
    description:
      'Empty text is allowed. With expectedVersion the write is refused (CONFLICT) when the content has changed since.',
    fields: (t) => ({
      scratchpadId: t.id({ required: true }),
      text: t.string({ required: true }),
      expectedVersion: t.string(),
      idempotencyKey: t.string(),
    }),
  });
  const setContentPayload = padPayload<PadPayload & { content: ContentState }>('SetScratchpadContentPayload');
  builder.objectField(setContentPayload, 'content', (t) => t.expose('content', { type: state.content }));
  builder.mutationField('setScratchpadContent', (t) =>
    t.field({
      type: setContentPayload,
      args: { input: t.arg({ type: setContentInput, required: true }) },
      resolve: async (_root, { input: { scratchpadId, ...change } }, { services, principal }) => ({
        scratchpadId,
        content: await services.scratchpads.setContent(principal, scratchpadId, change),
      }),
    }),
  );

  const appendInput = builder.inputType('AppendScratchpadEntryInput', {
    description:
      'Empty (or blank) content is refused. A repeated idempotencyKey with the same input returns the first result and writes nothing; with another input it is a CONFLICT. Keys are remembered for 24 hours.',
    fields: (t) => ({
      scratchpadId: t.id({ required: true }),
      content: t.string({ required: true }),
      idempotencyKey: t.string(),
    }),
  });
  const appendPayload = padPayload<PadPayload & { entry: EntryState; position: number }>(
    'AppendScratchpadEntryPayload',
  );
  builder.objectFields(appendPayload, (t) => ({
    entry: t.expose('entry', { type: state.entry }),
    entryEdge: t.field({
      type: state.entryEdge,
      resolve: ({ scratchpadId, entry, position }) => ({
        cursor: entryCursorCodec(scratchpadId).encode([position, entry.sequence]),
        node: entry,
      }),
    }),
  }));
  builder.mutationField('appendScratchpadEntry', (t) =>
    t.field({
      type: appendPayload,
      args: { input: t.arg({ type: appendInput, required: true }) },
      resolve: async (_root, { input: { scratchpadId, ...entry } }, { services, principal }) => ({
        scratchpadId,
        ...(await services.scratchpads.appendEntry(principal, scratchpadId, entry)),
      }),
    }),
  );

  const addClear = (field: string, scope: ClearScope, description: string): void => {
    const typeName = field[0]?.toUpperCase() + field.slice(1);
    const input = builder.inputType(`${typeName}Input`, {
      fields: (t) => ({ scratchpadId: t.id({ required: true }) }),
    });
    builder.mutationField(field, (t) =>
      t.field({
        type: padPayload(`${typeName}Payload`),
        description,
        args: { input: t.arg({ type: input, required: true }) },
        resolve: async (_root, { input: { scratchpadId } }, { services, principal }) => {
          await services.scratchpads.clear(principal, scratchpadId, scope);
          return { scratchpadId };
        },
      }),
    );
  };
  addClear('clearScratchpadContent', 'CONTENT', 'Empties the content; the entries stay.');
  addClear('clearScratchpadEntries', 'ENTRIES', 'Empties the ledger; the content stays.');
  addClear('clearScratchpad', 'ALL', 'Empties content and ledger; the scratchpad, its id and its thread stay.');

  const deletePayload = builder.objectRef<{ deletedScratchpadId: string }>('DeleteScratchpadPayload').implement({
    fields: (t) => ({ deletedScratchpadId: t.exposeID('deletedScratchpadId') }),
  });
  const deleteInput = builder.inputType('DeleteScratchpadInput', {
    fields: (t) => ({ scratchpadId: t.id({ required: true }) }),
  });
  builder.mutationField('deleteScratchpad', (t) =>
    t.field({
      type: deletePayload,
      description: 'Removes the scratchpad and everything that Redis holds for it; its thread stays.',
      args: { input: t.arg({ type: deleteInput, required: true }) },
      resolve: async (_root, { input }, { services, principal }) => ({
        deletedScratchpadId: await services.scratchpads.delete(principal, input.scratchpadId),
      }),
    }),
  );
}
