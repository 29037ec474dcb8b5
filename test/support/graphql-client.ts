// A GraphQL client as a user would write it: fetch, JSON, a bearer token. It knows nothing of the server's code.

export interface GraphqlAnswer<Data> {
  status: number;
  data: Data | null | undefined;
  errors: GraphqlFailure[];
  headers: Headers;
}

export interface GraphqlFailure {
  message: string;
  path?: (string | number)[];
  extensions: { code?: string; [key: string]: unknown };
}

export interface GraphqlClient {
  /** Sends one operation and gives back whatever came. */
  send<Data = Record<string, never>>(document: string, variables?: object): Promise<GraphqlAnswer<Data>>;
  /** Sends one operation that has to succeed. */
  run<Data>(document: string, variables?: object): Promise<Data>;
  /** Sends one operation that has to fail with one error, and gives back that error. */
  fail(document: string, variables?: object): Promise<GraphqlFailure>;
}

/** @param secret undefined sends no credentials at all */
export function createGraphqlClient(url: string, secret: string | undefined): GraphqlClient {
  const send: GraphqlClient['send'] = async (document, variables) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
      },
      body: JSON.stringify({ query: document, variables }),
    });
    const text = await response.text();
    const body = JSON.parse(text) as { data?: never; errors?: GraphqlFailure[] };
    return { status: response.status, data: body.data, errors: body.errors ?? [], headers: response.headers };
  };
  return {
    send,
    async run<Data>(document: string, variables?: object) {
      const { data, errors } = await send<Data>(document, variables);
      if (errors.length > 0 || data == null) throw new Error(`the operation failed: ${JSON.stringify(errors)}`);
      return data;
    },
    async fail(document, variables) {
      const { data, errors } = await send(document, variables);
      const [error] = errors;
      if (!error || errors.length > 1) throw new Error(`expected one error: ${JSON.stringify({ data, errors })}`);
      return error;
    },
  };
}
