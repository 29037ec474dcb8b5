// A subscription that outlives its connections: opened again behind the last event that was seen, until it has really ended.
import { mayResume, ScratchpadError } from './client-error.js';
import type { CallOptions, SubscribeOptions } from './graphql-client.js';
import { backoff, pause } from './pause.js';

const longEnoughMs = 10_000;

export interface FollowOptions extends CallOptions {
  /** Called before each new attempt, with what went wrong. */
  onReconnect?: ((reason: ScratchpadError) => void) | undefined;
}

interface Source<Event> {
  /** Where to begin. Asked again when it failed with what passes. */
  begin: () => Promise<string> | string;
  /** One connection: everything behind the cursor. */
  open: (after: string, options: SubscribeOptions) => AsyncIterable<Event>;
  isLast: (event: Event) => boolean;
  /** Whether a subscription that the server completed without a last event is really over. A server that shuts down completes its subscriptions, too. */
  isOver?: () => Promise<boolean>;
}

/**
 * Every event once, in order. Ends behind the last one, and when the signal is aborted.
 * @param patienceMs how long the server may stay away
 * @throws ScratchpadError for what waiting does not mend
 */
export async function* resumed<Event extends { cursor: string }>(
  { begin, open, isLast, isOver }: Source<Event>,
  { signal, onReconnect, patienceMs = Infinity }: FollowOptions & { patienceMs?: number | undefined } = {},
): AsyncGenerator<Event, undefined> {
  let cursor: string | undefined;
  let openedAt: number | undefined;
  let failures = 0;
  let awaySince = Infinity;
  const onOpen = (): void => void (openedAt = Date.now());
  for (;;) {
    if (signal?.aborted) return undefined;
    let reason: ScratchpadError;
    try {
      cursor ??= await begin();
      for await (const event of open(cursor, { signal, onOpen })) {
        ({ cursor } = event);
        [failures, awaySince] = [0, Infinity];
        yield event;
        if (isLast(event)) return undefined;
      }
      if (signal?.aborted || (await isOver?.())) return undefined;
      reason = new ScratchpadError('CONNECTION_FAILED', 'The server ended the subscription before its end.');
    } catch (error) {
      if (signal?.aborted) return undefined;
      awaySince = Math.min(awaySince, Date.now());
      if (!mayResume(error, openedAt !== undefined) || Date.now() - awaySince > patienceMs) throw error;
      reason = error;
    }
    // One that held for a while and had nothing to tell was no failure.
    const held = openedAt !== undefined && Date.now() - openedAt > longEnoughMs;
    failures = held ? 1 : failures + 1;
    if (openedAt !== undefined) openedAt = Date.now();
    onReconnect?.(reason);
    await pause(backoff(failures, reason.retryAfterMs), signal).catch(() => {});
  }
}
