// The events of a run's stream, and the subscriptions that carry them.
import type { RunEventRecord, StatusEventRecord, TextEventRecord } from '../../../research/run-event.js';
import type { Builder } from '../builder.js';
import { found } from '../found.js';
import { ofEventAlone } from '../shared-results.js';
import type { RunRef } from './run.js';

/** The fields that every event in a run's stream has. */
interface EventBase {
  cursor: string;
  runId: string | null;
  originRunId: string | null;
  occurredAt: Date;
}

const typeNames = {
  status: 'ResearchStatusEvent',
  scratchpad: 'ScratchpadEvent',
  content: 'ContentEvent',
  reasoning: 'ReasoningEvent',
} as const satisfies Record<RunEventRecord['type'], string>;

/** The interface and the enum that scratchpad events have in common with the others. */
export function addRunEvent(builder: Builder) {
  const state = builder.enumType('EventState', {
    values: ['IN_PROGRESS', 'SUCCESS', 'COMPLETED', 'ERROR'] as const,
  });
  const runEvent = builder.interfaceRef<EventBase>('RunEvent').implement({
    description: "One event in a run's stream. A cursor belongs to the stream that delivered it.",
    extensions: ofEventAlone,
    fields: (t) => ({
      cursor: t.exposeString('cursor'),
      runId: t.exposeID('runId', { nullable: true, description: 'The run whose stream this is.' }),
      originRunId: t.exposeID('originRunId', {
        nullable: true,
        description: "The run that did it: the same as runId, or a delegated worker's.",
      }),
      occurredAt: t.expose('occurredAt', { type: 'DateTime' }),
    }),
    resolveType: (event) => typeNames[(event as RunEventRecord).type],
  });
  return { runEvent, state };
}

export type RunEventRefs = ReturnType<typeof addRunEvent>;

export function addRunSubscriptions(builder: Builder, run: RunRef, { runEvent, state }: RunEventRefs): void {
  const phase = builder.enumType('ResearchPhase', {
    values: [
      'QUEUED',
      'STARTED',
      'PLANNING',
      'DELEGATED',
      'RESEARCHING',
      'SCRATCHPAD_UPDATED',
      'WORKER_COMPLETED',
      'WORKER_FAILED',
      'SYNTHESISING',
      'FINISHED',
    ] as const,
  });
  const statusEvent = builder.objectRef<StatusEventRecord>('ResearchStatusEvent').implement({
    description: 'A step of a run or of one of its delegated workers.',
    interfaces: [runEvent],
    fields: (t) => ({
      runId: t.exposeID('runId'),
      originRunId: t.exposeID('originRunId'),
      run: t.prismaField({
        type: run,
        description: 'The run whose stream this is, as it is now.',
        resolve: (query, { runId }, _args, { services, principal }) =>
          found(services.runs.find(principal, runId, query)),
      }),
      phase: t.expose('phase', { type: phase }),
      activity: t.exposeString('activity', { description: 'One line for a person.' }),
      state: t.expose('state', { type: state }),
      tool: t.exposeString('tool', { nullable: true }),
    }),
  });
  for (const [name, description] of [
    ['ContentEvent', 'A piece of what a model says, in order.'],
    ['ReasoningEvent', 'A piece of what a model thinks, in order.'],
  ] as const) {
    builder.objectRef<TextEventRecord>(name).implement({
      description,
      interfaces: [runEvent],
      fields: (t) => ({
        runId: t.exposeID('runId'),
        originRunId: t.exposeID('originRunId'),
        delta: t.exposeString('delta'),
      }),
    });
  }

  builder.subscriptionField('researchStatus', (t) =>
    t.field({
      type: statusEvent,
      description:
        'Progress of one run and its delegated workers, resumable. Completes after the run\'s terminal event. after: an event\'s cursor; "" begins with the first event that is kept.',
      args: { runId: t.arg.id({ required: true }), after: t.arg.string() },
      subscribe: (_root, { runId, after }, { services, principal }) =>
        services.runs.subscribeToStatus(principal, runId, { after }),
      resolve: (event) => event,
    }),
  );
  builder.subscriptionField('runEvents', (t) =>
    t.field({
      type: runEvent,
      description:
        'Everything one run lets a client see, resumable, also after its end while its events are kept. Completes after the run\'s terminal event. after: an event\'s cursor; "" begins with the first event that is kept.',
      args: { runId: t.arg.id({ required: true }), after: t.arg.string() },
      subscribe: (_root, { runId, after }, { services, principal }) =>
        services.runs.subscribe(principal, runId, { after }),
      resolve: (event) => event,
    }),
  );
}
