// What every answer carries is in its head, however the head is written.
import { once } from 'node:events';
import { createServer, IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { HttpAnswer } from '../../../src/infra/http-answer.js';

const ways: Record<string, (answer: HttpAnswer) => void> = {
  'a plain head': (answer) => answer.writeHead(200, { 'content-type': 'text/plain', own: 'yes' }),
  'a head with a reason': (answer) => answer.writeHead(200, 'Fine', { own: 'yes' }),
  'a list of headers': (answer) => answer.writeHead(200, ['own', 'yes']),
  'headers set one by one': (answer) => {
    answer.setHeader('own', 'yes');
    answer.writeHead(200);
  },
  'both ways': (answer) => {
    answer.setHeader('own', 'no');
    answer.writeHead(200, { own: 'yes' });
  },
  'no head at all': (answer) => answer.setHeader('own', 'yes'),
};

it.each(Object.entries(ways))('%s', async (_name, write) => {
  const server = createServer({ IncomingMessage, ServerResponse: HttpAnswer }, (_request, answer) => {
    answer.commonHeaders = ['x-request-id', 'one', 'vary', 'Origin'];
    write(answer);
    answer.end('body');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  expect(await answer.text()).toBe('body');
  expect(Object.fromEntries(answer.headers)).toMatchObject({ 'x-request-id': 'one', vary: 'Origin', own: 'yes' });
  server.close();
  server.closeAllConnections();
});

it('lets an answer say something else than the others', async () => {
  const server = createServer({ IncomingMessage, ServerResponse: HttpAnswer }, (request, answer) => {
    answer.commonHeaders = ['vary', 'Origin'];
    if (request.url === '/set') answer.setHeader('vary', 'Accept');
    answer.writeHead(200, request.url === '/head' ? { vary: 'Accept' } : {});
    answer.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  for (const path of ['head', 'set']) {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/${path}`);
    expect(answer.headers.get('vary')).toBe('Accept');
  }
  server.close();
  server.closeAllConnections();
});
