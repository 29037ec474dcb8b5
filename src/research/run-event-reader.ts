// One subscriber of a stream. It reads the list at its consumer's pace, a page at a time; the channel only wakes it. So nothing can be
// lost or come twice, whatever drops, and no more than a page waits in memory for a consumer that is slow.
import { DomainError } from '../shared/errors.js';
import type { RunEventRecord } from './run-event.js';
import type { EventPage } from './run-event-log.js';
import type { NumberedEvent } from './run-event-row.js';

/** Where events come from, and what ends them. */
export interface ReaderSource {
  /** @throws DomainError UNAVAILABLE */
  read(after: number): Promise<EventPage>;
  /** The event as this subscriber sees it; undefined when it is none of its. */
  toRecord(event: NumberedEvent): RunEventRecord | undefined;
  /** Whether nothing follows an event that is the last one of a delegated run. */
  isLast(event: RunEventRecord): boolean;
  /**
   * Asked when the stream says nothing and has not ended: whether SQL knows that nothing will come any more. May write the last event
   * that is missing. @param quietMs how long Redis has been there and the stream silent, as far as this subscriber knows
   * @throws DomainError UNAVAILABLE
   */
  isOver(page: EventPage, quietMs: number): Promise<boolean>;
  /** The subscriber is done. */
  leave(): void;
}

export interface RunEventReader extends AsyncIterableIterator<RunEventRecord> {
  /** There may be something to read. */
  wake(): void;
  /** Completes after what was read already. */
  complete(): void;
}

/** The last event of a stream may never be written: SQL is asked, ever more rarely, while the stream says nothing. */
const shortestCheckMs = 4000;
const longestCheckMs = 30_000;
const shortestRetryMs = 100;
const longestRetryMs = 2000;

type Result = IteratorResult<RunEventRecord, undefined>;
const finished: Result = { done: true, value: undefined };

/** @param start the number behind which to begin */
export function createRunEventReader(source: ReaderSource, start: number): RunEventReader {
  const queue: RunEventRecord[] = [];
  let position = start;
  let isOver = false;
  let wakes = 0;
  let nextCheckAt = 0;
  let checks = 0;
  let quietSince = Date.now();
  let failures = 0;
  let stopWaiting: (() => void) | undefined;
  /** Calls of `next` are answered one after the other. */
  let turn: Promise<unknown> = Promise.resolve();

  const end = (): void => {
    if (isOver) return;
    isOver = true;
    source.leave();
    stopWaiting?.();
  };

  /** Until something happens, or for this long. */
  const wait = (longestMs: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => stopWaiting?.(), Math.max(longestMs, 0));
      timer.unref();
      stopWaiting = () => {
        clearTimeout(timer);
        stopWaiting = undefined;
        resolve();
      };
    });

  const take = ({ state, events }: EventPage): void => {
    if (events.length > 0) {
      quietSince = Date.now();
      checks = 0;
    }
    for (const numbered of events) {
      position = numbered.number;
      const record = source.toRecord(numbered);
      if (!record) continue;
      queue.push(record);
      if (source.isLast(record)) return end();
    }
    if (state === 'ended') end();
  };

  /** Reads one page, or waits. */
  async function advance(): Promise<void> {
    const wakesBefore = wakes;
    const page = await source.read(position);
    if (isOver) return;
    take(page);
    if (isOver || queue.length > 0 || page.state === 'more' || wakes !== wakesBefore) return;
    if (Date.now() >= nextCheckAt) {
      nextCheckAt = Date.now() + Math.min(shortestCheckMs * 2 ** checks, longestCheckMs);
      checks += 1;
      if (await source.isOver(page, Date.now() - quietSince)) return end();
      if (isOver || wakes !== wakesBefore) return;
    }
    await wait(nextCheckAt - Date.now());
  }

  async function fill(): Promise<void> {
    for (;;) {
      if (queue.length > 0 || isOver) return;
      try {
        await advance();
        failures = 0;
      } catch (error) {
        if (!(error instanceof DomainError && error.code === 'UNAVAILABLE')) {
          end();
          throw error;
        }
        // A store is away: the subscription stays, and goes on when it is back.
        failures += 1;
        quietSince = Date.now();
        await wait(Math.min(shortestRetryMs * 2 ** failures, longestRetryMs));
      }
    }
  }

  return {
    wake() {
      wakes += 1;
      stopWaiting?.();
    },
    complete: end,
    next() {
      const result = turn.then(async (): Promise<Result> => {
        await fill();
        const value = queue.shift();
        return value ? { done: false, value } : finished;
      });
      turn = result.catch(() => undefined);
      return result;
    },
    return() {
      queue.length = 0;
      end();
      return Promise.resolve(finished);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
