// The events of a scratchpad, and the subscription that carries them.
import type { ScratchpadChange } from '../../../scratchpads/event-plane.js';
import type { Builder } from '../builder.js';
import type { ScratchpadRef } from './scratchpad.js';
import type { ScratchpadStateRefs } from './scratchpad-state.js';

interface ScratchpadEvent extends ScratchpadChange {
  scratchpadId: string;
}

/** The fields that every event in a run's stream has. */
interface EventBase {
  cursor: string;
  runId: string | null;
  occurredAt: Date;
}

export function addScratchpadEvents(builder: Builder, scratchpad: ScratchpadRef, state: ScratchpadStateRefs): void {
  const operation = builder.enumType('ScratchpadOperation', {
    values: ['READ', 'UPDATE', 'APPEND', 'CLEAR_CONTENT', 'CLEAR_ENTRIES', 'CLEAR', 'EXPIRE', 'DELETE'] as const,
  });
  const eventState = builder.enumType('EventState', {
    values: ['IN_PROGRESS', 'SUCCESS', 'COMPLETED', 'ERROR'] as const,
  });

  const runEvent = builder.interfaceRef<EventBase>('RunEvent').implement({
    description: "One event in a run's stream. A cursor belongs to the stream that delivered it.",
    fields: (t) => ({
      cursor: t.exposeString('cursor'),
      runId: t.exposeID('runId', { nullable: true, description: 'The run whose stream this is.' }),
      originRunId: t.id({
        nullable: true,
        description: "The run that did it: the same as runId, or a delegated worker's.",
        resolve: ({ runId }) => runId,
      }),
      occurredAt: t.expose('occurredAt', { type: 'DateTime' }),
    }),
  });

  const event = builder.objectRef<ScratchpadEvent>('ScratchpadEvent').implement({
    description:
      "A scratchpad operation. scratchpadEvents carries changes of state only, always as SUCCESS. In runEvents a model's tool call is bracketed: IN_PROGRESS, SUCCESS with the payload, COMPLETED; or ERROR; and READ appears too.",
    interfaces: [runEvent],
    fields: (t) => ({
      scratchpadId: t.exposeID('scratchpadId'),
      scratchpad: t.prismaField({
        type: scratchpad,
        nullable: true,
        description: 'The pad as it is now; null after DELETE.',
        resolve: (query, { scratchpadId, operation }, _args, { services, principal }) =>
          operation === 'DELETE' ? null : services.scratchpads.find(principal, scratchpadId, query),
      }),
      operation: t.expose('operation', { type: operation }),
      state: t.field({ type: eventState, resolve: () => 'SUCCESS' as const }),
      activity: t.string({ nullable: true, resolve: () => null }),
      tool: t.string({ nullable: true, resolve: () => null }),
      entry: t.field({
        type: state.entry,
        nullable: true,
        description: 'The appended entry, for APPEND.',
        resolve: ({ entry }) => entry ?? null,
      }),
      content: t.field({
        type: state.content,
        nullable: true,
        description: 'The new content, for UPDATE.',
        resolve: ({ content }) => content ?? null,
      }),
      expiresAt: t.expose('expiresAt', { type: 'DateTime', nullable: true }),
      assistantId: t.exposeID('assistantId', { nullable: true }),
      replayed: t.exposeBoolean('replayed', {
        description: 'True when this event makes good what happened before the subscription began or during a gap.',
      }),
    }),
  });

  builder.subscriptionField('scratchpadEvents', (t) =>
    t.field({
      type: event,
      description:
        'Every change to one scratchpad, from every surface, in the order in which Redis applied it. after: an event\'s cursor or Scratchpad.eventCursor; what was missed since is made good first (the entries appended since and still there, the content as it is now, before them CLEAR_CONTENT, CLEAR_ENTRIES or CLEAR by what was cleared), marked replayed; then live events follow, without a gap and without a duplicate. after: "" replays the whole current state. Without after: live events only. Completes after the DELETE event, also when the deletion happened while nobody listened.',
      args: { scratchpadId: t.arg.id({ required: true }), after: t.arg.string() },
      subscribe: (_root, { scratchpadId, after }, { services, principal }) =>
        services.scratchpads.subscribe(principal, scratchpadId, { after }),
      resolve: (change, { scratchpadId }) => ({ ...change, scratchpadId }),
    }),
  );
}
