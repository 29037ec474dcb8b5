// One assistant on one conversation with one scratchpad: tools, turn loop, and what came of it. Supervisors and workers are made of it.
import type { ScratchpadService } from '../scratchpads/scratchpad-service.js';
import type { Clock } from '../shared/clock.js';
import { unavailable } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';
import { isSqlUnavailable } from '../shared/sql-errors.js';
import type { CapabilityPlaceholder } from '../tools/assistant-tools.js';
import { hydrateTools } from '../tools/hydrate.js';
import { createScratchpadTools } from '../tools/scratchpad/scratchpad-tools.js';
import type { Tool, ToolResult } from '../tools/tool-definition.js';
import { createToolbox } from '../tools/toolbox.js';
import type { PageFetcher } from '../tools/web/fetch-page.js';
import type { HtmlConverter } from '../tools/web/html-converter.js';
import type { SearchEngine } from '../tools/web/search-engine.js';
import { createWebSession } from '../tools/web/web-session.js';
import { createWebTools } from '../tools/web/web-tools.js';
import type { ConversationStore } from './conversation/conversation-message.js';
import { lastTurnNote } from './prompts/last-turn-note.js';
import type { Provider, ProviderTurn, ToolCall } from './provider/provider-types.js';
import type { RunEventPublisher } from './run-event.js';
import { createRunReporter, type RunReporter } from './run-reporter.js';
import { stopStatus } from './run-stop.js';
import { metaDataOf, type RunRow, type RunStore } from './run-store.js';
import { createRunScratchpad } from './scratchpad-port.js';
import { runTurnLoop, type LoopOutcome } from './turn-loop.js';

export interface AgentDependencies {
  runStore: Pick<RunStore, 'setTurnCount'>;
  conversationOf: (threadId: string) => ConversationStore;
  scratchpads: Pick<ScratchpadService, 'ensureForThread' | 'formattedView' | 'read' | 'setContent' | 'appendEntry'>;
  createProvider: (run: Pick<RunRow, 'id' | 'model'>) => Provider;
  web: { engine: SearchEngine; fetcher: PageFetcher; converter: HtmlConverter };
  limits: { contextMaxTokens: number };
  logger: Logger;
  now: Clock;
}

export interface AgentPlan {
  run: RunRow;
  /** Who it is to others: the author of what it appends. */
  name: string;
  system: string;
  placeholders: readonly CapabilityPlaceholder[];
  /** Beside those of the platform; made with the reporter of this run. */
  moreTools?: (reporter: RunReporter) => Tool[];
  /** Called before anything happens. */
  onStart: (reporter: RunReporter) => void;
  /** Of the stream that this run is watched in. */
  publisher: Pick<RunEventPublisher, 'publish'>;
  /** Aborted with a RunStop. */
  signal: AbortSignal;
}

export interface AgentResult {
  /** `crashed`: a store failed, or there is a bug; the log has it. */
  outcome: LoopOutcome | { kind: 'crashed' };
  appendedEntries: number;
  fetchedUrls: string[];
}

/** For what fails before an agent could be made. */
export const crashedAgent: AgentResult = {
  outcome: { kind: 'crashed' },
  appendedEntries: 0,
  fetchedUrls: [],
};

/** A store that is away is something that a model can read of, and try again. */
const withReadableFailures = (tool: Tool): Tool => ({
  definition: tool.definition,
  async run(input, context) {
    try {
      return await tool.run(input, context);
    } catch (error) {
      throw isSqlUnavailable(error) ? unavailable('SQL', error) : error;
    }
  },
});

/** Never rejects. When it resolves, nothing of the agent is under way any more, but what `moreTools` started. */
export async function runAgent(dependencies: AgentDependencies, plan: AgentPlan): Promise<AgentResult> {
  const { runStore, scratchpads, now } = dependencies;
  const { run, signal } = plan;
  const logger = dependencies.logger.child({ runId: run.id });
  const offered = hydrateTools(plan.placeholders, run.kind);
  const reporter = createRunReporter({ publisher: plan.publisher, run, hasTools: offered.length > 0, now });
  const scratchpad = createRunScratchpad({
    scratchpads,
    principal: { kind: 'user', userId: run.ownerId, apiKeyId: 'run' },
    metaData: metaDataOf(run),
    runId: run.id,
    author: plan.name,
    assistantId: run.assistantId,
    reporter,
  });
  const session = createWebSession(dependencies.web);
  plan.onStart(reporter);
  const tools: Tool[] = [
    ...createScratchpadTools(scratchpad),
    ...createWebTools({ engine: dependencies.web.engine, session }),
    ...(plan.moreTools?.(reporter) ?? []),
  ];

  let counted: Promise<void> = Promise.resolve();
  let turnCount = 0;
  function turnEnded(turn: ProviderTurn): void {
    reporter.listener.turnEnded?.(turn);
    const count = ++turnCount;
    // For those who look while it runs; the end writes it once more.
    counted = counted
      .then(() => runStore.setTurnCount(run.id, count))
      .catch((error: unknown) => logger.warn({ err: error }, 'could not store the turn count'));
  }

  function callFinished(call: ToolCall, result: ToolResult): void {
    reporter.listener.callFinished?.(call, result);
    if (result.isRefusal) scratchpad.refused(call.name);
  }

  async function converse(): Promise<AgentResult['outcome']> {
    if (run.threadId === null) return { kind: 'crashed' };
    try {
      return await runTurnLoop({
        provider: dependencies.createProvider(run),
        conversation: dependencies.conversationOf(run.threadId),
        toolbox: createToolbox({
          offered,
          tools: tools.map(withReadableFailures),
          onUnexpectedError: (tool, error) => logger.error({ err: error, tool }, 'a tool failed unexpectedly'),
        }),
        listener: { ...reporter.listener, turnEnded, callFinished },
        signal,
        system: plan.system,
        taskId: run.taskMessageId,
        maxTurns: run.maxTurns,
        contextMaxTokens: dependencies.limits.contextMaxTokens,
        lastTurnNote,
      });
    } catch (error) {
      if (signal.aborted) return { kind: 'stopped', status: stopStatus(signal), turnCount };
      logger.error({ err: error }, 'a run failed unexpectedly');
      return { kind: 'crashed' };
    }
  }

  const outcome = await converse();
  if (outcome.kind === 'failed') {
    logger.warn({ code: outcome.code, reason: outcome.message, detail: outcome.detail }, 'a run failed');
  }
  await Promise.all([counted, scratchpad.settled()]);
  reporter.close();
  return {
    outcome,
    appendedEntries: scratchpad.appendedEntries(),
    fetchedUrls: session.fetchedUrls(),
  };
}
