// The way of events into one stream: in order, off the run's path, and never in its way.
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';
import type { NewRunEvent, RunEventPublisher } from './run-event.js';
import type { RunEventLog, StreamAddress } from './run-event-log.js';

/** What may wait while Redis is away, in characters of text and in events; then the oldest are given up. While it is there, nothing is. */
const mostWaitingText = 4 * 1024 * 1024;
const mostWaiting = 10_000;
/** Of one event, in UTF-16 code units: what is longer becomes several. */
const longestDelta = 65_536;
/** Pieces of text wait this long for the next ones, to become one event. */
const gatherMs = 40;
const eventsAtOnce = 100;
const textAtOnce = 1024 * 1024;
const shortestRetryMs = 100;
const longestRetryMs = 2000;
/** Redis may be away this long; then what waits is given up. */
const giveUpMs = 300_000;
/** Nobody waits longer for a Redis that is away; the events go on being tried behind their back. */
const flushLimitMs = 2000;

type TextEvent = Extract<NewRunEvent, { delta: string }>;
const isText = (event: NewRunEvent): event is TextEvent => 'delta' in event;

const sizeOf = (event: NewRunEvent): number =>
  isText(event)
    ? event.delta.length
    : 200 + (event.type === 'scratchpad' ? (event.content?.text ?? event.entry?.content ?? '').length : 0);

/** In pieces that one event may hold, none of which begins or ends within a surrogate pair. */
function piecesOf(delta: string): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < delta.length;) {
    const end = start + longestDelta;
    const splitsPair = /^[\uD800-\uDBFF][\uDC00-\uDFFF]/.test(delta.slice(end - 1, end + 1));
    pieces.push(delta.slice(start, splitsPair ? end - 1 : end));
    start += pieces.at(-1)?.length ?? longestDelta;
  }
  return pieces;
}

interface Dependencies {
  log: Pick<RunEventLog, 'append' | 'read'>;
  logger: Logger;
  /** Aborted when the process ends: nothing is tried any more. */
  ending: AbortSignal;
}

export function createRunEventPublisher(
  stream: StreamAddress,
  { log, logger, ending }: Dependencies,
): RunEventPublisher {
  let waiting: NewRunEvent[] = [];
  let waitingText = 0;
  let isOver = false;
  let isAway = false;
  let hasGivenUp = false;
  let lastKnown: number | undefined;
  let gathering: NodeJS.Timeout | undefined;
  let writing: Promise<void> | undefined;

  const giveUpOldest = (): void => {
    if (!isAway) return;
    while (waiting.length > mostWaiting || waitingText > mostWaitingText) {
      const [oldest] = waiting.splice(0, 1);
      if (!oldest) return;
      waitingText -= sizeOf(oldest);
      if (!hasGivenUp)
        logger.warn({ runId: stream.runId }, 'Redis is away for long: the oldest events of a run are given up');
      hasGivenUp = true;
    }
  };

  const takeBatch = (): NewRunEvent[] => {
    let count = 0;
    let text = 0;
    for (const event of waiting.slice(0, eventsAtOnce)) {
      if (count > 0 && text + sizeOf(event) > textAtOnce) break;
      count += 1;
      text += sizeOf(event);
    }
    waitingText -= text;
    return waiting.splice(0, count);
  };

  /** An answer may be lost although the write was applied: a retry names the number before it. */
  async function write(batch: readonly NewRunEvent[]): Promise<void> {
    const startedAt = Date.now();
    for (let failures = 0; ; failures += 1) {
      try {
        lastKnown ??= (await log.read(stream, 'now')).lastNumber;
        const outcome = await log.append(stream, batch, failures === 0 ? undefined : lastKnown);
        isAway = false;
        if (outcome === 'over') isOver = true;
        else lastKnown = outcome;
        return;
      } catch (error) {
        isAway = error instanceof DomainError && error.code === 'UNAVAILABLE';
        if (!isAway || ending.aborted || Date.now() - startedAt > giveUpMs) {
          logger.error({ err: error, runId: stream.runId, events: batch.length }, 'could not write events of a run');
          return;
        }
        const pauseMs = Math.min(shortestRetryMs * 2 ** failures, longestRetryMs);
        await delay(pauseMs, undefined, { signal: ending, ref: false }).catch(() => undefined);
      }
    }
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0 && !isOver) await write(takeBatch());
    waiting = [];
    waitingText = 0;
    writing = undefined;
  }

  const startWriting = (): void => {
    clearTimeout(gathering);
    gathering = undefined;
    // What is published in the same turn goes along.
    writing ??= Promise.resolve().then(writeAll);
  };

  function add(event: NewRunEvent): void {
    const last = waiting.at(-1);
    if (
      last &&
      isText(event) &&
      isText(last) &&
      last.type === event.type &&
      last.originRunId === event.originRunId &&
      last.delta.length + event.delta.length <= longestDelta
    ) {
      waiting[waiting.length - 1] = { ...last, delta: last.delta + event.delta };
    } else {
      waiting.push(event);
    }
    waitingText += sizeOf(event);
  }

  return {
    publish(event) {
      if (isOver || ending.aborted) return;
      if (isText(event)) for (const delta of piecesOf(event.delta)) add({ ...event, delta });
      else add(event);
      giveUpOldest();
      if (writing) return;
      if (isText(event)) gathering ??= setTimeout(startWriting, gatherMs).unref();
      else startWriting();
    },

    async flush() {
      if (waiting.length > 0) startWriting();
      if (!writing) return;
      const settled = new AbortController();
      const limit = delay(flushLimitMs, undefined, { signal: settled.signal }).catch(() => undefined);
      await Promise.race([writing, limit]);
      settled.abort();
    },
  };
}
