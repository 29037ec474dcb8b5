// What is published on a channel goes to whoever has a WebSocket open under its name: ws and ioredis, nothing between.
import { Redis } from 'ioredis';
import { WebSocketServer } from 'ws';

const redis = new Redis(process.env.REDIS_URL);
const listeners = new Map();
const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });

async function join(socket, url) {
  const channel = decodeURIComponent(url.slice(1));
  const sockets = listeners.get(channel) ?? new Set();
  listeners.set(channel, sockets.add(socket));
  socket.on('close', () => sockets.delete(socket));
  await redis.subscribe(channel);
  socket.send('ready');
}

server.on('connection', (socket, { url }) => void join(socket, url));
redis.on('message', (channel, text) => {
  for (const socket of listeners.get(channel) ?? []) socket.send(text);
});
server.on('listening', () => process.send({ url: `ws://127.0.0.1:${server.address().port}` }));
