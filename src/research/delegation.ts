// The tool that delegates: a bounded number of workers side by side, and one honest result for each call.
import { delegateResearchTask, type DelegationInput } from '../tools/delegation/delegation-tool.js';
import { errorResult, successResult, type Tool, type ToolResult } from '../tools/tool-definition.js';
import { createConcurrencyGate } from './concurrency-gate.js';
import { MOST_DELEGATIONS } from './run-limits.js';
import { createWorkUnderWay } from './work-under-way.js';
import type { WorkerResult } from './worker.js';

export interface Delegation {
  tool: Tool<DelegationInput>;
  /** Resolves when no worker is left: a call that was answered because the run was stopped may still be taking its worker down. */
  settled(): Promise<void>;
  /** How many entries successful workers have appended. */
  evidence(): number;
  /** What workers have read, successful or not. */
  fetchedUrls(): string[];
}

export interface WorkOrder extends DelegationInput {
  /** Unique among the workers of a run, in the order of the calls. */
  name: string;
}

interface Options {
  maxWorkers: number;
  runWorker: (order: WorkOrder) => Promise<WorkerResult>;
}

const stays = (entries: number): string =>
  entries === 0
    ? 'It had appended nothing.'
    : `What it had appended stays on the scratchpad: ${entries} ${entries === 1 ? 'entry' : 'entries'}.`;

/** Nothing that a worker said before it failed gets through. */
function toToolResult({ run, appendedEntries, fetchedUrls }: WorkerResult): ToolResult {
  if (run?.status === 'COMPLETED') {
    const report = {
      status: run.status,
      report: run.output,
      entries_appended: appendedEntries,
      urls_fetched: fetchedUrls,
    };
    return successResult(JSON.stringify(report));
  }
  if (run?.status === 'FAILED') {
    const reason = `The worker failed. ${run.lastErrorMessage ?? ''} ${stays(appendedEntries)}`;
    return errorResult(run.lastErrorCode ?? 'INTERNAL', reason);
  }
  if (run?.status === 'EXPIRED') return errorResult('EXPIRED', `The worker ran out of time. ${stays(appendedEntries)}`);
  return errorResult('CANCELLED', `The worker was cancelled. ${stays(appendedEntries)}`);
}

export function createDelegation({ maxWorkers, runWorker }: Options): Delegation {
  const gate = createConcurrencyGate(maxWorkers);
  const workers = createWorkUnderWay();
  const fetched = new Set<string>();
  let evidence = 0;
  let delegations = 0;

  async function delegate(order: WorkOrder): Promise<ToolResult> {
    const result = await runWorker(order);
    for (const url of result.fetchedUrls) fetched.add(url);
    if (result.run?.status === 'COMPLETED') evidence += result.appendedEntries;
    return toToolResult(result);
  }

  return {
    tool: {
      definition: delegateResearchTask,
      async run(input, { signal }) {
        if (delegations >= MOST_DELEGATIONS) {
          const reason = `This run has delegated ${MOST_DELEGATIONS} times, which is the most that it may. Answer with what is on the scratchpad.`;
          return errorResult('LIMIT_EXCEEDED', reason);
        }
        const order = { ...input, name: `worker-${++delegations}` };
        return await workers.track(gate.run(() => delegate(order), signal));
      },
    },
    settled: () => workers.settled(),
    evidence: () => evidence,
    fetchedUrls: () => [...fetched],
  };
}
