// A line between two processes that can be cut at the worst moment: after a command went out, and before its answer comes back.
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /**
   * From now on: once bytes of a client contain `text`, they are passed on, and nothing comes back any more on that connection.
   * @returns resolves when that has happened and the other end has received it
   */
  holdAnswerTo(text: string): Promise<void>;
  /** Cuts every connection; new ones are taken as before. */
  cut(): void;
  close(): Promise<void>;
}

/** @param to the address of a store */
export async function startTcpProxy(to: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let trap: { text: string; sprung: () => void } | undefined;

  const server = createServer((client) => {
    const upstream = connect(to.port, to.host);
    let isHeld = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (bytes) => {
      const found = trap !== undefined && bytes.includes(trap.text) ? trap : undefined;
      if (found) {
        isHeld = true;
        trap = undefined;
      }
      upstream.write(bytes, () => found?.sprung());
    });
    upstream.on('data', (bytes) => {
      if (!isHeld) client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    holdAnswerTo: (text) =>
      new Promise((resolve) => {
        trap = { text, sprung: resolve };
      }),
    cut,
    async close() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
