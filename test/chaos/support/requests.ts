// Sends GraphQL operations as an impatient client would: to any of the servers, timed, and with the fate of each told apart.
import type { GraphqlFailure } from '../../support/graphql-client.js';
import type { ServerSlot } from './server-slot.js';

export type Answer<Data> =
  | { kind: 'success'; data: Data; startedAtMs: number; answeredAtMs: number }
  /** The server said no: nothing was done, unless the code is UNAVAILABLE. */
  | { kind: 'refused'; code: string; failure: GraphqlFailure }
  /** No answer: whether it was done is unknown. */
  | { kind: 'lost'; reason: string };

export interface RequestFigures {
  sent: number;
  succeeded: number;
  lost: number;
  refused: Record<string, number>;
  longestMs: number;
  /** The operation that took so long, and its answer. */
  longest: string;
  /** Requests that took longer than a client may be kept waiting. */
  slow: { tookMs: number; what: string }[];
  /** Answers that mean a bug. */
  complaints: string[];
}

export interface Requests {
  send<Data>(server: number, secret: string, document: string, variables?: object): Promise<Answer<Data>>;
  readonly figures: RequestFigures;
}

const longestRequestMs = 10_000;
/** Long enough to see how long a hanging request would have hung. */
const giveUpMs = 20_000;

/** @param now one clock for all times of a history */
export function createRequests(servers: readonly Pick<ServerSlot, 'url'>[], now: () => number): Requests {
  const figures: RequestFigures = {
    sent: 0,
    succeeded: 0,
    lost: 0,
    refused: {},
    longestMs: 0,
    longest: '',
    slow: [],
    complaints: [],
  };

  const post = async (url: string, secret: string, body: string): Promise<string> => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
      body,
      signal: AbortSignal.timeout(giveUpMs),
    });
    return await response.text();
  };
  const note = (document: string, tookMs: number, answer: string): void => {
    if (tookMs > figures.longestMs) {
      figures.longestMs = tookMs;
      figures.longest = `${/\w+\(input/.exec(document)?.[0].slice(0, -6) ?? 'a query'}: ${answer.slice(0, 300)}`;
    }
    if (tookMs > longestRequestMs) {
      const what = `${document.replaceAll(/\s+/g, ' ').slice(0, 100)}: ${answer.slice(0, 100)}`;
      figures.slow.push({ tookMs, what });
    }
  };

  return {
    figures,
    async send<Data>(server: number, secret: string, document: string, variables?: object): Promise<Answer<Data>> {
      const startedAtMs = now();
      figures.sent += 1;
      let text: string;
      try {
        text = await post(servers[server]!.url, secret, JSON.stringify({ query: document, variables }));
      } catch (error) {
        note(document, now() - startedAtMs, String(error));
        figures.lost += 1;
        return { kind: 'lost', reason: String((error as Error).cause ?? error) };
      }
      const answeredAtMs = now();
      note(document, answeredAtMs - startedAtMs, text);
      const { data, errors = [] } = JSON.parse(text) as { data?: Data | null; errors?: GraphqlFailure[] };
      const [failure] = errors;
      if (failure || data == null) {
        const code = failure?.extensions.code ?? 'NO DATA';
        figures.refused[code] = (figures.refused[code] ?? 0) + 1;
        if (/^INTERNAL|^NO DATA$|^GRAPHQL_/.test(code))
          figures.complaints.push(`${code}: ${text.slice(0, 500)} to ${document}`);
        return { kind: 'refused', code, failure: failure! };
      }
      figures.succeeded += 1;
      return { kind: 'success', data, startedAtMs, answeredAtMs };
    },
  };
}
