// What one run lets a client see, event by event, and the port to where events are kept.
import type { ContentState, EntryState } from '../scratchpads/data-plane.js';
import type { ScratchpadOperation } from '../scratchpads/event-plane.js';

export type ResearchPhase =
  | 'QUEUED'
  | 'STARTED'
  | 'PLANNING'
  | 'DELEGATED'
  | 'RESEARCHING'
  | 'SCRATCHPAD_UPDATED'
  | 'WORKER_COMPLETED'
  | 'WORKER_FAILED'
  | 'SYNTHESISING'
  | 'FINISHED';

export type EventState = 'IN_PROGRESS' | 'SUCCESS' | 'COMPLETED' | 'ERROR';

interface EventBase {
  /** Names the place in the stream that delivered it, and nothing in any other. */
  cursor: string;
  /** The run whose stream this is. */
  runId: string;
  /** The run that did it: the same, or a delegated worker's. */
  originRunId: string;
  occurredAt: Date;
}

export interface StatusEventRecord extends EventBase {
  type: 'status';
  phase: ResearchPhase;
  /** One line for a person. */
  activity: string;
  state: EventState;
  tool: string | null;
}

/** A model's scratchpad call: IN_PROGRESS, SUCCESS with the payload, COMPLETED; or ERROR. */
export interface ScratchpadEventRecord extends EventBase {
  type: 'scratchpad';
  scratchpadId: string;
  operation: ScratchpadOperation | 'READ';
  state: EventState;
  activity: string | null;
  tool: string | null;
  /** With SUCCESS of an APPEND. */
  entry?: EntryState;
  /** With SUCCESS of an UPDATE. */
  content?: ContentState;
  expiresAt: Date | null;
  assistantId: string | null;
  replayed: boolean;
}

export interface TextEventRecord extends EventBase {
  type: 'content' | 'reasoning';
  delta: string;
}

export type RunEventRecord = StatusEventRecord | ScratchpadEventRecord | TextEventRecord;

type WithoutPlace<Event> = Event extends unknown ? Omit<Event, 'cursor' | 'runId'> : never;

/** An event on its way into a stream, which gives it its place. */
export type NewRunEvent = WithoutPlace<RunEventRecord>;

/** The way into one run's stream, for the run and its delegated workers. */
export interface RunEventPublisher {
  /** Behind everything published before. Returns at once and never throws: a run goes on when nobody can watch it. */
  publish(event: NewRunEvent): void;
  /** Resolves when everything published so far is in the stream, or was given up on. Never rejects. */
  flush(): Promise<void>;
}

/** Where a run's stream is. */
export interface RunAddress {
  ownerId: string;
  runId: string;
  /** A worker's events are in its parent's stream. */
  parentRunId: string | null;
}

/** The event side of runs; the caller has made sure that the run may be read. */
export interface RunEvents {
  /**
   * Every event from now on, or from just behind `after`; "" begins with the first one that is kept. Completes after the terminal event, also for a
   * run that ended before. Resolves when nothing can be missed any more. `return()` frees what it holds.
   * @throws DomainError INVALID_INPUT for a cursor that is none of this stream's, UNAVAILABLE. The iterator throws SUBSCRIBER_TOO_SLOW
   */
  subscribe(run: RunAddress, options: { after?: string }): Promise<AsyncIterableIterator<RunEventRecord>>;
}

/** The status events of a stream. Waits nowhere by itself, so that `return()` reaches the stream at once. */
export function statusEventsOf(
  events: AsyncIterableIterator<RunEventRecord>,
): AsyncIterableIterator<StatusEventRecord> {
  return {
    async next() {
      for (;;) {
        const step = await events.next();
        if (step.done) return { done: true, value: undefined };
        if (step.value.type === 'status') return { done: false, value: step.value };
      }
    },
    async return() {
      await events.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
