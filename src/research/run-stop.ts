// The one signal that ends a run from outside, and why: a person cancelled it, or its time is up.

/** The reason of a run's abort signal. Delegated workers share the signal, and with it the reason. */
export class RunStop extends Error {
  override readonly name = 'RunStop';

  constructor(readonly status: 'CANCELLED' | 'EXPIRED') {
    super(status === 'CANCELLED' ? 'The run was cancelled.' : 'The run took longer than it may.');
  }
}

export interface StopSignal {
  signal: AbortSignal;
  cancel(): void;
  /** Frees the timer; the signal stays as it is. */
  dispose(): void;
}

/** @param wallClockMs after this time the run is EXPIRED */
export function createStopSignal(wallClockMs: number): StopSignal {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new RunStop('EXPIRED')), wallClockMs);
  return {
    signal: controller.signal,
    cancel: () => controller.abort(new RunStop('CANCELLED')),
    dispose: () => clearTimeout(timer),
  };
}

/** How an aborted signal says the run ends; anything that is no RunStop counts as a cancellation. */
export const stopStatus = (signal: AbortSignal): 'CANCELLED' | 'EXPIRED' =>
  signal.reason instanceof RunStop ? signal.reason.status : 'CANCELLED';
