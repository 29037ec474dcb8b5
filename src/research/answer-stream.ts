// Tells the answer of a run from what its model says beside tool calls, while both are still arriving.

export interface AnswerStreamSinks {
  /** Part of the answer, for good. */
  answer(delta: string): void;
  /** Said on the way to it. */
  aside(text: string): void;
}

/**
 * Whether a turn calls tools is known when it has ended, and what a client was told cannot be taken back. So the text of a turn waits until its end, or
 * until it is longer than anybody talks before a call; what was let through by then is part of the answer, whatever comes after it.
 */
export interface AnswerStream {
  /** @param holdBack how many characters wait before the rest streams; Infinity: all, until the turn has ended */
  startTurn(holdBack: number): void;
  push(delta: string): void;
  endTurn(isAnswer: boolean): void;
  /** Everything that went to `answer`, joined. */
  said(): string;
}

export function createAnswerStream(sinks: AnswerStreamSinks): AnswerStream {
  let said = '';
  let held = '';
  let holdBack = Infinity;
  let isStreaming = false;

  function release(text: string): void {
    const begins = !isStreaming && said !== '';
    isStreaming = true;
    const delta = begins ? `\n\n${text}` : text;
    said += delta;
    sinks.answer(delta);
  }

  return {
    startTurn(characters) {
      [held, holdBack, isStreaming] = ['', characters, false];
    },
    push(delta) {
      if (isStreaming) return release(delta);
      held += delta;
      if (held.length < holdBack) return undefined;
      release(held);
      held = '';
      return undefined;
    },
    endTurn(isAnswer) {
      if (held !== '' && isAnswer) release(held);
      else if (held !== '') sinks.aside(held);
      held = '';
    },
    said: () => said,
  };
}
