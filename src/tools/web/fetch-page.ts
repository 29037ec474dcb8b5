// Fetches one document from the public web, within limits on hops, bytes and time.
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { request, type Dispatcher } from 'undici';
import { createGuardedAgent, type GuardedAgentOptions } from './guarded-agent.js';
import { PageError } from './page-error.js';

export interface FetchedPage {
  /** Where the last redirect led. */
  url: string;
  /** In lower case, without parameters; empty when the server does not say. */
  mediaType: string;
  /** The charset that the server declares. */
  charset: string | undefined;
  body: Buffer;
}

export interface PageFetcher {
  /**
   * @throws PageError for everything that goes wrong on the way
   * @throws the signal's reason when it was aborted
   */
  fetch(url: string, signal: AbortSignal): Promise<FetchedPage>;
  close(): Promise<void>;
}

export interface PageFetcherOptions extends Pick<GuardedAgentOptions, 'isPermitted' | 'resolve'> {
  /** From the first look-up to the last byte, redirects included. */
  timeoutMs?: number;
  maxBytes?: number;
}

const maxRedirects = 5;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

const headers = {
  'user-agent': 'Mozilla/5.0 (compatible; ResearchReader/1.0)',
  accept: 'text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5',
  'accept-encoding': 'gzip, br, deflate',
};

/** @throws PageError INVALID_URL */
export function parsePageUrl(text: string, base?: string): URL {
  const url = URL.canParse(text, base) ? new URL(text, base) : undefined;
  if (!url)
    throw new PageError('INVALID_URL', 'This is no complete address. It has to begin with http:// or https://.');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new PageError('INVALID_URL', 'Only http and https addresses can be read.');
  }
  if (url.username !== '' || url.password !== '') {
    throw new PageError('INVALID_URL', 'An address with a user name or password is not read.');
  }
  url.hash = '';
  return url;
}

function createDecoder(encoding: string): Transform | undefined {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'br':
      return createBrotliDecompress();
    case 'deflate':
      return createInflate();
    default:
      return undefined;
  }
}

const headerOf = (response: Dispatcher.ResponseData, name: string): string => {
  const value = response.headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? '';
};

/** Closes the connection without reading on, and without an error that nobody listens to. */
export function discard(body: Readable): void {
  body.on('error', () => {}).destroy();
}

/** The body, decompressed; what it becomes then is what counts, so that a small answer cannot turn into a huge one. */
async function readBody(response: Dispatcher.ResponseData, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  const encoding = headerOf(response, 'content-encoding').trim().toLowerCase();
  const decoder = encoding === '' || encoding === 'identity' ? undefined : createDecoder(encoding);
  if (decoder === undefined && encoding !== '' && encoding !== 'identity') {
    throw new PageError('UNREADABLE', 'The server compresses the page in a way that cannot be read.');
  }
  const parts: Buffer[] = [];
  let bytes = 0;
  const collect = async (source: AsyncIterable<Buffer>): Promise<void> => {
    for await (const part of source) {
      bytes += part.byteLength;
      if (bytes > maxBytes) return;
      parts.push(part);
    }
  };
  const body: Readable = response.body;
  const reading = decoder ? pipeline(body, decoder, collect, { signal }) : pipeline(body, collect, { signal });
  // Leaving off in the middle makes the streams before it complain, each in its own way.
  await reading.catch((error: unknown) => {
    if (bytes <= maxBytes) throw error;
  });
  if (bytes > maxBytes) throw new PageError('TOO_LARGE', `The page is larger than ${maxBytes} bytes and was not read.`);
  return Buffer.concat(parts);
}

export function createPageFetcher(options: PageFetcherOptions = {}): PageFetcher {
  const { timeoutMs = 20_000, maxBytes = 5 * 1024 * 1024 } = options;
  const dispatcher = createGuardedAgent({
    isPermitted: options.isPermitted,
    resolve: options.resolve,
    connectTimeoutMs: timeoutMs,
  });

  async function follow(start: string, signal: AbortSignal): Promise<FetchedPage> {
    let url = parsePageUrl(start);
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const response = await request(url, { dispatcher, headers, signal });
      const location = headerOf(response, 'location');
      if (redirectStatuses.has(response.statusCode) && location !== '') {
        await response.body.dump({ limit: 65_536, signal });
        url = parsePageUrl(location, url.href);
        continue;
      }
      if (response.statusCode >= 300) {
        discard(response.body);
        throw new PageError('HTTP_ERROR', `The server answered with HTTP ${response.statusCode}.`);
      }
      const [mediaType = '', ...parameters] = headerOf(response, 'content-type').split(';');
      const charset = parameters.map((text) => /^\s*charset\s*=\s*"?([^"\s]+)"?/i.exec(text)?.[1]).find(Boolean);
      return {
        url: url.href,
        mediaType: mediaType.trim().toLowerCase(),
        charset,
        body: await readBody(response, maxBytes, signal),
      };
    }
    throw new PageError('TOO_MANY_REDIRECTS', `The address redirects more than ${maxRedirects} times.`);
  }

  return {
    async fetch(url, signal) {
      const timeout = AbortSignal.timeout(timeoutMs);
      try {
        return await follow(url, AbortSignal.any([signal, timeout]));
      } catch (error) {
        signal.throwIfAborted();
        if (timeout.aborted) throw new PageError('TIMEOUT', `The page took longer than ${timeoutMs / 1000} seconds.`);
        if (error instanceof PageError) throw error;
        // The reason may name addresses and ports: not for a model.
        throw new PageError(
          'UNREACHABLE',
          'The server of this address could not be reached, or broke the connection off.',
        );
      }
    },
    close: () => dispatcher.destroy(),
  };
}
