// Performs one of the client's own operations: its text knows the types of its variables and its data.
import type { GraphqlClient, RequestOptions } from './graphql-client.js';
import type { Operation } from './operations.js';

/** @throws ScratchpadError */
export const performed = <Data, Variables extends object>(
  client: Pick<GraphqlClient, 'request'>,
  operation: Operation<Data, Variables>,
  variables: Variables,
  options?: RequestOptions,
): Promise<Data> => client.request<Data>(operation, variables, options);
