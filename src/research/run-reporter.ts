// Turns what happens in one run into the events of its stream.
import type { Clock } from '../shared/clock.js';
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

export function createRunReporter({ publisher, run, hasTools, now }: Options): RunReporter {
  let isClosed = false;
  let isSynthesising = false;

  function tell(event: WithoutOrigin<NewRunEvent>): void {
    if (!isClosed) publisher.publish({ ...event, originRunId: run.id, occurredAt: now() });
  }

  const status: RunReporter['status'] = (phase, activity, { state = 'IN_PROGRESS', tool } = {}) => {
    tell({ type: 'status', phase, activity, state, tool: tool ?? null });
  };

  /** With the first word of the answer: until then a supervisor that talks may still delegate again. */
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
        if (run.kind === 'RESEARCH' && turnNumber === 1) status('PLANNING', 'Planning the research');
        answer.startTurn(!hasTools || turnNumber >= run.maxTurns);
      },
      text: (delta) => answer.push(delta),
      reasoning: (delta) => tell({ type: 'reasoning', delta }),
      turnEnded({ toolCalls, finishReason }) {
        answer.endTurn(toolCalls.length === 0 && finishReason !== 'length');
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
    close() {
      isClosed = true;
    },
  };
}
