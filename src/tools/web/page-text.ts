// From the bytes of a document to text, and from text to pages of a bounded size.
import type { FetchedPage } from './fetch-page.js';
import type { HtmlConverter } from './html-converter.js';
import { PageError } from './page-error.js';

export interface PageText {
  /** After redirects. */
  url: string;
  /** Empty when the document has none. */
  title: string;
  /** At least one; together they are the whole text. */
  pages: string[];
}

const charactersPerPage = 4000;

const htmlTypes = new Set(['text/html', 'application/xhtml+xml']);
const isTextType = (type: string): boolean =>
  type.startsWith('text/') || /^application\/(.+\+)?(json|xml|javascript|yaml|x-ndjson)$/.test(type);

function decode({ charset, body, mediaType }: FetchedPage): string {
  const start = body.subarray(0, 2048).toString('latin1');
  const declared = htmlTypes.has(mediaType)
    ? /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]+)/i.exec(start)?.[1]
    : undefined;
  try {
    return new TextDecoder(charset ?? declared ?? 'utf-8').decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}

/** The best place to end a page before `limit`: a paragraph, a line, a word, and never within a character. */
function endOfPage(text: string, start: number, limit: number): number {
  const end = start + limit;
  if (end >= text.length) return text.length;
  const least = start + limit / 2;
  for (const separator of ['\n\n', '\n', ' ']) {
    const place = text.lastIndexOf(separator, end - separator.length);
    if (place >= least) return place + separator.length;
  }
  const splitsPair = /[\uD800-\uDBFF]/.test(text.charAt(end - 1));
  return splitsPair ? end - 1 : end;
}

export function splitPages(text: string, limit = charactersPerPage): string[] {
  const pages: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = endOfPage(text, start, limit);
    pages.push(text.slice(start, end));
    start = end;
  }
  return pages.length === 0 ? [''] : pages;
}

/** @throws PageError UNREADABLE for what is no text */
export async function readText(page: FetchedPage, converter: HtmlConverter): Promise<PageText> {
  const looksLikeHtml =
    page.mediaType === '' && page.body.subarray(0, 512).toString('latin1').trimStart().startsWith('<');
  if (htmlTypes.has(page.mediaType) || looksLikeHtml) {
    const { title, markdown } = await converter.convert(decode(page), page.url);
    return { url: page.url, title, pages: splitPages(markdown) };
  }
  if (!isTextType(page.mediaType)) {
    const type = page.mediaType === '' ? 'of an unknown type' : page.mediaType.slice(0, 100);
    throw new PageError('UNREADABLE', `This document is ${type}, which cannot be read as text.`);
  }
  return { url: page.url, title: '', pages: splitPages(decode(page)) };
}
