// Pages of the ledger by position in the list, so that none costs more than its own rows, wherever it lies.
import { invalidInput, type DomainError } from '../shared/errors.js';
import { createCursorCodec, toPage, type CursorCodec, type Page, type PageRequest } from '../shared/pagination.js';
import { parseEntries, type EntryState } from './schemas.js';

/**
 * What a cursor of the ledger holds. The position finds the entry at once; the sequence tells whether it still is the one that
 * was meant, for after a clear or an expiry another entry lies there.
 */
export type EntryKey = [position: number, sequence: number];

const isPosition = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

const isEntryKey = (value: unknown): value is EntryKey =>
  Array.isArray(value) && value.length === 2 && value.every(isPosition);

export const entryCursorCodec = (scratchpadId: string): CursorCodec<EntryKey> =>
  createCursorCodec('entries', scratchpadId, isEntryKey);

/** A page of the ledger, which nobody changes. */
export interface LedgerPage extends Page<EntryState> {
  /** Of all entries, counted in the same step. */
  readonly totalCount: number;
}

/** A page as the read script takes it. */
export const pageWish = ({ size, fromEnd, after, before }: PageRequest<EntryKey>): string =>
  `${size},${fromEnd ? 1 : 0},${after?.[0] ?? -1},${before?.[0] ?? -1};`;

/** A page as the read script replies it. */
export type PageReply = [
  rowCount: number,
  texts: string[],
  firstPosition: number,
  sequenceAtAfter: string | null,
  sequenceAtBefore: string | null,
];

const isCurrent = (key: EntryKey | undefined, sequence: string | null): boolean =>
  key === undefined || String(key[1]) === sequence;

/** INVALID_INPUT when the entry of one of the cursors is not in the ledger any more. */
export function cursorRefusal(
  { after, before }: PageRequest<EntryKey>,
  [, , , sequenceAtAfter, sequenceAtBefore]: PageReply,
): DomainError | undefined {
  if (isCurrent(after, sequenceAtAfter) && isCurrent(before, sequenceAtBefore)) return undefined;
  return invalidInput('The entry of this cursor was cleared or has expired: start again without a cursor.');
}

/** @throws Error when the rows are no ledger's */
export function toLedgerPage(
  request: PageRequest<EntryKey>,
  [rowCount, texts, firstPosition]: PageReply,
  codec: CursorCodec<EntryKey>,
  totalCount: number,
): LedgerPage {
  const entries = parseEntries(`[${texts.join()}]`, rowCount);
  const lastPosition = firstPosition + entries.length - 1;
  const page = request.fromEnd
    ? toPage(entries.toReversed(), request, codec, ({ sequence }, index) => [lastPosition - index, sequence])
    : toPage(entries, request, codec, ({ sequence }, index) => [firstPosition + index, sequence]);
  return { edges: page.edges, pageInfo: page.pageInfo, totalCount };
}
