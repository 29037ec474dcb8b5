// Legacy notebooks of pads that were made while Redis was away: they converge before anything is written to those pads.
import { DomainError } from '../shared/errors.js';
import type { ConvergeNotebook } from './legacy-notebook.js';
import type { PadAddress } from '../redis/redis-keys.js';

export interface WaitingNotebooks {
  /** Nobody could look for the thread's notebook: it is looked for before the pad is written to. */
  wait(pad: PadAddress, threadId: string): void;
  /** To be awaited before each write. Costs nothing when none waits. @throws DomainError UNAVAILABLE */
  settle(pad: PadAddress): Promise<void> | undefined;
}

/** Of this process: what another process writes first, or a restart in between, is not covered. */
export function createWaitingNotebooks(convergeNotebook: ConvergeNotebook): WaitingNotebooks {
  const waiting = new Map<string, { pad: PadAddress; threadId: string }>();
  let settling: Promise<void> | undefined;

  async function converge(pad: PadAddress, threadId: string): Promise<void> {
    try {
      await convergeNotebook(pad, threadId);
    } catch (error) {
      // Deleted meanwhile: the notebook goes with its thread.
      if (!(error instanceof DomainError && error.code === 'NOT_FOUND')) throw error;
    }
    waiting.delete(pad.scratchpadId);
  }

  /** Redis is back, it seems: those of the other pads need not wait for a write of their own. */
  async function settleOthers(): Promise<void> {
    for (const { pad, threadId } of waiting.values()) await converge(pad, threadId);
  }

  async function settleAll(scratchpadId: string): Promise<void> {
    const own = waiting.get(scratchpadId);
    if (own) await converge(own.pad, own.threadId);
    settling ??= settleOthers()
      .catch(() => undefined) // the next write tries again
      .finally(() => (settling = undefined));
  }

  return {
    wait: (pad, threadId) => void waiting.set(pad.scratchpadId, { pad, threadId }),

    settle: ({ scratchpadId }) => (waiting.size === 0 ? undefined : settleAll(scratchpadId)),
  };
}
