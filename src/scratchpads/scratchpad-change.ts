// What a subscriber of a pad is told, and the place in the pad's history behind each of it.
import { startOfHistory, type EventCursorCodec, type EventPosition } from './event-cursor.js';
import type { ContentState, EntryState, PublishedEvent } from './schemas.js';

export type ScratchpadOperation =
  'UPDATE' | 'APPEND' | 'CLEAR_CONTENT' | 'CLEAR_ENTRIES' | 'CLEAR' | 'EXPIRE' | 'DELETE';

/** One change to one pad. Frozen: all subscribers of a process share it. */
export interface ScratchpadChange {
  readonly cursor: string;
  readonly operation: ScratchpadOperation;
  /** For APPEND. */
  readonly entry?: EntryState;
  /** For UPDATE: the content at least as new as this change. */
  readonly content?: ContentState;
  /** When the state expires unless written again; null when it is empty or never does. */
  readonly expiresAt: Date | null;
  readonly runId: string | null;
  readonly assistantId: string | null;
  /** True when it makes good what happened before the subscription began or during a gap. */
  readonly replayed: boolean;
  readonly occurredAt: Date;
}

/** A change on its way to a subscriber. Frozen and shared, too. */
export interface Delivery {
  readonly change: ScratchpadChange;
  /** Where a subscriber is once it has this change. */
  readonly position: EventPosition;
  /** Roughly what it holds in memory. */
  readonly bytes: number;
}

const changeOverheadBytes = 500;

/** A change without its cursor. */
export type Told = Pick<ScratchpadChange, 'operation' | 'occurredAt' | 'expiresAt' | 'replayed'> &
  Partial<Pick<ScratchpadChange, 'entry' | 'content' | 'runId' | 'assistantId'>>;

export function createDelivery(told: Told, position: EventPosition, codec: EventCursorCodec): Delivery {
  if (told.entry) Object.freeze(told.entry);
  if (told.content) Object.freeze(told.content);
  const textLength = (told.entry?.content.length ?? 0) + (told.content?.text.length ?? 0);
  return Object.freeze({
    change: Object.freeze({ runId: null, assistantId: null, ...told, cursor: codec.encode(position) }),
    position: Object.freeze(position),
    bytes: changeOverheadBytes + textLength,
  });
}

/** What makes good a deletion that happened while nobody listened. */
export const deletion = (codec: EventCursorCodec): Delivery =>
  createDelivery(
    { operation: 'DELETE', occurredAt: new Date(), expiresAt: null, replayed: true },
    startOfHistory,
    codec,
  );

/** Where a subscriber at `position` is after the event. */
function positionAfter({ operation, number }: PublishedEvent, position: EventPosition): EventPosition {
  if (operation === 'APPEND' || operation === 'CLEAR_ENTRIES') return { entries: number, content: position.content };
  if (operation === 'UPDATE' || operation === 'CLEAR_CONTENT') return { entries: position.entries, content: number };
  return { entries: number, content: number };
}

export const liveDelivery = (event: PublishedEvent, from: EventPosition, codec: EventCursorCodec): Delivery =>
  createDelivery(
    {
      operation: event.operation,
      ...(event.entry && { entry: event.entry }),
      ...(event.content && { content: event.content }),
      expiresAt: event.expires_at_ms === null ? null : new Date(event.expires_at_ms),
      runId: event.run_id ?? null,
      assistantId: event.assistant_id ?? null,
      replayed: false,
      occurredAt: new Date(event.occurred_at_ms),
    },
    positionAfter(event, from),
    codec,
  );
