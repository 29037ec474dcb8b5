// One open subscription: everything that can end it, and the promise that its source is freed exactly once whichever comes first.
import type { ExecutionResult } from 'graphql';
import type { Seat } from '../../shared/divertible.js';
import type { ResultStream, SharedResult } from './shared-results.js';

export interface OpenSubscription extends AsyncIterableIterator<ExecutionResult, undefined> {
  /** Where results are shared: see ResultStream. What a seat takes is not delivered by this; its owner counts it. */
  divert?: (seat: Seat<SharedResult>) => void;
  /** Ends it from the server's side: with `finalResult` delivered last, or without. */
  end(finalResult?: ExecutionResult): void;
  return(): Promise<IteratorResult<ExecutionResult, undefined>>;
}

interface Dependencies {
  source: AsyncIterator<ExecutionResult> & Pick<ResultStream, 'divert'>;
  /** Called once, when it is over for whatever reason. */
  onClose: () => void;
  onDeliver: () => void;
  /** What the source says, fit for the client. */
  present: (result: ExecutionResult) => ExecutionResult;
  /** The last result of a source that failed. */
  describeFailure: (error: unknown) => ExecutionResult;
}

type Step = IteratorResult<ExecutionResult, undefined>;

const done: Step = { done: true, value: undefined };

/**
 * Wraps a source of results. It pulls only when it is asked, so what slows the consumer down slows the source down. A source
 * that fails, or `end(result)`, becomes one last result and then the end: consumers never see an exception.
 */
export function openSubscription({
  source,
  onClose,
  onDeliver,
  present,
  describeFailure,
}: Dependencies): OpenSubscription {
  let lastResult: ExecutionResult | undefined;
  let closed = false;
  /** Wakes a consumer that waits for the source: a source that waits inside may never answer a return(). */
  let wake: ((step: Step) => void) | undefined;

  const deliver = (result: ExecutionResult): Step => {
    onDeliver();
    return { done: false, value: result };
  };

  /** What a consumer gets after the end: the last result once, if there is one. */
  const remaining = (): Step => {
    const result = lastResult;
    lastResult = undefined;
    return result ? deliver(result) : done;
  };

  function close(sourceIsOver: boolean, result?: ExecutionResult): void {
    if (closed) return;
    closed = true;
    lastResult = result;
    onClose();
    // A return() that fails has nobody to tell: the consumer is gone or has its last result.
    if (!sourceIsOver) Promise.resolve(source.return?.()).catch(() => undefined);
    const waiting = wake;
    wake = undefined;
    waiting?.(remaining());
  }

  async function pull(resolve: (step: Step) => void): Promise<void> {
    try {
      const step = await source.next();
      // Somebody ended it meanwhile and has answered already.
      if (closed) return;
      if (step.done) {
        close(true);
        return;
      }
      wake = undefined;
      resolve(deliver(present(step.value)));
    } catch (error) {
      if (!closed) close(false, describeFailure(error));
    }
  }

  return {
    next() {
      if (closed) return Promise.resolve(remaining());
      return new Promise<Step>((resolve) => {
        wake = resolve;
        void pull(resolve);
      });
    },

    return() {
      close(false);
      lastResult = undefined;
      return Promise.resolve(done);
    },

    end(finalResult) {
      close(false, finalResult);
    },

    // Nothing between: what is closed here has returned the source, which tells nothing more.
    ...(source.divert && { divert: source.divert }),

    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
