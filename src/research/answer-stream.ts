// Tells the answer of a run from what its model says before it calls tools, while both are still arriving.

export interface AnswerStreamSinks {
  /** Part of the answer, for good. */
  answer(delta: string): void;
  /** Said on the way to it. */
  aside(text: string): void;
}

/**
 * Whether a turn calls tools is known when it has ended, and what a client was told cannot be taken back. So the text of a turn waits for its end,
 * unless the turn can be nothing but the answer. What goes to `answer` is the text of one turn: the one that a run completes with.
 */
export interface AnswerStream {
  /** @param isConclusion whether it can call nothing, so that its text is the answer as it comes */
  startTurn(isConclusion: boolean): void;
  push(delta: string): void;
  endTurn(isAnswer: boolean): void;
}

export function createAnswerStream(sinks: AnswerStreamSinks): AnswerStream {
  let held = '';
  let streams = false;
  return {
    startTurn(isConclusion) {
      [held, streams] = ['', isConclusion];
    },
    push(delta) {
      if (streams) sinks.answer(delta);
      else held += delta;
    },
    endTurn(isAnswer) {
      if (held !== '' && isAnswer) sinks.answer(held);
      else if (held !== '') sinks.aside(held);
      held = '';
    },
  };
}
