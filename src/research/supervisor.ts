// A research run: a supervisor that plans, delegates and answers.
import type { Tool } from '../tools/tool-definition.js';
import { runAgent, type AgentResult } from './agent.js';
import { createDelegation, type Delegation } from './delegation.js';
import { supervisorPrompt } from './prompts/supervisor-prompt.js';
import type { Findings } from './run-end.js';
import type { RunEventPublisher } from './run-event.js';
import { DEFAULT_MAX_WORKERS } from './run-limits.js';
import type { RunReporter } from './run-reporter.js';
import type { StopSignal } from './run-stop.js';
import type { RunRow } from './run-store.js';
import { runWorker, type WorkerDependencies } from './worker.js';

/** Never rejects. When it resolves, every worker has ended. */
export async function supervise(
  dependencies: WorkerDependencies,
  run: RunRow,
  publisher: RunEventPublisher,
  { signal, cancel }: Pick<StopSignal, 'signal' | 'cancel'>,
): Promise<{ result: AgentResult; findings: Findings }> {
  const maxWorkers = run.maxWorkers > 0 ? run.maxWorkers : DEFAULT_MAX_WORKERS;

  const delegationBy = (parentReporter: RunReporter): Delegation =>
    createDelegation({
      maxWorkers,
      runWorker: ({ name, task, requirements }) =>
        runWorker(dependencies, {
          parent: run,
          publisher,
          parentReporter,
          signal,
          name,
          task,
          requirements,
          onParentGone: cancel,
        }),
    });

  let delegation: Delegation | undefined;
  const result = await runAgent(dependencies, {
    run,
    name: 'supervisor',
    system: supervisorPrompt({ maxTurns: run.maxTurns, maxWorkers }),
    placeholders: [{ type: 'scratchpad' }],
    moreTools: (reporter): Tool[] => {
      delegation = delegationBy(reporter);
      return [delegation.tool];
    },
    publisher,
    signal,
    onStart: (reporter) => reporter.status('STARTED', 'The research has begun'),
  });
  await delegation?.settled();
  return {
    result,
    findings: { evidence: delegation?.evidence() ?? 0, fetchedUrls: delegation?.fetchedUrls() ?? [] },
  };
}
