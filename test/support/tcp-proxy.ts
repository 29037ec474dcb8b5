// Stands between a client and a server and does to their connections what networks do: cut, swallow, refuse.
import { connect, createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';

export interface TcpProxy {
  /** Without a slash at the end. */
  url: string;
  /** Connections that were made through it so far. */
  connections(): number;
  /** Bytes that went to clients so far. */
  bytesToClients(): number;
  /** Resets every open connection. New ones work. */
  cut(): void;
  /** From now on nothing passes on the connections that are open, and they stay open: half-open, as behind a dead router. New ones work. */
  swallow(): void;
  /** Resets each connection once this many more bytes went to clients, in the middle of whatever is sent. */
  cutAfter(bytes: number): void;
  /** Whether new connections are refused. */
  refuse(isRefusing: boolean): void;
  close(): Promise<void>;
}

export async function startTcpProxy(targetUrl: string): Promise<TcpProxy> {
  const target = new URL(targetUrl);
  const open = new Set<{ client: Socket; server: Socket; isDead: boolean }>();
  let connections = 0;
  let bytesToClients = 0;
  let bytesUntilCut = Infinity;
  let isRefusing = false;

  const cut = (): void => {
    bytesUntilCut = Infinity;
    for (const { client, server } of open) {
      client.resetAndDestroy();
      server.destroy();
    }
    open.clear();
  };

  const listener = createServer((client) => {
    client.on('error', () => undefined);
    if (isRefusing) {
      client.resetAndDestroy();
      return;
    }
    connections += 1;
    const server = connect(Number(target.port), target.hostname);
    const pair = { client, server, isDead: false };
    open.add(pair);
    const end = (): void => {
      open.delete(pair);
      client.destroy();
      server.destroy();
    };
    server.on('error', end).on('close', () => !pair.isDead && end());
    client.on('close', end);
    client.on('data', (chunk) => void (!pair.isDead && server.write(chunk)));
    server.on('data', (chunk) => {
      if (pair.isDead) return;
      const part = chunk.subarray(0, bytesUntilCut);
      bytesToClients += part.length;
      bytesUntilCut -= part.length;
      if (bytesUntilCut > 0) client.write(part);
      else client.write(part, cut);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    connections: () => connections,
    bytesToClients: () => bytesToClients,
    cut,
    swallow() {
      for (const pair of open) pair.isDead = true;
    },
    cutAfter: (bytes) => void (bytesUntilCut = bytes),
    refuse: (value) => void (isRefusing = value),
    close() {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      cut();
      return closed;
    },
  };
}
