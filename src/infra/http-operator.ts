// What an operator's tools ask: does the process live, is it ready, what does it do. Names of stores and figures, nothing of a tenant.
import type { ServerResponse } from 'node:http';
import type { HttpExchange } from '../shared/http-exchange.js';
import type { Metrics } from './metrics.js';

interface Dependencies {
  /** Which store answers, by name. */
  readiness: () => Promise<Record<string, boolean>>;
  metrics: Pick<Metrics, 'expose'>;
  /** Whether this request may read the metrics. */
  mayReadMetrics: (exchange: Pick<HttpExchange, 'request' | 'loopback'>) => boolean;
  isClosing: () => boolean;
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}

/** @returns what answers /healthz, /readyz and /metrics, and says false for every other path */
export function createOperatorRoutes({ readiness, metrics, mayReadMetrics, isClosing }: Dependencies) {
  async function answerReadiness(response: ServerResponse): Promise<void> {
    if (isClosing()) {
      sendJson(response, 503, { status: 'closing' });
      return;
    }
    const stores = Object.entries(await readiness());
    const isReady = stores.every(([, answers]) => answers);
    const states = stores.map(([name, answers]) => [name, answers ? 'ok' : 'unavailable']);
    const status = isReady ? 'ok' : 'unavailable';
    sendJson(response, isReady ? 200 : 503, { status, ...Object.fromEntries(states) });
  }

  async function answerMetrics(exchange: HttpExchange): Promise<void> {
    const { response } = exchange;
    if (!mayReadMetrics(exchange)) {
      response.setHeader('www-authenticate', 'Bearer realm="metrics"');
      const detail = 'Send the METRICS_TOKEN of this server: "Authorization: Bearer <token>".';
      sendJson(response, 401, { status: 401, title: 'Not authenticated', detail });
      return;
    }
    const { contentType, body } = await metrics.expose();
    response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
  }

  return async (exchange: HttpExchange): Promise<boolean> => {
    const { path, response } = exchange;
    if (path === '/healthz') sendJson(response, 200, { status: 'ok' });
    else if (path === '/readyz') await answerReadiness(response);
    else if (path === '/metrics') await answerMetrics(exchange);
    else return false;
    return true;
  };
}
