// The events of a scratchpad, and the subscription that carries them.
import type { ScratchpadEventRecord } from '../../../research/run-event.js';
import type { Builder } from '../builder.js';
import { ofEventAlone } from '../shared-results.js';
import type { RunEventRefs } from './run-event.js';
import type { ScratchpadRef } from './scratchpad.js';
import type { ScratchpadStateRefs } from './scratchpad-state.js';

/** What both streams tell of a scratchpad: a run's own records, and changes of state from everywhere. */
type ScratchpadEvent = Omit<ScratchpadEventRecord, 'type' | 'runId' | 'originRunId'> & {
  runId: string | null;
  originRunId: string | null;
};

export function addScratchpadEvents(
  builder: Builder,
  scratchpad: ScratchpadRef,
  state: ScratchpadStateRefs,
  runEvents: RunEventRefs,
): void {
  const operation = builder.enumType('ScratchpadOperation', {
    values: ['READ', 'UPDATE', 'APPEND', 'CLEAR_CONTENT', 'CLEAR_ENTRIES', 'CLEAR', 'EXPIRE', 'DELETE'] as const,
  });

  const event = builder.objectRef<ScratchpadEvent>('ScratchpadEvent').implement({
    description:
      "A scratchpad operation. scratchpadEvents carries changes of state only, always as SUCCESS. In runEvents a model's tool call is bracketed: IN_PROGRESS, SUCCESS with the payload, COMPLETED; or ERROR; and READ appears too.",
    interfaces: [runEvents.runEvent],
    extensions: ofEventAlone,
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
      state: t.expose('state', { type: runEvents.state }),
      activity: t.exposeString('activity', { nullable: true }),
      tool: t.exposeString('tool', { nullable: true }),
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
      resolve: (change, { scratchpadId }) => ({
        ...change,
        scratchpadId,
        originRunId: change.runId,
        state: 'SUCCESS' as const,
        activity: null,
        tool: null,
      }),
    }),
  );
}
