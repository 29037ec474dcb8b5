// The only place that makes Redis keys and channels, and that reads them back.

/** A scratchpad as Redis knows it: its ids are part of every key, so that no key can be reached from another tenant. */
export interface PadAddress {
  readonly ownerId: string;
  readonly scratchpadId: string;
}

export const contentKey = (pad: PadAddress): string => `scratchpad:${pad.ownerId}:${pad.scratchpadId}:content`;
export const entriesKey = (pad: PadAddress): string => `scratchpad:${pad.ownerId}:${pad.scratchpadId}:entries`;
export const sequenceKey = (pad: PadAddress): string => `sequence:${pad.ownerId}:${pad.scratchpadId}`;

/** @param key as the client chose it; never empty */
export const idempotencyKey = (pad: PadAddress, key: string): string =>
  `idempotency:${pad.ownerId}:${pad.scratchpadId}:${key}`;

/** A sorted set of the pad's idempotency keys that still live, by the time of their end: a purge finds them through it. */
export const idempotencyIndexKey = (pad: PadAddress): string => `idempotency:${pad.ownerId}:${pad.scratchpadId}`;

/** @param id a scratchpad's or a run's */
export const tombstoneKey = (id: string): string => `tombstone:${id}`;
export const runEventsKey = (ownerId: string, runId: string): string => `run:${ownerId}:${runId}:events`;

/** The pub/sub channel that wakes those who read a run's events. */
export const runEventsChannel = (ownerId: string, runId: string): string => `events:${ownerId}:${runId}`;

/** The pub/sub channel on which processes that execute runs hear which of them to stop. */
export const runCancelChannel = 'runs:cancel';

/** What BullMQ puts before every key of the queue of runs. */
export const jobPrefix = 'jobs';
export const jobQueueName = 'runs';
export const jobKey = (runId: string): string => `${jobPrefix}:${jobQueueName}:${runId}`;
/** Lives as long as a process renews it, which is while it executes the run. */
export const jobLockKey = (runId: string): string => `${jobKey(runId)}:lock`;

/** `rate:{key or token id}` counts the requests of one key for a minute, and ends with it. */
export const requestCountPrefix = 'rate';

export const legacyNotebookKey = (threadId: string): string => `scratchpad:${threadId}:notebook`;

/** The pub/sub channel of one pad's events. */
export const eventChannel = (pad: PadAddress): string => `events:${pad.ownerId}:${pad.scratchpadId}`;

/** What one key belongs to. */
export type KeyOwner =
  | { kind: 'scratchpad'; ownerId: string; scratchpadId: string }
  | { kind: 'tombstone'; id: string }
  | { kind: 'thread'; threadId: string }
  | { kind: 'run'; ownerId: string; runId: string }
  | { kind: 'job'; runId: string };

/** SCAN patterns that together match every key above, and maybe more: `keyOwner` decides. */
export const keyPatterns = [
  'scratchpad:*',
  'sequence:*',
  'idempotency:*',
  'tombstone:*',
  'run:*',
  `${jobPrefix}:${jobQueueName}:run_*`,
] as const;

/** Whose key this is, or undefined when it is none of ours. Ids contain no colon; an idempotency key may. */
export function keyOwner(key: string): KeyOwner | undefined {
  const parts = key.split(':');
  const [family = '', first = '', second = '', last] = parts;
  switch (family) {
    case 'scratchpad':
      if (parts.length === 3 && second === 'notebook') return { kind: 'thread', threadId: first };
      if (parts.length === 4 && (last === 'content' || last === 'entries')) {
        return { kind: 'scratchpad', ownerId: first, scratchpadId: second };
      }
      return undefined;
    case 'sequence':
      return parts.length === 3 ? { kind: 'scratchpad', ownerId: first, scratchpadId: second } : undefined;
    case 'idempotency':
      return parts.length >= 3 ? { kind: 'scratchpad', ownerId: first, scratchpadId: second } : undefined;
    case 'tombstone':
      return parts.length === 2 ? { kind: 'tombstone', id: first } : undefined;
    case 'run':
      return parts.length === 4 && last === 'events' ? { kind: 'run', ownerId: first, runId: second } : undefined;
    case jobPrefix:
      // A lock goes with its job, or by itself.
      return parts.length === 3 && first === jobQueueName && second.startsWith('run_')
        ? { kind: 'job', runId: second }
        : undefined;
    default:
      return undefined;
  }
}
