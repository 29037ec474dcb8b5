// The time as a dependency, so that expiry can be tested without waiting for it.

/** The present instant. */
export type Clock = () => Date;

export const systemClock: Clock = () => new Date();
