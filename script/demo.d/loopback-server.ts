// A bare HTTP server on loopback for stand-ins of the outside world.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LoopbackServer {
  /** Without a slash at the end. */
  url: string;
  port: number;
  /** Connections that were made, whatever came of them. */
  connections(): number;
  close(): Promise<void>;
}

export async function startLoopbackServer(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  { host = '127.0.0.1', port = 0 }: { host?: string; port?: number } = {},
): Promise<LoopbackServer> {
  const server = createServer(handle);
  let count = 0;
  server.on('connection', () => count++);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${host}:${bound}`,
    port: bound,
    connections: () => count,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
