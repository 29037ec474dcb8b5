// A closed loop of requests on a fixed number of connections: each waits for its answer, and every answer is looked at.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { percentile } from './table.js';
import type { ServerProcess } from './server-process.js';

/** One request to send again and again. */
export interface Shot {
  body: string;
  headers: Record<string, string>;
  /** @throws Error when this is not the answer of a server that did the work */
  check: (body: unknown) => void;
}

export interface LoadResult {
  perSecond: number;
  /** Of the server's process, for each request. */
  cpuMicroseconds: number;
  p50Ms: number;
  p99Ms: number;
}

export interface LoadOptions {
  server: ServerProcess;
  connections: number;
  /** How many to send: the same work in each round, however slow the machine is at the moment. */
  requests: number;
  /** @param lane the connection's number */
  shotFor: (lane: number) => Shot;
}

/** The check of an answer: no errors, and data that `isRight` accepts. */
export function checkData(isRight: (data: never) => boolean): Shot['check'] {
  return (body) => {
    const { data, errors } = body as { data?: unknown; errors?: unknown };
    if (errors !== undefined || data == null || !isRight(data as never)) {
      throw new Error(`The server did not do the work: ${JSON.stringify(body).slice(0, 500)}`);
    }
  };
}

export const graphqlShot = (
  query: string,
  variables: object,
  check: Shot['check'],
  headers: Record<string, string> = {},
): Shot => ({
  body: JSON.stringify({ query, variables }),
  headers: { 'content-type': 'application/json', ...headers },
  check,
});

/** @throws Error when any answer is not a right one */
export async function runLoad({ server, connections, requests, shotFor }: LoadOptions): Promise<LoadResult> {
  const latencies: number[] = [];
  const clients = Array.from({ length: connections }, () => new Client(server.url, { pipelining: 1 }));
  const shots = clients.map((_client, lane) => shotFor(lane));
  const before = await server.usage();
  const startedAt = performance.now();
  let started = 0;
  const runLane = async (client: Client, shot: Shot): Promise<void> => {
    const { body, headers } = shot;
    while (started < requests) {
      started += 1;
      const sentAt = performance.now();
      const response = await client.request({ path: '/graphql', method: 'POST', body, headers });
      const text = await response.body.text();
      latencies.push(performance.now() - sentAt);
      if (response.statusCode !== 200) throw new Error(`Status ${response.statusCode}: ${text.slice(0, 500)}`);
      shot.check(JSON.parse(text));
    }
  };
  try {
    await Promise.all(clients.map((client, lane) => runLane(client, shots[lane]!)));
    const seconds = (performance.now() - startedAt) / 1000;
    const after = await server.usage();
    return {
      perSecond: latencies.length / seconds,
      cpuMicroseconds: (after.cpuMicroseconds - before.cpuMicroseconds) / latencies.length,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
    };
  } finally {
    await Promise.all(clients.map((client) => client.destroy()));
    // What a closed connection costs the server belongs to nobody's round.
    await sleep(50);
  }
}
