// What was read of a pad, parsed once, and kept for as long as Redis says that nothing has changed since.
import type { DomainError } from '../shared/errors.js';
import type { CursorCodec, PageRequest } from '../shared/pagination.js';
import { charactersBeside, createTextCache } from '../shared/text-cache.js';
import { cursorRefusal, toLedgerPage, type EntryKey, type LedgerPage, type PageReply } from './ledger-page.js';
import { parseContent, type ContentState } from './schemas.js';

/** Texts as Redis holds them; what they say is shared by all readers, who change nothing. Throws where it is no scratchpad's state. */
export class PadState {
  /** In characters, with what each page takes beside its rows. */
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
    this.size = contentRow?.length ?? 0;
    for (const [, texts] of replies)
      this.size = texts.reduce((size, text) => size + text.length, this.size + charactersBeside);
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

export interface PadStates {
  /** @param wish whose and what: the same for the same pad and the same parts of it */
  get(wish: string): PadState | undefined;
  put(wish: string, state: PadState): void;
}

/** Nothing here is ever answered unasked: each time, Redis compares the token in the same step in which it would read. */
export function createPadStates(): PadStates {
  const states = createTextCache<string, PadState>();
  return {
    get: (wish) => states.get(wish),
    put: (wish, state) => states.put(wish, state, state.size + wish.length),
  };
}
