// Keeps what clients saw in memory, for the judge, and in two files, for anybody else.
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Acknowledged, AcknowledgedAppend, AcknowledgedLife, AcknowledgedSet, Received } from './history.js';

export interface Recorder {
  readonly folder: string;
  acknowledge(row: Acknowledged): void;
  receive(row: Received): void;
  readonly appends: readonly AcknowledgedAppend[];
  readonly sets: readonly AcknowledgedSet[];
  readonly lives: readonly AcknowledgedLife[];
  /** By subscriber. */
  readonly received: ReadonlyMap<string, readonly Received[]>;
  /** Forgets what is in memory: the files keep it. */
  forget(): void;
  readonly counts: { acknowledged: number; received: number };
  close(): Promise<void>;
}

/** @param folder gets acknowledged.jsonl and received.jsonl */
export async function createRecorder(folder: string): Promise<Recorder> {
  await mkdir(folder, { recursive: true });
  const acknowledgedFile = createWriteStream(join(folder, 'acknowledged.jsonl'));
  const receivedFile = createWriteStream(join(folder, 'received.jsonl'));
  const appends: AcknowledgedAppend[] = [];
  const sets: AcknowledgedSet[] = [];
  const lives: AcknowledgedLife[] = [];
  const received = new Map<string, Received[]>();
  const counts = { acknowledged: 0, received: 0 };
  const ended = (file: typeof receivedFile): Promise<void> => new Promise((resolve) => file.end(() => resolve()));

  return {
    folder,
    appends,
    sets,
    lives,
    received,
    counts,
    acknowledge(row) {
      counts.acknowledged += 1;
      acknowledgedFile.write(`${JSON.stringify(row)}\n`);
      if (row.operation === 'append') appends.push(row);
      else if (row.operation === 'set') sets.push(row);
      else lives.push(row);
    },
    receive(row) {
      counts.received += 1;
      receivedFile.write(`${JSON.stringify(row)}\n`);
      const rows = received.get(row.subscriber);
      if (rows) rows.push(row);
      else received.set(row.subscriber, [row]);
    },
    forget() {
      appends.length = 0;
      sets.length = 0;
      lives.length = 0;
      received.clear();
    },
    async close() {
      await Promise.all([ended(acknowledgedFile), ended(receivedFile)]);
    },
  };
}
