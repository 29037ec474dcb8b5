// Ids: recognisable, sortable, unique.
import { describe, expect, it } from 'vitest';
import { createId, isId, kindOfId, type IdKind } from '../../../src/shared/ids.js';

const kinds: [IdKind, string][] = [
  ['user', 'user_'],
  ['apiKey', 'key_'],
  ['agentToken', 'agt_'],
  ['thread', 'thread_'],
  ['message', 'msg_'],
  ['scratchpad', 'sp_'],
  ['entry', 'entry_'],
  ['assistant', 'asst_'],
  ['run', 'run_'],
  ['call', 'call_'],
];

describe('ids', () => {
  it.each(kinds)('of kind %s begin with %s and are recognised as that kind alone', (kind, prefix) => {
    const id = createId(kind);
    expect(id).toMatch(new RegExp(`^${prefix}[0-9A-HJKMNP-TV-Z]{26}$`));
    expect(kindOfId(id)).toBe(kind);
    expect(kinds.filter(([other]) => isId(other, id))).toEqual([[kind, prefix]]);
  });

  it('made by one process sort strictly in the order in which they were made, also within a millisecond', () => {
    const ids = Array.from({ length: 10_000 }, () => createId('entry'));
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each([
    ['nothing', ''],
    ['a bare prefix', 'sp_'],
    ['a bare ULID', '01HZZZZZZZZZZZZZZZZZZZZZZZ'],
    ['an unknown prefix', 'pad_01HZZZZZZZZZZZZZZZZZZZZZZZ'],
    ['lower case', 'sp_01hzzzzzzzzzzzzzzzzzzzzzzz'],
    ['a letter that ULIDs do not have', 'sp_01HZZZZZZZZZZZZZZZZZZZZZZU'],
    ['a time after the year 10889', 'sp_81HZZZZZZZZZZZZZZZZZZZZZZZ'],
    ['a character too few', 'sp_01HZZZZZZZZZZZZZZZZZZZZZZ'],
    ['a character too many', 'sp_01HZZZZZZZZZZZZZZZZZZZZZZZZ'],
    ['a line break at the end', 'sp_01HZZZZZZZZZZZZZZZZZZZZZZZ\n'],
    ['space around it', ' sp_01HZZZZZZZZZZZZZZZZZZZZZZZ'],
    ['a pattern of Redis', 'sp_*'],
    ['a colon', 'sp_01HZZZZZZZZZZZZZZZZZZZZZZ:'],
  ])('are not taken for such with %s', (_, text) => {
    expect(kindOfId(text)).toBeUndefined();
  });
});
