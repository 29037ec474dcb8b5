// The judge of the chaos tests is given wrong histories, and refuses each of them.
import { expect, it } from 'vitest';
import { checkHistory } from '../../chaos/support/check-history.js';
import type { PadHistory, Received } from '../../chaos/support/history.js';
import { markText, readMark } from '../../chaos/support/marked-text.js';

const names = ['a-1', 'b-1', 'a-2', 'b-2'];
const entryOf = (name: string) => ({ id: `entry_${name}`, content: markText(name, 40) });

function received(part: Partial<Received>): Received {
  return {
    atMs: 0,
    subscriber: 's',
    connection: 1,
    scratchpadId: 'sp_1',
    cursor: 'c',
    operation: 'APPEND',
    replayed: false,
    entry: null,
    content: null,
    ...part,
  };
}
const told = (name: string): Received => received({ entry: entryOf(name) });
const toldContent = (version: string, text: string): Received =>
  received({ operation: 'UPDATE', content: { version, ...readMark(text) } });

const write = { client: 'a', attempts: 1, scratchpadId: 'sp_1' };
const append = (name: string, startedAtMs: number) => ({
  ...write,
  operation: 'append' as const,
  name,
  idempotencyKey: null,
  entry: entryOf(name),
  startedAtMs,
  answeredAtMs: startedAtMs + 5,
});
const set = (name: string, version: string, expectedVersion: string | null) => ({
  ...write,
  operation: 'set' as const,
  name,
  idempotencyKey: null,
  version,
  expectedVersion,
  startedAtMs: 0,
  answeredAtMs: 1,
});

/** Four entries, two of them with overlapping requests, two rewrites, and two subscribers that saw it all. */
function goodHistory(): PadHistory {
  const body = markText('body-2', 100);
  const seen = [...names.map(told), toldContent('10', markText('body-1', 100)), toldContent('20', body)];
  return {
    appends: names.map((name, index) => append(name, index * 3)),
    sets: [set('body-1', '10', '0'), set('body-2', '20', '10')],
    ledger: names.map(entryOf),
    content: { version: '20', text: body },
    subscribers: new Map([
      ['one', seen],
      ['other', seen],
    ]),
  };
}
const kinds = (history: PadHistory): string[] => [...new Set(checkHistory(history).map(({ kind }) => kind))].sort();
const withSubscriber = (events: Received[]): PadHistory => ({
  ...goodHistory(),
  subscribers: new Map([['one', events]]),
});
const events = (): Received[] => [...goodHistory().subscribers.get('one')!];

it('accepts a history as it should be', () => {
  expect(checkHistory(goodHistory())).toEqual([]);
});

it('accepts an entry whose answer was lost, and a rewrite that a resumed subscriber was not told of', () => {
  const history = goodHistory();
  const resumed = events().filter(({ content }) => content?.version !== '10');
  expect(
    checkHistory({
      ...history,
      appends: history.appends.slice(1),
      sets: history.sets.slice(0, 1),
      subscribers: new Map([['one', resumed]]),
    }),
  ).toEqual([]);
});

it('accepts a large text that was told twice because it was read after its successor', () => {
  const newest = toldContent('20', goodHistory().content.text);
  expect(checkHistory(withSubscriber([...names.map(told), newest, newest]))).toEqual([]);
});

it('refuses a lost acknowledged entry', () => {
  const history = goodHistory();
  const ledger = history.ledger.slice(1);
  expect(kinds({ ...history, ledger, subscribers: new Map([['one', events().slice(1)]]) })).toEqual(['lost']);
});

it('refuses an entry that is in the ledger twice, also under another id', () => {
  const history = goodHistory();
  const subscribers = new Map();
  expect(kinds({ ...history, subscribers, ledger: [...history.ledger, entryOf('a-1')] })).toEqual([
    'duplicate',
    'order',
  ]);
  const again = { ...entryOf('b-2'), id: 'entry_other' };
  expect(kinds({ ...history, subscribers, ledger: [...history.ledger, again] })).toEqual(['duplicate']);
});

it('refuses one entry as the answer to two appends', () => {
  const history = goodHistory();
  const [first, ...others] = history.appends;
  const same = { ...first!, name: 'b-9' };
  expect(kinds({ ...history, appends: [first!, same, ...others] })).toEqual(['duplicate', 'torn']);
});

it('refuses an order that differs between subscribers', () => {
  const swapped = events();
  [swapped[1], swapped[2]] = [swapped[2]!, swapped[1]!];
  expect(kinds(withSubscriber(swapped))).toEqual(['order']);
});

it('refuses a ledger that turns around what happened one after the other', () => {
  const history = goodHistory();
  const ledger = [names[3]!, names[1]!, names[2]!, names[0]!].map(entryOf);
  expect(kinds({ ...history, ledger, subscribers: new Map() })).toEqual(['order']);
});

it('refuses a duplicate, a gap and an entry out of nowhere in what a subscriber was told', () => {
  expect(kinds(withSubscriber([told('a-1'), ...events()]))).toEqual(['duplicate']);
  expect(kinds(withSubscriber(events().toSpliced(1, 1)))).toEqual(['gap']);
  expect(kinds(withSubscriber(events().toSpliced(3, 1)))).toEqual(['gap']);
  expect(kinds(withSubscriber([...events(), told('c-1')]))).toEqual(['unknown']);
});

it('refuses torn texts: in the ledger, in an answer, in an event and as the content', () => {
  const history = goodHistory();
  const half = `${markText('a-1', 40).slice(0, 20)}${markText('b-1', 40).slice(20)}`;
  const subscribers = new Map();
  const tornLedger = [{ id: 'entry_a-1', content: half }, ...history.ledger.slice(1)];
  expect(kinds({ ...history, subscribers, ledger: tornLedger })).toEqual(['torn']);
  const tornAnswer = history.appends.map((append) => ({ ...append, entry: { ...append.entry, content: half } }));
  expect(kinds({ ...history, subscribers, appends: tornAnswer })).toEqual(['torn']);
  expect(kinds(withSubscriber(events().toSpliced(4, 1, toldContent('10', half))))).toEqual(['torn']);
  expect(kinds({ ...history, subscribers, content: { version: '20', text: half } })).toEqual(['torn']);
  expect(kinds({ ...history, subscribers, content: { version: '20', text: '' } })).toEqual(['torn']);
});

it('refuses two texts for one version, and an older content than somebody knew', () => {
  const history = goodHistory();
  expect(kinds({ ...history, subscribers: new Map(), sets: [set('other', '20', null)] })).toEqual(['torn']);
  const content = { version: '10', text: markText('body-1', 100) };
  expect(kinds({ ...history, subscribers: new Map(), content })).toEqual(['stale']);
});

it('refuses a subscriber that got versions backwards, or not the last one', () => {
  const turned = events();
  [turned[4], turned[5]] = [turned[5]!, turned[4]!];
  expect(kinds(withSubscriber(turned))).toEqual(['order']);
  expect(kinds(withSubscriber(events().slice(0, 5)))).toEqual(['gap']);
});

it('refuses a version with two successors, whether the other one was acknowledged or only seen', () => {
  const history = goodHistory();
  const twice = [set('body-1', '10', '0'), set('body-2', '20', '0')];
  expect(kinds({ ...history, sets: twice, subscribers: new Map() })).toEqual(['two successors']);
  const seenOnly = { ...history, sets: [set('body-2', '20', '0')] };
  expect(kinds(seenOnly)).toEqual(['two successors']);
  expect(kinds({ ...history, sets: [set('body-1', '20', null), set('body-2', '20', '10')] })).toContain('duplicate');
});
