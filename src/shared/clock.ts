// The time as a dependency, so that expiry can be tested without waiting for it.

/** The present instant. */
export type Clock = () => Date;

export const systemClock: Clock = () => new Date();

/** Whether an instant comes back from every store and every wire as it was: the years that ISO 8601 writes with four digits. */
export const isStorableInstant = (date: Date): boolean => {
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9999;
};
