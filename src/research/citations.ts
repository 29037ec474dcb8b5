// Which addresses an answer cites, and which of them nobody of the run has fetched.

/** White space and what cannot stand in an address unescaped; square brackets end a Markdown link's text. */
const candidate = /https?:\/\/[^\s<>"`\\^{}|[\]]+/gi;

const count = (text: string, character: string): number => text.split(character).length - 1;

/** An address in prose is followed by punctuation that does not belong to it, unless a bracket was opened within. */
function trimEnd(text: string): string {
  let url = text;
  for (;;) {
    const isPunctuation = /[.,;:!?'"*_~»”’…]$/u.test(url);
    const closesNothing = url.endsWith(')') && count(url, ')') > count(url, '(');
    if (!isPunctuation && !closesNothing) return url;
    url = url.slice(0, -1);
  }
}

/** What makes two spellings one address: no fragment, no slash at the end. */
function identityOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  url.hash = '';
  return url.href.replace(/\/$/, '');
}

/** Every address in a text, as it is written there, each once, in reading order. */
export function citedUrls(text: string): string[] {
  const urls = (text.match(candidate) ?? []).flatMap((found) => {
    // In "[https://a](https://a)" and "(https://a)(note)" the address ends where its bracket does.
    const first = trimEnd(found.split(')(')[0] ?? '');
    return identityOf(first) === undefined ? [] : [first];
  });
  return [...new Set(urls)];
}

export function unverifiedCitations(text: string, fetchedUrls: Iterable<string>): string[] {
  const fetched = new Set([...fetchedUrls].map(identityOf));
  return citedUrls(text).filter((url) => !fetched.has(identityOf(url)));
}
