// Executes one run from its beginning to its terminal state, with everything it delegates, and tells its stream.
import type { AssistantService } from '../assistants/assistant-service.js';
import type { UserPrincipal } from '../identity/principal.js';
import type { CapabilityPlaceholder } from '../tools/assistant-tools.js';
import { crashedAgent, runAgent, type AgentDependencies, type AgentResult } from './agent.js';
import { endOf, finishRun, type Findings } from './run-end.js';
import type { RunEventPublisher } from './run-event.js';
import type { StopSignal } from './run-stop.js';
import type { RunRow, RunStore } from './run-store.js';
import { supervise } from './supervisor.js';
import { terminalEventOf } from './terminal-event.js';

/** What ends a run from outside. */
export type Stop = Pick<StopSignal, 'signal' | 'cancel'>;

export interface RunExecutor {
  /**
   * Executes a QUEUED run of a tenant; does nothing for one that is not QUEUED any more. When it resolves, the run and its workers are in terminal
   * states and the stream has its last event.
   * @throws when SQL stays away: what is left is for a sweep
   */
  execute(runId: string, stop: Stop): Promise<void>;
  /** Cancels one delegated worker alone. False when it is not executed here. */
  cancelWorker(workerRunId: string): boolean;
}

export interface RunExecutorDependencies extends AgentDependencies {
  runStore: Pick<RunStore, 'setTurnCount' | 'createWorker' | 'begin' | 'finish' | 'find' | 'removeEphemera'>;
  assistants: Pick<AssistantService, 'find'>;
  /** `publisher` leads into the stream of this run, or of its parent. */
  events: { publisher(run: Pick<RunRow, 'id' | 'ownerId' | 'parentRunId'>): RunEventPublisher };
}

interface Executed {
  result: AgentResult;
  findings: Findings;
}

export function createRunExecutor(dependencies: RunExecutorDependencies): RunExecutor {
  const { runStore, assistants, events, logger, now } = dependencies;
  const cancellable = new Map<string, () => void>();

  async function runAssistant(run: RunRow, publisher: RunEventPublisher, signal: AbortSignal): Promise<Executed> {
    const owner: UserPrincipal = { kind: 'user', userId: run.ownerId, apiKeyId: 'run' };
    const assistant = run.assistantId === null ? null : await assistants.find(owner, run.assistantId);
    if (!assistant) throw new Error('The assistant of the run is gone.');
    const result = await runAgent(dependencies, {
      run,
      name: assistant.name,
      // Some providers refuse an empty message.
      system: assistant.instructions.trim() === '' ? `You are ${assistant.name}.` : assistant.instructions,
      // Checked when the assistant was created.
      placeholders: assistant.tools as unknown as CapabilityPlaceholder[],
      publisher,
      signal,
      onStart: (reporter) => reporter.status('STARTED', `${assistant.name} has begun`),
    });
    return { result, findings: { evidence: 0, fetchedUrls: result.fetchedUrls } };
  }

  async function perform(run: RunRow, publisher: RunEventPublisher, stop: Stop): Promise<Executed> {
    try {
      if (run.kind === 'RESEARCH') return await supervise({ ...dependencies, cancellable }, run, publisher, stop);
      return await runAssistant(run, publisher, stop.signal);
    } catch (error) {
      logger.error({ err: error, runId: run.id }, 'a run could not be executed');
      return { result: crashedAgent, findings: { evidence: 0, fetchedUrls: [] } };
    }
  }

  return {
    async execute(runId, stop) {
      const run = await runStore.begin(runId);
      if (!run) return;
      const publisher = events.publisher(run);
      const { result, findings } = await perform(run, publisher, stop);
      const ended = await finishRun(runStore, run.id, endOf(run.kind, result, findings), logger);
      if (ended) publisher.publish(terminalEventOf(ended, now()));
      await publisher.flush();
    },

    cancelWorker(workerRunId) {
      const cancel = cancellable.get(workerRunId);
      cancel?.();
      return cancel !== undefined;
    },
  };
}
