// What was read of a pad, parsed once, and kept for as long as Redis says that nothing has changed since.
import { LRUCache } from 'lru-cache';
import type { DomainError } from '../shared/errors.js';
import type { CursorCodec, PageRequest } from '../shared/pagination.js';
import { cursorRefusal, toLedgerPage, type EntryKey, type LedgerPage, type PageReply } from './ledger-page.js';
import { parseContent, type ContentState } from './schemas.js';

/** What a page, or a state, takes beside its texts, counted in characters. */
const charactersBeside = 300;

/** Texts as Redis holds them; what they say is shared by all readers, who change nothing. Throws where it is no scratchpad's state. */
export class PadState {
  /** In characters. */
  readonly size: number;
  readonly #contentRow: string | null;
  #content: ContentState | undefined;
  readonly #replies: readonly PageReply[];
  readonly #pages: LedgerPage[] = [];
  readonly #entryCount: number;

  /** @param token says what of the pad this was, in the words of the read script */
  constructor(
    readonly token: string,
    contentRow: string | null,
    replies: readonly PageReply[],
    entryCount: number | null,
  ) {
    this.#contentRow = contentRow;
    this.#replies = replies;
    this.#entryCount = entryCount ?? 0;
    this.size = replies.reduce((size, [, rows]) => size + rows.length + charactersBeside, contentRow?.length ?? 0);
  }

  get content(): ContentState {
    return (this.#content ??= parseContent(this.#contentRow));
  }

  page(index: number, request: PageRequest<EntryKey>, codec: CursorCodec<EntryKey>): LedgerPage | DomainError {
    const reply = this.#replies[index]!;
    return (
      cursorRefusal(request, reply) ?? (this.#pages[index] ??= toLedgerPage(request, reply, codec, this.#entryCount))
    );
  }
}

/** In characters of the texts; what is made of them takes about three times as much. */
const mostCharacters = 4 * 2 ** 20;
/** A larger one is not worth the many small ones that it would push out. */
const largestState = mostCharacters / 16;

export interface PadStates {
  /** @param wish whose and what: the same for the same pad and the same parts of it */
  get(wish: string): PadState | undefined;
  put(wish: string, state: PadState): void;
}

/**
 * The least recently read ones go first. Nothing here is ever answered unasked: each time, Redis compares the token in the same step in
 * which it would read.
 */
export function createPadStates(): PadStates {
  const states = new LRUCache<string, PadState>({
    maxSize: mostCharacters,
    sizeCalculation: ({ size }, wish) => size + wish.length + charactersBeside,
  });
  return {
    get: (wish) => states.get(wish),
    put(wish, state) {
      if (state.size <= largestState) states.set(wish, state);
    },
  };
}
