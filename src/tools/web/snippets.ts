// Passages around the matches of a query, over all pages of a text.

export interface Snippet {
  /** Counted from 1. */
  page: number;
  text: string;
}

const charactersAround = 200;
const maxSnippets = 10;

const escapeForRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The query as a whole; when that is nowhere, any of its words. White space and case do not matter. */
function patternsFor(query: string): RegExp[] {
  const words = query.trim().split(/\s+/).map(escapeForRegExp);
  const longWords = words.filter((word) => word.length > 2);
  const anyWord = longWords.length > 0 ? longWords : words;
  return [new RegExp(words.join('\\s+'), 'giu'), new RegExp(anyWord.join('|'), 'giu')];
}

/** Places where the pattern matches, so far apart that their passages do not overlap. */
function placesIn(text: string, pattern: RegExp): number[] {
  const places: number[] = [];
  for (const match of text.matchAll(pattern)) {
    const last = places.at(-1);
    if (last === undefined || match.index > last + charactersAround) places.push(match.index);
  }
  return places;
}

function passage(text: string, place: number): string {
  const start = Math.max(0, place - charactersAround);
  const end = Math.min(text.length, place + charactersAround);
  const cut = text.slice(start, end).trim().replace(/\s+/g, ' ');
  return `${start > 0 ? '…' : ''}${cut}${end < text.length ? '…' : ''}`;
}

/** The first passages in reading order, and how many there are altogether. A match may begin on one page and end on the next. */
export function findSnippets(pages: readonly string[], query: string): { snippets: Snippet[]; total: number } {
  const text = pages.join('');
  const pageAt = (place: number): number => {
    let end = 0;
    return 1 + pages.findIndex((page) => place < (end += page.length));
  };
  for (const pattern of patternsFor(query)) {
    const places = placesIn(text, pattern);
    const first = places.slice(0, maxSnippets);
    const snippets = first.map((place) => ({ page: pageAt(place), text: passage(text, place).toWellFormed() }));
    if (places.length > 0) return { snippets, total: places.length };
  }
  return { snippets: [], total: 0 };
}
