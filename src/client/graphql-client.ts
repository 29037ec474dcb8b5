// GraphQL over HTTP with fetch alone; subscriptions as server-sent events. It knows the wire, and nothing of the server's code.
import { aborted, mayPass, ScratchpadError, type ErrorCode, type GraphqlFailure } from './client-error.js';
import { readEventStream } from './event-stream.js';
import { backoff, pause } from './pause.js';

export interface CallOptions {
  /** Ends the call, also while it waits to try again. */
  signal?: AbortSignal | undefined;
}

export interface RequestOptions extends CallOptions {
  /** Whether it may be sent again without harm. Default: queries may. */
  isRepeatable?: boolean;
}

export interface SubscribeOptions extends CallOptions {
  /** Called when the server has begun to answer. */
  onOpen?: () => void;
}

export interface GraphqlClient {
  /** Sends it again for a while when that is safe and may help. @throws ScratchpadError when there is any error */
  request: <Data>(document: string, variables?: object, options?: RequestOptions) => Promise<Data>;
  /**
   * One connection. Ends when the server completes it or the signal is aborted.
   * @throws ScratchpadError for a result without data, and when the connection breaks or falls silent
   */
  subscribe<Data>(document: string, variables: object, options?: SubscribeOptions): AsyncGenerator<Data, undefined>;
}

export interface GraphqlClientOptions {
  /** The server's address, with or without /graphql. */
  url: string;
  /** An API key or an agent token. */
  key: string;
  /** Instead of the global one. */
  fetch?: typeof fetch | undefined;
  /** How many times a request is sent again. Default 3. */
  retries?: number | undefined;
  /** How long one attempt of a request may take. Default 30 s. */
  timeoutMs?: number | undefined;
  /** After this long without a sign of life a subscription counts as broken; the server sends one every 25 s at least. Default 40 s. */
  silenceLimitMs?: number | undefined;
  /** Hears everything that crosses the wire. */
  observe?: { sent?(document: string, variables: object): void; received?(result: unknown): void } | undefined;
}

/** A server that asks for more patience than this is not waited for. */
const longestRetryAfterMs = 60_000;

/** What an answer means that is none of ours: from a proxy, mostly. */
const codeOfStatus: Record<number, ErrorCode> = {
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  413: 'LIMIT_EXCEEDED',
  429: 'RATE_LIMITED',
  503: 'UNAVAILABLE',
};

/** @throws TypeError when it is no address */
export function endpointOf(url: string): string {
  const endpoint = new URL(url);
  if (!/^https?:$/.test(endpoint.protocol)) throw new TypeError('The address has to begin with http:// or https://.');
  if (endpoint.username || endpoint.password) throw new TypeError('The address must not contain a password.');
  if (!endpoint.pathname.endsWith('/graphql')) endpoint.pathname = `${endpoint.pathname.replace(/\/$/, '')}/graphql`;
  return endpoint.href;
}

/** Surrounding space is that of a file. @throws TypeError, which does not contain it */
function headerOf(key: string): string {
  const secret = key.trim();
  if (!/^[\x21-\x7e]+$/.test(secret)) throw new TypeError('The key has to consist of visible ASCII characters.');
  return `Bearer ${secret}`;
}

function retryAfterOf(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}

/** Ends one exchange: with the caller's signal, when time is up, or by hand. */
function createFuse(signal: AbortSignal | undefined) {
  const controller = new AbortController();
  const blow = (): void => controller.abort();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isTimeUp = false;
  if (signal?.aborted) blow();
  else signal?.addEventListener('abort', blow, { once: true });
  const fuse = {
    signal: controller.signal,
    isTimeUp: () => isTimeUp,
    disarm: () => clearTimeout(timer),
    arm(ms: number) {
      fuse.disarm();
      timer = setTimeout(() => {
        isTimeUp = true;
        blow();
      }, ms);
    },
    /** Hangs up if that has not happened, and lets go of the caller's signal, which may live for ever. */
    end() {
      fuse.disarm();
      signal?.removeEventListener('abort', blow);
      blow();
    },
  };
  return fuse;
}

type Fuse = ReturnType<typeof createFuse>;

