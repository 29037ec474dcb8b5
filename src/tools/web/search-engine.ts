// Asks a SearXNG instance through its JSON API.
import { request } from 'undici';
import { z } from 'zod';
import { discard } from './fetch-page.js';
import { PageError } from './page-error.js';

export interface SearchHit {
  title: string;
  url: string;
  excerpt: string;
}

export interface SearchEngine {
  /** The best hits first. @throws PageError NOT_CONFIGURED or SEARCH_FAILED; the signal's reason when it was aborted */
  search(query: string, signal: AbortSignal): Promise<SearchHit[]>;
}

const timeoutMs = 20_000;
const maxBytes = 2 * 1024 * 1024;
const maxHits = 10;

const text = z.string().catch('');
const answer = z.object({
  results: z.array(z.object({ url: text, title: text, content: text }).catch({ url: '', title: '', content: '' })),
});

async function ask(url: URL, signal: AbortSignal): Promise<unknown> {
  const { statusCode, body } = await request(url, { headers: { accept: 'application/json' }, signal });
  if (statusCode !== 200) {
    discard(body);
    throw new PageError('SEARCH_FAILED', `The search engine answered with HTTP ${statusCode}.`);
  }
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    if (bytes > maxBytes) throw new PageError('SEARCH_FAILED', 'The search engine answered with too much.');
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString('utf8'));
}

/** @param baseUrl of the instance; undefined: every search fails readably */
export function createSearchEngine(baseUrl: string | undefined): SearchEngine {
  return {
    async search(query, signal) {
      if (baseUrl === undefined) {
        throw new PageError(
          'NOT_CONFIGURED',
          'No search engine is configured here. Read pages whose addresses you know.',
        );
      }
      const url = new URL('search', baseUrl.endsWith('/') ? baseUrl : `${baseUrl}/`);
      url.search = new URLSearchParams({ q: query, format: 'json' }).toString();
      try {
        const { results } = answer.parse(await ask(url, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])));
        return results
          .filter((hit) => /^https?:\/\//i.test(hit.url))
          .slice(0, maxHits)
          .map(({ title, url, content }) => ({ title, url, excerpt: content }));
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof PageError) throw error;
        throw new PageError('SEARCH_FAILED', 'The search engine could not be asked, or answered with nonsense.');
      }
    },
  };
}
