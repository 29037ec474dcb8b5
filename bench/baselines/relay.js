// What is posted to a name is appended to its list and published; whoever has a WebSocket open under that name is told. http, ws and
// ioredis, nothing between.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import { WebSocketServer } from 'ws';

const redis = new Redis(process.env.REDIS_URL);
const subscriber = new Redis(process.env.REDIS_URL);
const listeners = new Map();

async function append(request, response) {
  const name = decodeURIComponent(request.url.slice(1));
  const { content } = JSON.parse(await text(request));
  const row = JSON.stringify({ id: randomUUID(), content, created_at: new Date().toISOString() });
  await Promise.all([redis.rpush(`entries:${name}`, row), redis.publish(name, row)]);
  response.setHeader('content-type', 'application/json');
  response.end(row);
}

async function join(socket, url) {
  const name = decodeURIComponent(url.slice(1));
  const sockets = listeners.get(name) ?? new Set();
  listeners.set(name, sockets.add(socket));
  socket.on('close', () => sockets.delete(socket));
  await subscriber.subscribe(name);
  socket.send('ready');
}

subscriber.on('message', (name, row) => {
  for (const socket of listeners.get(name) ?? []) socket.send(row);
});

const server = createServer((request, response) => void append(request, response));
new WebSocketServer({ server }).on('connection', (socket, { url }) => void join(socket, url));
server.listen(0, '127.0.0.1', () => process.send({ url: `http://127.0.0.1:${server.address().port}` }));
