// Waits for a condition, with a bound.
import { setTimeout as delay } from 'node:timers/promises';

/** @returns whether it held in time. A condition that throws does not hold yet. */
export async function settle(
  holds: () => boolean | Promise<boolean>,
  { withinMs, everyMs = 100 }: { withinMs: number; everyMs?: number },
): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    try {
      if (await holds()) return true;
    } catch {
      // Not yet.
    }
    if (Date.now() > deadline) return false;
    await delay(everyMs);
  }
}
