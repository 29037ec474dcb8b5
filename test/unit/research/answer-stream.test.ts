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
  it('holds a turn back until its end, and tells then which it was', () => {
    const { told, stream } = record();
    stream.startTurn(Infinity);
    stream.push('I look ');
    stream.push('it up.');
    expect(told).toEqual([]);
    stream.endTurn(false);
    stream.startTurn(Infinity);
    stream.push('It is so.');
    stream.endTurn(true);
    expect(told).toEqual(['aside: I look it up.', 'answer: It is so.']);
    expect(stream.said()).toBe('It is so.');
  });

  it('streams what is longer than a preamble, and keeps it as part of the answer', () => {
    const { told, stream } = record();
    stream.startTurn(5);
    for (const delta of ['ab', 'cd', 'ef', 'g']) stream.push(delta);
    expect(told).toEqual(['answer: abcdef', 'answer: g']);
    stream.endTurn(false);
    stream.startTurn(0);
    stream.push('h');
    stream.endTurn(true);
    expect(told.slice(2)).toEqual(['answer: \n\nh']);
    expect(stream.said()).toBe('abcdefg\n\nh');
  });

  it('says nothing for a turn without text, and forgets one that never ended', () => {
    const { told, stream } = record();
    stream.startTurn(Infinity);
    stream.endTurn(true);
    stream.startTurn(Infinity);
    stream.push('lost');
    stream.startTurn(0);
    stream.endTurn(true);
    expect(told).toEqual([]);
  });

  it('tells every text of turns that end exactly once, in order, and its answers joined are what was said', () => {
    const turn = fc.record({
      deltas: fc.array(fc.string({ minLength: 1, maxLength: 8 }), { maxLength: 6 }),
      holdBack: fc.constantFrom(0, 3, 10, Infinity),
      isAnswer: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 6 }), (turns) => {
        let answers = '';
        const texts: string[] = [];
        const stream = createAnswerStream({
          answer(delta) {
            answers += delta;
            texts.push(delta);
          },
          aside: (text) => texts.push(text),
        });
        for (const { deltas, holdBack, isAnswer } of turns) {
          const before = texts.length;
          const hadAnswer = answers !== '';
          stream.startTurn(holdBack);
          for (const delta of deltas) stream.push(delta);
          stream.endTurn(isAnswer);
          const told = texts.slice(before).join('');
          const said = deltas.join('');
          expect([said, hadAnswer && said !== '' ? `\n\n${said}` : said]).toContain(told);
        }
        expect(stream.said()).toBe(answers);
      }),
    );
  });
});
