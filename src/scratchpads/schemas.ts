// What Redis holds, as zod schemas: the payloads of data-plane documents, and how they become what the domain speaks of.
import { z } from 'zod';
import { toInstantText, type InstantText } from '../shared/clock.js';

/** The replaceable content. Never set, cleared or expired: "", "0", null. */
export interface ContentState {
  readonly text: string;
  /** Opaque; the number of the write, so that it changes with every one. */
  readonly version: string;
  readonly updatedAt: InstantText | null;
}

/** One row of the append-only ledger. */
export interface EntryState {
  readonly id: string;
  readonly content: string;
  /** Who appended it, as a label; null for the owner's own API key. */
  readonly author: string | null;
  readonly runId: string | null;
  readonly createdAt: InstantText;
  /** Its number: the order of the ledger, strictly growing. */
  readonly sequence: number;
}

export const emptyContent: ContentState = Object.freeze({ text: '', version: '0', updatedAt: null });

/** `scratchpad:{owner_id}:{scratchpad_id}:content` */
export const storedContent = z
  .object({ content: z.string(), updated_at: z.string(), version: z.string() })
  .transform((stored): ContentState => ({
    text: stored.content,
    version: stored.version,
    updatedAt: toInstantText(stored.updated_at),
  }));

const entryRow = z.object({
  id: z.string(),
  content: z.string(),
  created_at: z.string(),
  sequence: z.number(),
  author: z.string().optional(),
  run_id: z.string().optional(),
});

const toEntryState = (row: z.output<typeof entryRow>): EntryState => ({
  id: row.id,
  content: row.content,
  author: row.author ?? null,
  runId: row.run_id ?? null,
  createdAt: toInstantText(row.created_at),
  sequence: row.sequence,
});

/** An element of `scratchpad:{owner_id}:{scratchpad_id}:entries` */
export const storedEntry = entryRow.transform(toEntryState);

const isOptionalText = (value: unknown): boolean => value === undefined || typeof value === 'string';

/** The same as `entryRow`, without the copy that a schema makes: a page has a thousand of them. */
function isEntryRow(value: unknown): value is z.output<typeof entryRow> {
  const row = (value ?? {}) as Record<keyof z.output<typeof entryRow>, unknown>;
  return (
    typeof row.id === 'string' &&
    typeof row.content === 'string' &&
    typeof row.created_at === 'string' &&
    typeof row.sequence === 'number' &&
    isOptionalText(row.author) &&
    isOptionalText(row.run_id)
  );
}

/** `idempotency:{owner_id}:{scratchpad_id}:{key}` of an append: where its entry is, and no text. */
export const appendRecord = z.object({
  input: z.string(),
  id: z.string(),
  created_at: z.string(),
  sequence: z.number(),
  position: z.number(),
});

/** `idempotency:{owner_id}:{scratchpad_id}:{key}` of a set. */
export const setRecord = z.object({ input: z.string(), version: z.string(), updated_at: z.string() });

/** `scratchpad:{thread_id}:notebook`, the legacy one; last_updated in Unix seconds. */
export const legacyNotebook = z.object({ content: z.string(), last_updated: z.number().optional() });

/** What the scripts PUBLISH. A content over the limit of an event is not in it: whoever needs it reads it. */
export const publishedEvent = z.object({
  operation: z.enum(['UPDATE', 'APPEND', 'CLEAR_CONTENT', 'CLEAR_ENTRIES', 'CLEAR', 'DELETE']),
  /** The number of this write. */
  number: z.number(),
  /** The number of the write before it; 0 when there was no state. */
  previous: z.number(),
  occurred_at_ms: z.number(),
  expires_at_ms: z.number().nullable(),
  entry: storedEntry.optional(),
  content: storedContent.optional(),
  run_id: z.string().optional(),
  assistant_id: z.string().optional(),
});

export type PublishedEvent = z.output<typeof publishedEvent>;

export const parseContent = (row: string | null): ContentState =>
  row === null ? emptyContent : storedContent.parse(JSON.parse(row));

const asEntry = (value: unknown): EntryState => (isEntryRow(value) ? toEntryState(value) : storedEntry.parse(value));

export const parseEntry = (row: string): EntryState => asEntry(JSON.parse(row));

/** @param rows a JSON array of `count` rows. @throws Error when they are something else */
export function parseEntries(rows: string, count: number): EntryState[] {
  const values: unknown = JSON.parse(rows);
  if (!Array.isArray(values) || values.length !== count) throw new Error(`These are not ${count} rows`);
  return values.map(asEntry);
}
