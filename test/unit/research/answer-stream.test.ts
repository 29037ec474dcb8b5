import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAnswerStream } from '../../../src/research/answer-stream.js';

function record() {
  const told: string[] = [];
  const stream = createAnswerStream({
    answer: (delta) => told.push(`answer: ${delta}`),
    aside: (text) => told.push(`aside: ${text}`),
  });
  return { told, stream };
}

describe('an answer stream', () => {
  it('holds a turn back until its end, however long it talks, and tells then which it was', () => {
    const { told, stream } = record();
    const plan = 'I look it up, and this is how. '.repeat(1000);
    stream.startTurn(false);
    stream.push(plan);
    stream.push('Now.');
    expect(told).toEqual([]);
    stream.endTurn(false);
    stream.startTurn(false);
    stream.push('It is so.');
    stream.endTurn(true);
    expect(told).toEqual([`aside: ${plan}Now.`, 'answer: It is so.']);
  });

  it('streams a turn that can be nothing but the answer', () => {
    const { told, stream } = record();
    stream.startTurn(true);
    stream.push('It ');
    expect(told).toEqual(['answer: It ']);
    stream.push('is so.');
    stream.endTurn(true);
    expect(told).toEqual(['answer: It ', 'answer: is so.']);
  });

  it('says nothing for a turn without text, and forgets one that never ended', () => {
    const { told, stream } = record();
    stream.startTurn(false);
    stream.endTurn(true);
    stream.startTurn(false);
    stream.push('lost');
    stream.startTurn(true);
    stream.endTurn(true);
    expect(told).toEqual([]);
  });

  it('tells every text of turns that end exactly once, in order, and as the answer only the answer', () => {
    const turn = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 6 });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 6 }), turn, fc.boolean(), (before, last, isConclusion) => {
        let answer = '';
        let aside = '';
        const stream = createAnswerStream({
          answer: (delta) => void (answer += delta),
          aside: (text) => void (aside += text),
        });
        for (const deltas of before) {
          stream.startTurn(false);
          for (const delta of deltas) stream.push(delta);
          stream.endTurn(false);
        }
        stream.startTurn(isConclusion);
        for (const delta of last) stream.push(delta);
        stream.endTurn(true);
        expect(aside).toBe(before.flat().join(''));
        expect(answer).toBe(last.join(''));
      }),
    );
  });
});
