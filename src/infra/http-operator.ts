// What an operator's tools ask: does the process live, is it ready, what does it do. Names of stores and figures, nothing of a tenant.
import type { ServerResponse } from 'node:http';
import type { Metrics } from './metrics.js';

interface Dependencies {
  /** Which store answers, by name. */
  readiness: () => Promise<Record<string, boolean>>;
  metrics: Pick<Metrics, 'expose'>;
  isClosing: () => boolean;
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}

/** @returns what answers /healthz, /readyz and /metrics, and says false for every other path */
export function createOperatorRoutes({ readiness, metrics, isClosing }: Dependencies) {
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

  return async (path: string, response: ServerResponse): Promise<boolean> => {
    if (path === '/healthz') sendJson(response, 200, { status: 'ok' });
    else if (path === '/readyz') await answerReadiness(response);
    else if (path === '/metrics') {
      const { contentType, body } = await metrics.expose();
      response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
    } else return false;
    return true;
  };
}
