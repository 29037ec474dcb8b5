// GraphQL over HTTP with fetch alone; subscriptions as server-sent events. It knows the wire, and nothing of the server's code.
import { readEventStream } from './event-stream.js';

export interface GraphqlFailure {
  message: string;
  path?: (string | number)[];
  extensions?: { code?: string; [detail: string]: unknown };
}

export interface GraphqlResult<Data> {
  data?: Data | null;
  errors?: GraphqlFailure[];
}

/** The server refused an operation, or could not perform it. */
export class GraphqlError extends Error {
  override readonly name = 'GraphqlError';
  /** Of the first error. */
  readonly code: string | undefined;

  constructor(readonly errors: readonly GraphqlFailure[]) {
    super(errors.map(({ message }) => message).join('\n') || 'The server answered with nothing.');
    this.code = errors[0]?.extensions?.code;
  }
}

/** There is no server at the address, or the connection to it broke. The operation may have been performed. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

export interface GraphqlClient {
  /** @throws GraphqlError when there is any error; ConnectionError */
  request<Data>(document: string, variables?: object): Promise<Data>;
  /**
   * Ends when the server completes it or the signal is aborted.
   * @throws GraphqlError for a result without data; ConnectionError when the stream breaks or falls silent
   */
  subscribe<Data>(document: string, variables: object, signal?: AbortSignal): AsyncGenerator<Data, undefined>;
}

export interface GraphqlClientOptions {
  /** The server's address, with or without /graphql. */
  url: string;
  /** An API key. */
  key: string;
  /** Hears everything that crosses the wire. */
  observe?: { sent?(document: string, variables: object): void; received?(result: unknown): void };
  /** After this long without a sign of life a subscription counts as broken; the server sends one every 12 s. */
  silenceLimitMs?: number;
}

const requestLimitMs = 30_000;

/** @throws TypeError when it is no address */
export function endpointOf(url: string): string {
  const endpoint = new URL(url);
  if (!/^https?:$/.test(endpoint.protocol)) throw new TypeError('The address has to begin with http:// or https://.');
  if (!endpoint.pathname.endsWith('/graphql')) endpoint.pathname = `${endpoint.pathname.replace(/\/$/, '')}/graphql`;
  return endpoint.href;
}

export function createGraphqlClient(options: GraphqlClientOptions): GraphqlClient {
  const { key, observe, silenceLimitMs = 40_000 } = options;
  const endpoint = endpointOf(options.url);

  async function post(document: string, variables: object, accept: string, signal: AbortSignal): Promise<Response> {
    observe?.sent?.(document, variables);
    try {
      return await fetch(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept, authorization: `Bearer ${key}` },
        body: JSON.stringify({ query: document, variables }),
        signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      throw new ConnectionError(`No server answers at ${endpoint}.`, { cause: error });
    }
  }

  /** @throws ConnectionError when it is no GraphQL result: then something else answered, such as a proxy */
  function parse<Data>(text: string, status: number): GraphqlResult<Data> {
    let result: unknown;
    try {
      result = JSON.parse(text);
    } catch {
      // Handled with what is JSON but no object.
    }
    if (typeof result !== 'object' || result === null || !('data' in result || 'errors' in result)) {
      throw new ConnectionError(`${endpoint} answered with HTTP ${status}, and not as a GraphQL server does.`);
    }
    observe?.received?.(result);
    return result as GraphqlResult<Data>;
  }

  async function* stream<Data>(document: string, variables: object, signal: AbortSignal, isAlive: () => void) {
    const response = await post(document, variables, 'text/event-stream', signal);
    isAlive();
    if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body) {
      throw new GraphqlError(parse(await response.text(), response.status).errors ?? []);
    }
    const { body } = response;
    async function* watched(): AsyncGenerator<Uint8Array, undefined> {
      for await (const chunk of body) {
        isAlive();
        yield chunk;
      }
      return undefined;
    }
    for await (const { event, data } of readEventStream(watched())) {
      if (event === 'complete') return;
      if (event !== 'next') continue;
      const result = parse<Data>(data, response.status);
      if (result.data == null) throw new GraphqlError(result.errors ?? []);
      yield result.data;
    }
    throw new ConnectionError(`${endpoint} broke the connection off.`);
  }

  return {
    async request<Data>(document: string, variables: object = {}) {
      const response = await post(document, variables, 'application/json', AbortSignal.timeout(requestLimitMs)).catch(
        (error: unknown) => {
          if (error instanceof ConnectionError) throw error;
          throw new ConnectionError(`${endpoint} did not answer within ${requestLimitMs / 1000} s.`, { cause: error });
        },
      );
      const { data, errors = [] } = parse<Data>(await response.text(), response.status);
      if (errors.length > 0 || data == null) throw new GraphqlError(errors);
      return data;
    },

    async *subscribe<Data>(document: string, variables: object, signal?: AbortSignal) {
      const silence = new AbortController();
      const ownEnd = new AbortController();
      let timer: NodeJS.Timeout | undefined;
      const isAlive = (): void => {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silenceLimitMs);
        timer.unref();
      };
      isAlive();
      const signals = [silence.signal, ownEnd.signal, ...(signal ? [signal] : [])];
      try {
        yield* stream<Data>(document, variables, AbortSignal.any(signals), isAlive);
      } catch (error) {
        if (signal?.aborted) return undefined;
        if (error instanceof GraphqlError || error instanceof ConnectionError) throw error;
        throw new ConnectionError(`The connection to ${endpoint} broke.`, { cause: error });
      } finally {
        clearTimeout(timer);
        // Whoever stops reading hangs up.
        ownEnd.abort();
      }
      return undefined;
    },
  };
}
