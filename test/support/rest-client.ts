// REST over real HTTP, with everything that came back.
export interface RestAnswer<Body = Record<string, unknown>> {
  status: number;
  headers: Headers;
  /** The parsed body. */
  body: Body;
  text: string;
}

export interface RestRequest {
  /** Sent as JSON; a string or a Buffer as it stands. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface RestClient {
  send<Body = Record<string, unknown>>(method: string, path: string, request?: RestRequest): Promise<RestAnswer<Body>>;
  /** The body of a 2xx answer. @throws Error for any other */
  take<Body = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<Body>;
}

function encode(body: unknown): string | Uint8Array<ArrayBuffer> | undefined {
  if (body === undefined || typeof body === 'string') return body;
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);
}

export function createRestClient(url: string, secret: string | undefined): RestClient {
  async function ask(method: string, path: string, { body, headers }: RestRequest = {}): Promise<RestAnswer<unknown>> {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(secret !== undefined && { 'x-api-key': secret }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: encode(body),
    });
    const text = await response.text();
    const isJson = text !== '' && response.headers.get('content-type')?.includes('json');
    const parsed: unknown = isJson ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, body: parsed };
  }
  return {
    send: ask as RestClient['send'],
    take: (async (method, path, body) => {
      const answer = await ask(method, path, { body });
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
      return answer.body;
    }) as RestClient['take'],
  };
}

/** The next link of a list's page, or undefined on its last. */
export const nextOf = ({ headers }: { headers: Headers }): string | undefined =>
  /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];

export const newThread = async (client: RestClient): Promise<string> =>
  (await client.take<{ id: string }>('POST', '/v1/threads', {})).id;

export const newPad = async (client: RestClient, threadId?: string): Promise<string> =>
  (await client.take<{ id: string }>('POST', '/v1/scratchpads', { thread_id: threadId ?? (await newThread(client)) }))
    .id;
