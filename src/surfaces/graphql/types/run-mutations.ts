// Starting and cancelling runs.
import type { Builder } from '../builder.js';
import { found } from '../found.js';
import type { RunRef } from './run.js';

export function addRunMutations(builder: Builder, run: RunRef): void {
  const payload = (name: string) =>
    builder.objectRef<{ id: string }>(name).implement({
      fields: (t) => ({
        run: t.prismaField({
          type: run,
          resolve: (query, { id }, _args, { services, principal }) => found(services.runs.find(principal, id, query)),
        }),
      }),
    });

  const startRunInput = builder.inputType('StartRunInput', {
    fields: (t) => ({
      assistantId: t.id({ required: true }),
      threadId: t.id({ required: true }),
      message: t.string({ required: true }),
    }),
  });
  builder.mutationField('startRun', (t) =>
    t.field({
      type: payload('StartRunPayload'),
      description:
        'Puts the message on the thread and lets the assistant answer. CONFLICT while another run is active on the thread.',
      args: { input: t.arg({ type: startRunInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) => services.runs.startRun(principal, input),
    }),
  );

  const startResearchInput = builder.inputType('StartResearchInput', {
    fields: (t) => ({
      threadId: t.id({ required: true }),
      question: t.string({ required: true }),
      model: t.string({ description: "Absent: the server's own (LLM_MODEL)." }),
      maxTurns: t.int({
        description:
          'Lowers the budgets of the supervisor (at most 24 turns, whatever is said here) and of each worker (at most 8). At least 2: one to delegate, one to answer.',
      }),
      maxWorkers: t.int({ description: 'Workers side by side: at least 1, at most 10, 3 unless told.' }),
    }),
  });
  builder.mutationField('startResearch', (t) =>
    t.field({
      type: payload('StartResearchPayload'),
      description:
        'Puts the question on the thread and lets a supervisor research it with delegated workers. CONFLICT while another run is active on the thread.',
      args: { input: t.arg({ type: startResearchInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) => services.runs.startResearch(principal, input),
    }),
  );

  const cancelRunInput = builder.inputType('CancelRunInput', { fields: (t) => ({ runId: t.id({ required: true }) }) });
  builder.mutationField('cancelRun', (t) =>
    t.field({
      type: payload('CancelRunPayload'),
      description:
        'A waiting run is CANCELLED at once, an executing one within 2 s, its delegated workers with it. A run that has ended stays as it is.',
      args: { input: t.arg({ type: cancelRunInput, required: true }) },
      resolve: async (_root, { input }, { services, principal }) => {
        await services.runs.cancel(principal, input.runId);
        return { id: input.runId };
      },
    }),
  );
}
