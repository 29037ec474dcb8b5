import { describe, expect, it } from 'vitest';
import type { FinishReason, ProviderTurn, ToolCall } from '../../../src/research/provider/provider-types.js';
import { nextStep, type LoopState } from '../../../src/research/step.js';

let count = 0;
const call = (name = 'read_scratchpad', text = '{}'): ToolCall => ({ id: `c${++count}`, name, arguments: text });
const turn = (toolCalls: ToolCall[], finishReason?: FinishReason, text = ''): ProviderTurn => ({
  text,
  toolCalls,
  finishReason: finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop'),
});
const state = (rest: Partial<LoopState>): LoopState => ({
  maxTurns: 8,
  turnsTaken: 1,
  openTurn: undefined,
  earlierCalls: [],
  ...rest,
});
const planOf = (step: ReturnType<typeof nextStep>) =>
  step.kind === 'answer-calls'
    ? step.calls.map((planned) => (planned.kind === 'refuse' ? planned.code : 'execute'))
    : step;

describe('the next step', () => {
  it('is to ask, with tools, while turns are left', () => {
    expect(nextStep(state({ turnsTaken: 0 }))).toEqual({ kind: 'ask', turnNumber: 1, offerTools: true });
    expect(nextStep(state({ turnsTaken: 6 }))).toEqual({ kind: 'ask', turnNumber: 7, offerTools: true });
  });

  it('is to ask without tools in the last permitted turn', () => {
    expect(nextStep(state({ turnsTaken: 7 }))).toEqual({ kind: 'ask', turnNumber: 8, offerTools: false });
    expect(nextStep(state({ turnsTaken: 0, maxTurns: 1 }))).toEqual({ kind: 'ask', turnNumber: 1, offerTools: false });
  });

  it('is to stop when no turn is left', () => {
    expect(nextStep(state({ turnsTaken: 8 }))).toMatchObject({ kind: 'stop', code: 'MAX_TURNS_EXCEEDED' });
  });

  it('is to finish with the text of a turn without calls, also of the last one', () => {
    const openTurn = turn([], 'stop', 'Noon.');
    expect(nextStep(state({ turnsTaken: 8, openTurn }))).toEqual({ kind: 'finish', text: 'Noon.' });
  });

  it('is to answer every call, in order', () => {
    const calls = [call('a'), call('b'), call('c')];
    const step = nextStep(state({ openTurn: turn(calls) }));
    expect(step).toEqual({ kind: 'answer-calls', calls: calls.map((one) => ({ kind: 'execute', call: one })) });
  });

  it('executes no call of a turn that was cut off, and none in the last turn', () => {
    expect(planOf(nextStep(state({ openTurn: turn([call(), call()], 'length') })))).toEqual([
      'TRUNCATED_CALL',
      'TRUNCATED_CALL',
    ]);
    expect(planOf(nextStep(state({ turnsTaken: 8, openTurn: turn([call()]) })))).toEqual(['NO_TURNS_LEFT']);
  });

  it('is to stop when the answer itself was cut off', () => {
    const step = nextStep(state({ openTurn: turn([], 'length', 'Noo') }));
    expect(step).toMatchObject({ kind: 'stop', code: 'PROVIDER_ERROR' });
  });

  it('refuses the third identical call in a row and every further one, over turns and within one', () => {
    const same = () => call('perform_web_search', '{"query": "tides", "n": 1}');
    const rewritten = call('perform_web_search', '{"n":1,"query":"tides"}');
    expect(planOf(nextStep(state({ openTurn: turn([same()]), earlierCalls: [rewritten, same()] })))).toEqual([
      'REPEATED_CALL',
    ]);
    expect(planOf(nextStep(state({ openTurn: turn([same(), same(), rewritten, same()]) })))).toEqual([
      'execute',
      'execute',
      'REPEATED_CALL',
      'REPEATED_CALL',
    ]);
  });

  it('does not mind calls that differ, or that something else stands between', () => {
    const same = () => call('perform_web_search', '{"query":"tides"}');
    const others = [call('perform_web_search', '{"query":"moon"}'), call('read_scratchpad')];
    for (const other of others) {
      const openTurn = turn([same()]);
      expect(planOf(nextStep(state({ openTurn, earlierCalls: [same(), other] })))).toEqual(['execute']);
      expect(planOf(nextStep(state({ openTurn, earlierCalls: [other, same()] })))).toEqual(['execute']);
    }
  });
});
