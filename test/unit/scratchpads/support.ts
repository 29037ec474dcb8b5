// Events of one pad as Redis publishes them, for tests that need no Redis.
import { createEventCursorCodec } from '../../../src/scratchpads/event-cursor.js';
import type { PublishedEvent } from '../../../src/scratchpads/schemas.js';

export const codec = createEventCursorCodec({ ownerId: 'user_01ARZ3NDEKTSV4RRFFQ69G5FAV', scratchpadId: 'sp_1' });

export const entry = (number: number) => ({
  id: `entry_${number}`,
  content: `${number}`,
  author: null,
  runId: null,
  createdAt: '1970-01-01T00:00:00.000Z',
  sequence: number,
});

/** The append with this number, after the one with `previous`. */
export const append = (number: number, previous = number - 1): PublishedEvent => ({
  operation: 'APPEND',
  number,
  previous,
  occurred_at_ms: 0,
  expires_at_ms: null,
  entry: entry(number),
});
