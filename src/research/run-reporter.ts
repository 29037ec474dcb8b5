// Turns what happens in one run into the events of its stream.
import type { Clock } from '../shared/clock.js';
import { readScratchpad } from '../tools/scratchpad/scratchpad-tools.js';
import { createAnswerStream } from './answer-stream.js';
import { webActivityOf } from './run-activity.js';
import type { EventState, NewRunEvent, ResearchPhase, RunEventPublisher, ScratchpadEventRecord } from './run-event.js';
import type { RunRow } from './run-store.js';
import type { LoopListener } from './turn-loop.js';

type WithoutOrigin<Event> = Event extends unknown ? Omit<Event, 'originRunId' | 'occurredAt'> : never;

export type ScratchpadReport = Pick<ScratchpadEventRecord, 'scratchpadId' | 'operation' | 'state'> &
  Partial<Pick<ScratchpadEventRecord, 'activity' | 'tool' | 'entry' | 'content' | 'expiresAt' | 'assistantId'>>;

export interface RunReporter {
  /** For the turn loop. */
  readonly listener: LoopListener;
  status(phase: ResearchPhase, activity: string, more?: { state?: EventState; tool?: string }): void;
  scratchpad(report: ScratchpadReport): void;
  /** The deltas of the content events so far, joined: what a run that completes has as its output. */
  said(): string;
  /** From now on nothing is told any more: the run has ended. */
  close(): void;
}

interface Options {
  publisher: Pick<RunEventPublisher, 'publish'>;
  run: Pick<RunRow, 'id' | 'kind' | 'maxTurns'>;
  /** Whether its model is offered any tools. */
  hasTools: boolean;
  now: Clock;
}

/** Nobody says this much before a tool call, as a rule. */
const longPreamble = 300;

/** Follows a run's turns and guesses how much of a turn's text to hold back. */
function createTurnWatch({ run, hasTools }: Pick<Options, 'run' | 'hasTools'>) {
  let delegations = 0;
  /** Every call of the last turn read the pad. */
  let hasJustRead = false;
  let isLast = false;
  return {
    turnStarted(turnNumber: number) {
      isLast = !hasTools || turnNumber >= run.maxTurns;
    },
    turnEnded(callNames: string[]) {
      hasJustRead = callNames.length > 0 && callNames.every((name) => name === readScratchpad.name);
    },
    delegated() {
      delegations++;
    },
    /** A supervisor is asked to read the pad once more before it answers. */
    isLikelyAnswer: () => isLast || (delegations > 0 && hasJustRead),
    holdBack(): number {
      if (isLast) return 0;
      if (run.kind === 'ASSISTANT' || (run.kind === 'RESEARCH' && this.isLikelyAnswer())) return longPreamble;
      return Infinity;
    },
  };
}

export function createRunReporter({ publisher, run, hasTools, now }: Options): RunReporter {
  const turns = createTurnWatch({ run, hasTools });
  let isClosed = false;
  let isSynthesising = false;

  function tell(event: WithoutOrigin<NewRunEvent>): void {
    if (!isClosed) publisher.publish({ ...event, originRunId: run.id, occurredAt: now() });
  }

  const status: RunReporter['status'] = (phase, activity, { state = 'IN_PROGRESS', tool } = {}) => {
    if (phase === 'DELEGATED') {
      turns.delegated();
      isSynthesising = false;
    }
    tell({ type: 'status', phase, activity, state, tool: tool ?? null });
  };

  /** Not before the answer begins: a supervisor that reads the pad once more may still delegate again. */
  function synthesise(): void {
    if (run.kind !== 'RESEARCH' || isSynthesising) return;
    isSynthesising = true;
    status('SYNTHESISING', 'Writing the answer');
  }

  const answer = createAnswerStream({
    answer(delta) {
      synthesise();
      tell({ type: 'content', delta });
    },
    aside: (delta) => tell({ type: 'reasoning', delta }),
  });

  return {
    listener: {
      turnStarted(turnNumber) {
        turns.turnStarted(turnNumber);
        if (run.kind === 'RESEARCH' && turnNumber === 1) status('PLANNING', 'Planning the research');
        answer.startTurn(turns.holdBack());
      },
      text: (delta) => answer.push(delta),
      reasoning: (delta) => tell({ type: 'reasoning', delta }),
      turnEnded({ toolCalls, finishReason }) {
        answer.endTurn(toolCalls.length === 0 && finishReason !== 'length');
        turns.turnEnded(toolCalls.map(({ name }) => name));
      },
      callStarted(call) {
        const activity = webActivityOf(call);
        if (activity !== undefined) status('RESEARCHING', activity, { tool: call.name });
      },
      callFinished(call, { isError }) {
        const activity = webActivityOf(call);
        if (activity === undefined) return;
        status('RESEARCHING', activity, { state: isError ? 'ERROR' : 'COMPLETED', tool: call.name });
      },
    },
    status,
    scratchpad(report) {
      tell({
        type: 'scratchpad',
        activity: null,
        tool: null,
        expiresAt: null,
        assistantId: null,
        replayed: false,
        ...report,
      });
    },
    said: () => answer.said(),
    close() {
      isClosed = true;
    },
  };
}