export function createGraphqlClient(options: GraphqlClientOptions): GraphqlClient {
  const { observe, retries = 3, timeoutMs = 30_000, silenceLimitMs = 40_000 } = options;
  const endpoint = endpointOf(options.url);
  const authorization = headerOf(options.key);
  const send = options.fetch ?? ((url: string, init: RequestInit) => fetch(url, init));

  function encode(document: string, variables: object): string {
    try {
      return JSON.stringify({ query: document, variables });
    } catch (error) {
      throw new ScratchpadError('BAD_USER_INPUT', 'The input is no JSON.', {}, { cause: error });
    }
  }

  function post(document: string, variables: object, accept: string, signal: AbortSignal): Promise<Response> {
    const body = encode(document, variables);
    observe?.sent?.(document, variables);
    const headers = { 'content-type': 'application/json', accept, authorization };
    return send(endpoint, { method: 'POST', headers, body, signal }).catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw new ScratchpadError('CONNECTION_FAILED', `No server answers at ${endpoint}.`, {}, { cause: error });
    });
  }

  function detailsOf({ status, headers }: Response) {
    const requestId = headers.get('x-request-id') ?? undefined;
    return { status, requestId, retryAfterMs: retryAfterOf(headers.get('retry-after')) };
  }

  function refusal(response: Response, failures: readonly GraphqlFailure[]): ScratchpadError {
    const { code, requestId, retryAfterSeconds } = failures[0]?.extensions ?? {};
    const details = { ...detailsOf(response), failures };
    if (typeof requestId === 'string') details.requestId = requestId;
    if (typeof retryAfterSeconds === 'number') details.retryAfterMs = retryAfterSeconds * 1000;
    const message = failures.map((failure) => failure.message).join('\n') || 'The server answered with nothing.';
    return new ScratchpadError((code ?? 'INTERNAL') as ErrorCode, message, details);
  }

  /** @throws ScratchpadError when it is no GraphQL result: then something else answered, such as a proxy */
  function parse(response: Response, text: string): { data?: unknown; errors?: GraphqlFailure[] } {
    let result: unknown;
    try {
      result = JSON.parse(text);
    } catch {
      // Handled with what is JSON but no object.
    }
    if (typeof result !== 'object' || result === null || !('data' in result || 'errors' in result)) {
      const details = detailsOf(response);
      const message = `${endpoint} answered with HTTP ${details.status}, and not as a Scratchpad server does.`;
      throw new ScratchpadError(codeOfStatus[details.status] ?? 'CONNECTION_FAILED', message, details);
    }
    observe?.received?.(result);
    return result as { data?: unknown; errors?: GraphqlFailure[] };
  }

  /** Whatever was thrown while the exchange was open. */
  function explain(error: unknown, fuse: Fuse, signal: AbortSignal | undefined) {
    if (signal?.aborted) return aborted(signal);
    if (error instanceof ScratchpadError) return error;
    return fuse.isTimeUp()
      ? new ScratchpadError('TIMEOUT', `${endpoint} did not answer in time.`, {}, { cause: error })
      : new ScratchpadError('CONNECTION_FAILED', `The connection to ${endpoint} broke.`, {}, { cause: error });
  }

  async function attempt<Data>(document: string, variables: object, signal: AbortSignal | undefined): Promise<Data> {
    const fuse = createFuse(signal);
    fuse.arm(timeoutMs);
    try {
      const response = await post(document, variables, 'application/json', fuse.signal);
      const { data, errors = [] } = parse(response, await response.text());
      if (errors.length > 0 || data == null) throw refusal(response, errors);
      return data as Data;
    } catch (error) {
      throw explain(error, fuse, signal);
    } finally {
      fuse.end();
    }
  }

  async function* stream<Data>(document: string, variables: object, fuse: Fuse, onOpen?: () => void) {
    // Armed only while something is awaited: how long the reader takes for an event is its own affair.
    fuse.arm(silenceLimitMs);
    const response = await post(document, variables, 'text/event-stream', fuse.signal);
    if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body) {
      throw refusal(response, parse(response, await response.text()).errors ?? []);
    }
    onOpen?.();
    const reader = response.body.getReader();
    async function* chunks(): AsyncGenerator<Uint8Array, undefined> {
      for (;;) {
        fuse.arm(silenceLimitMs);
        const { done, value } = await reader.read();
        fuse.disarm();
        if (done) return undefined;
        yield value;
      }
    }
    for await (const { event, data } of readEventStream(chunks())) {
      if (event === 'complete') return;
      if (event !== 'next') continue;
      const result = parse(response, data);
      if (result.data == null) throw refusal(response, result.errors ?? []);
      yield result.data as Data;
    }
    throw new ScratchpadError('CONNECTION_FAILED', `${endpoint} broke the connection off.`);
  }

  return {
    async request<Data>(document: string, variables: object = {}, { signal, isRepeatable }: RequestOptions = {}) {
      const most = (isRepeatable ?? /^\s*(query\b|\{)/.test(document)) ? retries : 0;
      for (let failures = 1; ; failures += 1) {
        try {
          return await attempt<Data>(document, variables, signal);
        } catch (error) {
          if (failures > most || !mayPass(error) || (error.retryAfterMs ?? 0) > longestRetryAfterMs) throw error;
          await pause(backoff(failures, error.retryAfterMs), signal);
        }
      }
    },

    async *subscribe<Data>(document: string, variables: object, { signal, onOpen }: SubscribeOptions = {}) {
      if (signal?.aborted) return undefined;
      const fuse = createFuse(signal);
      try {
        yield* stream<Data>(document, variables, fuse, onOpen);
      } catch (error) {
        if (signal?.aborted) return undefined;
        throw explain(error, fuse, signal);
      } finally {
        // Whoever stops reading hangs up.
        fuse.end();
      }
      return undefined;
    },
  };
}
