import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildContext, type Context } from '../../../src/research/conversation/build-context.js';
import type { StoredMessage } from '../../../src/research/conversation/conversation-message.js';
import { closingResults, toUnits } from '../../../src/research/conversation/protocol-groups.js';
import { estimateMessageTokens } from '../../../src/research/conversation/token-estimate.js';
import type { ProviderMessage } from '../../../src/research/provider/provider-types.js';

const system = 'You are a careful researcher.';

type Draft = { ordinary: 'user' | 'assistant'; text: string } | { calls: string[]; text: string; results: string[] };

const anyText = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 60 }) },
  { weight: 1, arbitrary: fc.string({ minLength: 200, maxLength: 1500, unit: 'grapheme' }) },
);
const anyDraft: fc.Arbitrary<Draft> = fc.oneof(
  fc.record({ ordinary: fc.constantFrom('user' as const, 'assistant' as const), text: anyText }),
  fc.record({
    // Few ids: they come again in later messages, which is allowed.
    calls: fc.uniqueArray(fc.constantFrom('call_1', 'call_2', 'call_3', 'call_4'), { minLength: 1 }),
    text: fc.string({ maxLength: 20 }),
    results: fc.array(anyText, { minLength: 4, maxLength: 4 }),
  }),
);

function toStored(drafts: Draft[]): StoredMessage[] {
  let count = 0;
  // Every text begins with a number of its own, so that order can be read off the outcome.
  const mark = () => `#${String(count++).padStart(3, '0')} `;
  return drafts.flatMap((draft): StoredMessage[] => {
    if ('ordinary' in draft) {
      const content = mark() + draft.text;
      return [{ id: `m${count}`, role: draft.ordinary, content }];
    }
    const caller: StoredMessage = {
      id: `m${count}`,
      role: 'assistant',
      content: mark() + draft.text,
      toolCalls: draft.calls.map((id) => ({ id, name: 'perform_web_search', arguments: '{"query":"x"}' })),
    };
    const results = draft.calls.map((toolCallId, place): StoredMessage => ({
      id: `m${count}r${place}`,
      role: 'tool',
      toolCallId,
      content: mark() + draft.results[place]!,
      isError: false,
    }));
    return [caller, ...results];
  });
}

const task: StoredMessage = { id: 'task', role: 'user', content: 'TASK: When is high tide?' };
const anyConversation = fc
  .tuple(fc.array(anyDraft, { maxLength: 12 }), fc.nat())
  .map(([drafts, place]): StoredMessage[] => {
    const before = drafts.slice(0, place % (drafts.length + 1));
    const all = toStored(drafts);
    const at = toStored(before).length;
    return [...all.slice(0, at), task, ...all.slice(at)];
  });

const tokensOf = (messages: ProviderMessage[]) =>
  messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0);
