// The time as a dependency, so that expiry can be tested without waiting for it.

/** The present instant. */
export type Clock = () => Date;

export const systemClock: Clock = () => new Date();

/** An instant as every wire writes it, in UTC with milliseconds: 2026-01-31T09:30:00.000Z */
export type InstantText = string;

const instantText = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What is written so already need not be read to be passed on. @throws RangeError for what names no instant */
export const toInstantText = (text: string): InstantText =>
  instantText.test(text) ? text : new Date(text).toISOString();

/** Whether an instant comes back from every store and every wire as it was: the years that ISO 8601 writes with four digits. */
export const isStorableInstant = (date: Date): boolean => {
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9999;
};
