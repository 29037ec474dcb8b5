// Frames that are written to many sockets at the end of a turn: in one order with what is sent, together, and never without bound.
import { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { expect, test } from 'vitest';
import { PacedSocket, createWriteBatch } from '../../../src/surfaces/graphql/paced-socket.js';

/** A socket that is written to as ws writes; `isStuck`: nobody reads. */
function createSocket() {
  const writes: string[] = [];
  let isStuck = false;
  let release: (() => void) | undefined;
  const written = (text: string, done: () => void): void => {
    writes.push(text);
    if (isStuck) release = done;
    else done();
  };
  const stream = new Duplex({
    read() {},
    write: (chunk: Buffer, _encoding, done) => written(chunk.toString(), done),
    writev: (chunks: { chunk: Buffer }[], done) => written(chunks.map(({ chunk }) => chunk.toString()).join('+'), done),
    decodeStrings: true,
  });
  const socket = {
    readyState: WebSocket.OPEN as number,
    isPaused: false,
    get bufferedAmount() {
      return stream.writableLength;
    },
    send: (data: string, done: () => void) => stream.write(data, done),
    close: () => {
      stream.write('close');
      socket.readyState = WebSocket.CLOSING;
    },
    pause: () => (socket.isPaused = true),
    resume: () => (socket.isPaused = false),
  };
  const paced = new PacedSocket(socket as unknown as WebSocket, stream, createWriteBatch());
  return {
    paced,
    socket,
    writes,
    stick: () => (isStuck = true),
    unstick: () => {
      isStuck = false;
      release?.();
    },
  };
}

const frames = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text));

test('frames leave at the end of the turn, those of one socket together and in their order', async () => {
  const { paced, writes } = createSocket();
  paced.write(frames('a'));
  expect(writes).toEqual([]);
  await nextTurn();
  paced.write(frames('b'));
  paced.write(frames('c', 'd'));
  paced.write(frames('e'));
  await nextTurn();
  paced.write(frames('f', 'g'));
  await nextTurn();
  expect(writes).toEqual(['a', 'b+c+d+e', 'f+g']);
});

test('what is sent in the same turn keeps its place between frames', async () => {
  const { paced, writes } = createSocket();
  paced.write(frames('a'));
  void paced.send('b');
  paced.write(frames('c'));
  paced.write(frames('d'));
  void paced.send('e');
  await nextTurn();
  expect(writes.join('+')).toBe('a+b+c+d+e');
});

test('frames leave before the socket closes, and none afterwards', async () => {
  const { paced, socket, writes } = createSocket();
  paced.write(frames('a'));
  paced.close(1000, '');
  paced.write(frames('b'));
  await nextTurn();
  const closing = createSocket();
  closing.paced.write(frames('c'));
  closing.socket.readyState = WebSocket.CLOSING;
  await nextTurn();
  expect(socket.readyState).toBe(WebSocket.CLOSING);
  expect([writes, closing.writes]).toEqual([['a', 'close'], []]);
});

test('a socket that nobody reads is not ready any more, also within one turn, until what waits is gone', async () => {
  const { paced, stick, unstick, writes } = createSocket();
  const size = 400_000;
  stick();
  let written = 0;
  for (; written < 100 && paced.isReady(); written += 1) paced.write(frames('x'.repeat(size)));
  // One more than is counted: the last one waits for the end of the turn.
  expect(written).toBe(4);
  await nextTurn();
  expect(paced.isReady()).toBe(false);
  unstick();
  await nextTurn();
  expect(paced.isReady()).toBe(true);
  expect(writes.join('+').length).toBe(4 * size + 3);
});

test('what is sent counts as well', async () => {
  const { paced, stick, unstick } = createSocket();
  stick();
  const sent = paced.send('x'.repeat(1_500_000));
  expect(paced.isReady()).toBe(false);
  unstick();
  await sent;
  expect(paced.isReady()).toBe(true);
});
