// What clients saw of one scratchpad: the rows of acknowledged.jsonl and received.jsonl, and what the checker is given of them.
import type { TextMark } from './marked-text.js';

/** A write that was answered with success. Times are of one clock, in milliseconds. */
export interface AcknowledgedWrite {
  /** Of the first attempt. */
  startedAtMs: number;
  answeredAtMs: number;
  client: string;
  attempts: number;
  scratchpadId: string;
}

export interface AcknowledgedAppend extends AcknowledgedWrite {
  operation: 'append';
  name: string;
  idempotencyKey: string | null;
  entry: { id: string; content: string };
}

export interface AcknowledgedSet extends AcknowledgedWrite {
  operation: 'set';
  name: string;
  idempotencyKey: string | null;
  version: string;
  /** null when it would have been written in any case. */
  expectedVersion: string | null;
}

/** Something was made or deleted, or a text was written to a pad that may be deleted. */
export interface AcknowledgedLife extends Omit<AcknowledgedWrite, 'scratchpadId'> {
  operation: 'create' | 'delete';
  kind: 'user' | 'thread' | 'scratchpad';
  id: string;
  /** Its thread, or its user: what takes it along when it goes. */
  parentId: string | null;
}

export type Acknowledged = AcknowledgedAppend | AcknowledgedSet | AcknowledgedLife;

/** One event as one subscriber got it. */
export interface Received {
  atMs: number;
  subscriber: string;
  /** Counts the connections of this subscriber. */
  connection: number;
  scratchpadId: string;
  cursor: string;
  operation: string;
  replayed: boolean;
  entry: { id: string; content: string } | null;
  /** The text itself would fill disks. */
  content: ({ version: string } & TextMark) | null;
}

export interface LedgerEntry {
  id: string;
  content: string;
}

/** Everything about one pad, once all is quiet. */
export interface PadHistory {
  appends: readonly AcknowledgedAppend[];
  sets: readonly AcknowledgedSet[];
  /** As the store has it at the end. */
  ledger: readonly LedgerEntry[];
  content: { version: string; text: string };
  /** What each subscriber got that asked for everything from the start, and gave back its last cursor after each interruption. */
  subscribers: ReadonlyMap<string, readonly Received[]>;
}
