// What one run has read of the web: each address is fetched once, and who asks again gets the same text.
import { parsePageUrl, type PageFetcher } from './fetch-page.js';
import type { HtmlConverter } from './html-converter.js';
import { readText, type PageText } from './page-text.js';

export interface WebSession {
  /** @throws PageError; a failure is not remembered */
  read(url: string, options: { forceRefresh: boolean; signal: AbortSignal }): Promise<PageText>;
  /** Every address that was read, as it was asked for and where it led, in that order, each once. */
  fetchedUrls(): string[];
}

export function createWebSession({
  fetcher,
  converter,
}: {
  fetcher: PageFetcher;
  converter: HtmlConverter;
}): WebSession {
  const pages = new Map<string, Promise<PageText>>();
  const fetched = new Set<string>();

  async function load(url: string, signal: AbortSignal): Promise<PageText> {
    const page = await readText(await fetcher.fetch(url, signal), converter);
    fetched.add(url).add(page.url);
    return page;
  }

  return {
    async read(text, { forceRefresh, signal }) {
      const url = parsePageUrl(text).href;
      const known = forceRefresh ? undefined : pages.get(url);
      if (known) return known;
      const loading = load(url, signal);
      pages.set(url, loading);
      loading.catch(() => {
        if (pages.get(url) === loading) pages.delete(url);
      });
      return loading;
    },
    fetchedUrls: () => [...fetched],
  };
}
