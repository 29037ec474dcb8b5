// A WebSocket client that does no more than count frames: thousands of them fit into one process beside what they measure.
import { connect, type Socket } from 'node:net';

/** A WebSocket client that does no more than count frames. */
export interface Counter {
  socket: Socket;
  messages: number;
  first: string | undefined;
  send(text: string): void;
}

const maskedFrame = (text: string): Buffer => {
  const body = Buffer.from(text);
  const head =
    body.length < 126
      ? Buffer.from([0x81, 0x80 | body.length, 0, 0, 0, 0])
      : Buffer.from([0x81, 0xfe, body.length >> 8, body.length & 255, 0, 0, 0, 0]);
  return Buffer.concat([head, body]);
};

export async function open(url: string, onMessage: (counter: Counter, body: Buffer) => void): Promise<Counter> {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  const counter: Counter = {
    socket,
    messages: 0,
    first: undefined,
    send: (text) => void socket.write(maskedFrame(text)),
  };
  socket.write(
    `GET /graphql HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n`,
  );
  let rest: Buffer = Buffer.alloc(0);
  let isOpen = false;
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      let data = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
      if (!isOpen) {
        const end = data.indexOf('\r\n\r\n');
        if (end < 0) {
          rest = data;
          return;
        }
        isOpen = true;
        data = data.subarray(end + 4);
        resolve();
      }
      while (data.length >= 2) {
        let length = data[1]! & 127;
        let head = 2;
        if (length === 126) {
          if (data.length < 4) break;
          length = data.readUInt16BE(2);
          head = 4;
        } else if (length === 127) {
          if (data.length < 10) break;
          length = Number(data.readBigUInt64BE(2));
          head = 10;
        }
        if (data.length < head + length) break;
        if ((data[0]! & 15) === 1) onMessage(counter, data.subarray(head, head + length));
        data = data.subarray(head + length);
      }
      rest = data;
    });
  });
  return counter;
}
