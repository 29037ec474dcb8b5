// The judge of what deletes leave behind is given leftovers, and finds each of them.
import { expect, it } from 'vitest';
import { checkLeftovers, checkRows, type StoredRows } from '../../chaos/support/check-leftovers.js';
import type { AcknowledgedLife } from '../../chaos/support/history.js';

const rows: StoredRows = {
  users: new Set(['user_1']),
  threads: new Map([['thread_1', 'user_1']]),
  scratchpads: new Map([['sp_1', 'user_1']]),
  purgeTasks: 0,
};

it('accepts the keys of a living pad and the tombstone of a dead one', () => {
  const keys = ['scratchpad:user_1:sp_1:content', 'scratchpad:user_1:sp_1:entries', 'sequence:user_1:sp_1'];
  const more = ['idempotency:user_1:sp_1', 'idempotency:user_1:sp_1:a:b', 'scratchpad:thread_1:notebook'];
  expect(checkLeftovers([...keys, ...more, 'tombstone:sp_9', 'jobs:runs:meta'], rows)).toEqual([]);
});

it.each([
  'scratchpad:user_1:sp_9:content',
  'scratchpad:user_2:sp_1:entries',
  'sequence:user_1:sp_9',
  'idempotency:user_1:sp_9',
  'idempotency:user_1:sp_9:a:b',
  'scratchpad:thread_9:notebook',
])('finds %s, which has no row', (key) => {
  expect(checkLeftovers([key], rows)).toEqual([`${key} has no row`]);
});

it('finds a tombstone on a living pad, and purges that are left over', () => {
  expect(checkLeftovers(['tombstone:sp_1'], rows)).toEqual(['tombstone:sp_1 blocks a living pad']);
  expect(checkLeftovers([], { ...rows, purgeTasks: 2 })).toEqual(['2 purges are left over']);
});

const life = (operation: 'create' | 'delete', kind: AcknowledgedLife['kind'], id: string, parentId: string | null) => ({
  operation,
  kind,
  id,
  parentId,
  client: 'a',
  attempts: 1,
  startedAtMs: 0,
  answeredAtMs: 1,
});

it('finds what was acknowledged and is gone, unless it or its parents were deleted', () => {
  const made = [
    life('create', 'user', 'user_2', null),
    life('create', 'thread', 'thread_2', 'user_2'),
    life('create', 'scratchpad', 'sp_2', 'thread_2'),
  ];
  expect(checkRows(made, new Set(), rows)).toEqual([
    'the user user_2 was created and is gone',
    'the thread thread_2 was created and is gone',
    'the scratchpad sp_2 was created and is gone',
  ]);
  expect(checkRows(made, new Set(['user_2']), rows)).toEqual([]);
  expect(checkRows([life('create', 'scratchpad', 'sp_1', 'thread_1')], new Set(), rows)).toEqual([]);
});

it('finds what was deleted and is there', () => {
  const gone = life('delete', 'scratchpad', 'sp_1', 'thread_1');
  expect(checkRows([gone], new Set(['sp_1']), rows)).toEqual(['the scratchpad sp_1 was deleted and is there']);
});
