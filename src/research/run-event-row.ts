// One row of `run:{owner_id}:{run_id}:events`, both ways.
import { z } from 'zod';
import { storedContent, storedEntry } from '../scratchpads/schemas.js';
import type { ContentState, EntryState } from '../scratchpads/data-plane.js';
import type { NewRunEvent } from './run-event.js';

const base = { number: z.number(), origin_run_id: z.string(), occurred_at: z.string() };
const state = z.enum(['IN_PROGRESS', 'SUCCESS', 'COMPLETED', 'ERROR']);

const row = z.discriminatedUnion('type', [
  z.object({
    ...base,
    type: z.literal('status'),
    phase: z.enum([
      'QUEUED',
      'STARTED',
      'PLANNING',
      'DELEGATED',
      'RESEARCHING',
      'SCRATCHPAD_UPDATED',
      'WORKER_COMPLETED',
      'WORKER_FAILED',
      'SYNTHESISING',
      'FINISHED',
    ]),
    activity: z.string(),
    state,
    tool: z.string().nullable(),
  }),
  z.object({
    ...base,
    type: z.literal('scratchpad'),
    scratchpad_id: z.string(),
    operation: z.enum(['UPDATE', 'APPEND', 'CLEAR_CONTENT', 'CLEAR_ENTRIES', 'CLEAR', 'EXPIRE', 'DELETE', 'READ']),
    state,
    activity: z.string().nullable(),
    tool: z.string().nullable(),
    entry: storedEntry.optional(),
    content: storedContent.optional(),
    expires_at: z.string().nullable(),
    assistant_id: z.string().nullable(),
    replayed: z.boolean(),
  }),
  z.object({ ...base, type: z.enum(['content', 'reasoning']), delta: z.string() }),
]);

const numbered = z.object({ number: z.number() });

const entryOf = ({ id, content, createdAt, sequence, author, runId }: EntryState): object => ({
  id,
  content,
  created_at: createdAt,
  sequence,
  author: author ?? undefined,
  run_id: runId ?? undefined,
});

/** A content that was never written has no time: the schema of the pad wants one, and no event is about such a content. */
const contentOf = ({ text, version, updatedAt }: ContentState): object => ({
  content: text,
  version,
  updated_at: updatedAt ?? new Date(0).toISOString(),
});

function fieldsOf(event: NewRunEvent): object {
  if ('delta' in event) return { delta: event.delta };
  const { activity, tool } = event;
  if (event.type === 'status') return { phase: event.phase, activity, state: event.state, tool };
  return {
    scratchpad_id: event.scratchpadId,
    operation: event.operation,
    state: event.state,
    activity,
    tool,
    entry: event.entry && entryOf(event.entry),
    content: event.content && contentOf(event.content),
    expires_at: event.expiresAt?.toISOString() ?? null,
    assistant_id: event.assistantId,
    replayed: event.replayed,
  };
}

/** The row's JSON after its number, which Redis gives it. @param isEnd whether it is the last one of its stream */
export function encodeRow(event: NewRunEvent, isEnd: boolean): string {
  const { type, originRunId, occurredAt } = event;
  const fields = { type, origin_run_id: originRunId, occurred_at: occurredAt.toISOString(), ...fieldsOf(event) };
  return `${isEnd ? ',"end":true' : ''},${JSON.stringify(fields).slice(1)}`;
}

/** An event with its place in the stream; undefined when it is of a kind that another version of the server knows. */
export interface NumberedEvent {
  readonly number: number;
  readonly event: NewRunEvent | undefined;
}

export function decodeRow(text: string): NumberedEvent {
  const result = row.safeParse(JSON.parse(text));
  if (!result.success) return { number: numbered.parse(JSON.parse(text)).number, event: undefined };
  const stored = result.data;
  const common = { originRunId: stored.origin_run_id, occurredAt: new Date(stored.occurred_at) };
  const { number } = stored;
  switch (stored.type) {
    case 'status': {
      const { type, phase, activity, tool } = stored;
      return { number, event: { ...common, type, phase, activity, tool, state: stored.state } };
    }
    case 'scratchpad': {
      const { type, operation, activity, tool, replayed, entry, content } = stored;
      const event: NewRunEvent = {
        ...common,
        type,
        scratchpadId: stored.scratchpad_id,
        operation,
        state: stored.state,
        activity,
        tool,
        ...(entry && { entry }),
        ...(content && { content }),
        expiresAt: stored.expires_at === null ? null : new Date(stored.expires_at),
        assistantId: stored.assistant_id,
        replayed,
      };
      return { number, event };
    }
    default:
      return { number, event: { ...common, type: stored.type, delta: stored.delta } };
  }
}