const marksIn = (messages: readonly { content: string }[]) =>
  messages.flatMap((message) => message.content.match(/#\d{3} /g) ?? []);

/** Every call answered exactly once, directly after its message, in call order; and no answer without a call. */
function expectWholeGroups(messages: readonly ProviderMessage[]): void {
  const rest = [...messages];
  for (let message = rest.shift(); message; message = rest.shift()) {
    expect(message.role).not.toBe('tool');
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
    const answers = rest.splice(0, calls.length);
    expect(answers.map((answer) => (answer.role === 'tool' ? answer.toolCallId : 'none'))).toEqual(
      calls.map((call) => call.id),
    );
  }
}

const contextOf = (messages: StoredMessage[], budgetTokens: number) =>
  buildContext({ system, taskId: 'task', messages, budgetTokens });

/** Refused only when what must stay is too large by itself, with the last results reduced to almost nothing. */
function expectInevitable(messages: StoredMessage[], budgetTokens: number): void {
  const last = toUnits(messages).at(-1)!;
  const spoken = last.kind === 'group' ? last.caller : last.message;
  const results = last.kind === 'group' ? last.results : [];
  const least = tokensOf([{ role: 'system', content: system }, ...(spoken === task ? [] : [task]), spoken]);
  const sixtyEach = results.map((result) => Math.min(tokensOf([result]), 80)).reduce((sum, tokens) => sum + tokens, 0);
  expect(least + sixtyEach).toBeGreaterThan(budgetTokens);
}

function expectSound(messages: StoredMessage[], sent: ProviderMessage[], budgetTokens: number): void {
  expect(tokensOf(sent)).toBeLessThanOrEqual(budgetTokens);
  expectWholeGroups(sent);
  expect(sent[0]).toEqual({ role: 'system', content: system });
  expect(sent.some((message) => message.role === 'user' && message.content.includes(task.content))).toBe(true);
  expect(sent.at(-1)!.content).toContain(messages.at(-1)!.content.slice(0, 8));
  const marks = marksIn(sent);
  expect(marks).toEqual(marks.toSorted());
}

const sentOf = (context: Context): ProviderMessage[] => (context.kind === 'fits' ? context.messages : []);

describe('a context', () => {
  it('keeps groups whole, the order, the system message, the task and what came last, within any budget', () => {
    const seen = { overflow: 0, cut: 0 };
    fc.assert(
      fc.property(anyConversation, fc.integer({ min: 30, max: 3000 }), (messages, budgetTokens) => {
        const context = contextOf(messages, budgetTokens);
        if (context.kind === 'overflow') {
          seen.overflow++;
          expectInevitable(messages, budgetTokens);
        } else {
          expectSound(messages, context.messages, budgetTokens);
          if (marksIn(context.messages).length < marksIn(messages).length) seen.cut++;
        }
      }),
      { numRuns: 1500 },
    );
    expect(seen.overflow).toBeGreaterThan(20);
    expect(seen.cut).toBeGreaterThan(100);
  });

  it('drops the oldest first: what is left is the task and an unbroken end of the conversation', () => {
    fc.assert(
      fc.property(anyConversation, fc.integer({ min: 60, max: 2000 }), (messages, budgetTokens) => {
        const context = contextOf(messages, budgetTokens);
        fc.pre(context.kind === 'fits');
        const marks = marksIn(sentOf(context));
        expect(marks).toEqual(marksIn(messages).slice(-marks.length || Infinity));
      }),
      { numRuns: 500 },
    );
  });

  it('with room enough leaves nothing out and changes no text', () => {
    fc.assert(
      fc.property(anyConversation, (messages) => {
        const context = contextOf(messages, 1_000_000);
        const said = sentOf(context)
          .map((message) => message.content)
          .join('\n\n');
        expect(said).toBe([system, ...messages.map((m) => m.content)].join('\n\n'));
      }),
    );
  });

  it('merges ordinary neighbours of one role and never a message of the tool protocol', () => {
    const call = { id: 'a', name: 'read_scratchpad', arguments: '{}' };
    const context = contextOf(
      [
        task,
        { id: '1', role: 'user', content: 'And low tide?' },
        { id: '2', role: 'assistant', content: 'I look.' },
        { id: '3', role: 'assistant', content: 'Now.', toolCalls: [call] },
        { id: '4', role: 'tool', toolCallId: 'a', content: 'A', isError: false },
        { id: '5', role: 'assistant', content: '', toolCalls: [{ ...call, id: 'b' }] },
        { id: '6', role: 'tool', toolCallId: 'b', content: 'B', isError: false },
        { id: '7', role: 'assistant', content: 'Noon.' },
        { id: '8', role: 'assistant', content: 'Or so.' },
      ],
      10_000,
    );
    expect(context).toEqual({
      kind: 'fits',
      messages: [
        { role: 'system', content: system },
        { role: 'user', content: `${task.content}\n\nAnd low tide?` },
        { role: 'assistant', content: 'I look.' },
        { role: 'assistant', content: 'Now.', toolCalls: [call] },
        { role: 'tool', toolCallId: 'a', content: 'A' },
        { role: 'assistant', content: '', toolCalls: [{ ...call, id: 'b' }] },
        { role: 'tool', toolCallId: 'b', content: 'B' },
        { role: 'assistant', content: 'Noon.\n\nOr so.' },
      ],
    });
  });

  it('shortens long results of the last group, with a note, and leaves short ones whole', () => {
    const calls = ['a', 'b', 'c'].map((id) => ({ id, name: 'read_web_page', arguments: '{}' }));
    const answer = (toolCallId: string, content: string): StoredMessage => ({
      id: toolCallId,
      role: 'tool',
      toolCallId,
      content,
      isError: false,
    });
    const messages: StoredMessage[] = [
      task,
      { id: '1', role: 'assistant', content: '', toolCalls: calls },
      answer('a', '潮'.repeat(5000)),
      answer('b', 'short'),
      answer('c', 'x'.repeat(9000)),
    ];
    const context = contextOf(messages, 1000);
    const [a, b, c] = sentOf(context).slice(-3);
    expect(a!.content).toMatch(/^潮+\n\[shortened to fit the context: the first \d+ of 5000 characters\./);
    expect(b!.content).toBe('short');
    expect(c!.content).toMatch(/^x+\n\[shortened to fit the context/);
    expect(tokensOf(sentOf(context))).toBeGreaterThan(950);
    expect(contextOf(messages, 150)).toEqual({ kind: 'overflow' });
  });
});

describe('a conversation that a crash left behind', () => {
  it('becomes whole again, whatever is missing: at once for the request, and for good with the closing results', () => {
    let holes = 0;
    fc.assert(
      fc.property(anyConversation, fc.infiniteStream(fc.boolean()), (messages, keep) => {
        const torn = messages.filter((message) => message.role !== 'tool' || keep.next().value);
        holes += messages.length - torn.length;
        const request = contextOf(torn, 1_000_000);
        expectWholeGroups(sentOf(request));
        const closed: StoredMessage[] = [
          ...torn,
          ...closingResults(torn).map((result, place) => ({ ...result, id: `closing${place}` })),
        ];
        expect(closingResults(closed)).toEqual([]);
        // Closing changes nothing about what a provider sees, only that it is stored.
        expect(contextOf(closed, 1_000_000)).toEqual(request);
      }),
      { numRuns: 500 },
    );
    expect(holes).toBeGreaterThan(100);
  });

  it('gets its answer back in place when somebody spoke in between, and loses an answer to nothing', () => {
    const caller: StoredMessage = {
      id: '1',
      role: 'assistant',
      content: '',
      toolCalls: ['a', 'b'].map((id) => ({ id, name: 'read_web_page', arguments: '{}' })),
    };
    const b: StoredMessage = { id: '2', role: 'tool', toolCallId: 'b', content: 'B', isError: false };
    const a: StoredMessage = { id: '4', role: 'tool', toolCallId: 'a', content: 'A', isError: false };
    const context = contextOf(
      [
        task,
        caller,
        b,
        { id: '3', role: 'user', content: 'Still there?' },
        a,
        { ...a, id: '5', content: 'A again' },
        { ...a, id: '6', toolCallId: 'nothing' },
      ],
      10_000,
    );
    const said = sentOf(context)
      .slice(2)
      .map((message) => message.content);
    expect(said).toEqual(['', 'A', 'B', 'Still there?']);
  });
});
