import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync, brotliCompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createToolbox } from '../../../src/tools/toolbox.js';
import { createPageFetcher, type PageFetcher, type PageFetcherOptions } from '../../../src/tools/web/fetch-page.js';
import { createHtmlConverter, type HtmlConverter } from '../../../src/tools/web/html-converter.js';
import { createSearchEngine } from '../../../src/tools/web/search-engine.js';
import { webDefinitions } from '../../../src/tools/web/web-definitions.js';
import { createWebSession } from '../../../src/tools/web/web-session.js';
import { createWebTools } from '../../../src/tools/web/web-tools.js';
import { startLoopbackServer, type LoopbackServer } from '../../support/http-server.js';
import { startSmallWeb, type SmallWeb } from '../../support/small-web.js';

/** Stands for the public internet; the rest of 127.0.0.0/8 stays what it is: refused. */
const isPermitted = (address: string) => address === '127.0.0.1';

let web: SmallWeb;
let converter: HtmlConverter;
let fetchers: PageFetcher[] = [];
/** Listens on a refused address, as our own stores do. */
let inner: LoopbackServer;
let outer: LoopbackServer;
let handle: (request: IncomingMessage, response: ServerResponse) => void;

beforeAll(async () => {
  web = await startSmallWeb();
  converter = createHtmlConverter();
  inner = await startLoopbackServer((_request, response) => response.end('the inside'), { host: '127.0.0.2' });
  outer = await startLoopbackServer((request, response) => handle(request, response));
});
afterAll(async () => {
  await Promise.all([web.close(), converter.close(), inner.close(), outer.close()]);
});
beforeEach(() => {
  handle = (_request, response) => response.end();
});
afterEach(async () => {
  await Promise.all(fetchers.map((fetcher) => fetcher.close()));
  fetchers = [];
});

function createTools(options: PageFetcherOptions = {}) {
  const ownFetcher = createPageFetcher({ isPermitted, timeoutMs: 5000, ...options });
  fetchers.push(ownFetcher);
  const session = createWebSession({ fetcher: ownFetcher, converter });
  const unexpected: unknown[] = [];
  const box = createToolbox({
    offered: webDefinitions,
    tools: createWebTools({ engine: createSearchEngine(web.searchUrl), session }),
    onUnexpectedError: (_name, error) => unexpected.push(error),
  });
  const run = async (name: string, input: object, signal = new AbortController().signal): Promise<string> =>
    (await box.execute({ id: 'c1', name, arguments: JSON.stringify(input) }, signal)).content;
  const read = (url: string, rest: object = {}) => run('read_web_page', { url, ...rest });
  return { run, read, session, unexpected };
}
const codeOf = (content: string): string => (JSON.parse(content) as { code: string }).code;

describe('the web tools', () => {
  it('search, read, look within and scroll', async () => {
    const { run, read, session } = createTools();
    const hits = await run('perform_web_search', { query: 'tallest stone lighthouse in Europe' });
    expect(hits.split('\n').slice(0, 2)).toEqual(['1. The lighthouse of Île Vierge', `   ${web.siteUrl}/ile-vierge`]);

    const page = await read(`${web.siteUrl}/ile-vierge`);
    expect(page).toContain('Title: The lighthouse of Île Vierge');
    expect(page).toContain('It is 82.5 metres high');
    expect(page).toContain('| Height of the tower | 82.5 m |');
    expect(page).not.toContain('<');

    const long = await read(`${web.siteUrl}/stepped-lens`);
    expect(long).toContain('Page: 1 of 2');
    expect(long.length).toBeLessThan(4300);
    expect(await run('scroll_web_page', { url: `${web.siteUrl}/stepped-lens`, page: 2 })).toContain(
      'Ships find their way by satellite',
    );
    expect(codeOf(await run('scroll_web_page', { url: `${web.siteUrl}/stepped-lens`, page: 3 }))).toBe('NO_SUCH_PAGE');
    const found = await run('search_web_page', { url: `${web.siteUrl}/stepped-lens`, query: 'cordouan' });
    expect(found).toMatch(/\[page 1\] ….*first large lens was lit at Cordouan.*July 1823/);
    expect(session.fetchedUrls()).toEqual([`${web.siteUrl}/ile-vierge`, `${web.siteUrl}/stepped-lens`]);
  });

  it('fetch an address once in a run, until they are told to refresh', async () => {
    const { run, read } = createTools();
    const url = `${web.siteUrl}/eddystone`;
    const visits = () => web.visits.filter((path) => path === '/eddystone').length;
    await Promise.all([read(url), read(`${url}#fragment`), run('search_web_page', { url, query: 'Smeaton' })]);
    expect(visits()).toBe(1);
    await read(url, { force_refresh: true });
    expect(visits()).toBe(2);
    const other = createTools();
    await other.read(url);
    expect(visits()).toBe(3);
  });

  it('answer every failure with a result that can be read', async () => {
    const { run, read, unexpected } = createTools();
    expect(codeOf(await read(`${web.siteUrl}/nowhere`))).toBe('HTTP_ERROR');
    expect(codeOf(await read('tides'))).toBe('INVALID_URL');
    expect(codeOf(await read('file:///etc/passwd'))).toBe('INVALID_URL');
    expect(codeOf(await read('ftp://127.0.0.1/'))).toBe('INVALID_URL');
    expect(codeOf(await read(outer.url.replace('//', '//me:secret@')))).toBe('INVALID_URL');
    expect(codeOf(await read('http://127.0.0.1:9/'))).toBe('UNREACHABLE');
    expect(await run('perform_web_search', { query: 'xylophone' })).toContain('Nothing was found');
    expect(unexpected).toEqual([]);
  });

  it('say when there is no search engine, or none that works', async () => {
    const search = { query: 'tides' };
    const ask = (url: string | undefined) => createSearchEngine(url).search(search.query, new AbortController().signal);
    await expect(ask(undefined)).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
    await expect(ask('http://127.0.0.1:9')).rejects.toMatchObject({ code: 'SEARCH_FAILED' });
    handle = (_request, response) => response.end('no JSON');
    await expect(ask(outer.url)).rejects.toMatchObject({ code: 'SEARCH_FAILED' });
    handle = (_request, response) => response.writeHead(403).end();
    await expect(ask(outer.url)).rejects.toMatchObject({ code: 'SEARCH_FAILED' });
    handle = (_request, response) =>
      response.end(JSON.stringify({ results: [{ url: 'javascript:alert(1)' }, null, { url: 'https://a.example/' }] }));
    expect(await ask(outer.url)).toEqual([{ title: '', url: 'https://a.example/', excerpt: '' }]);
  });
});

describe('read_web_page', () => {
  it('follows 5 redirects and not a sixth', async () => {
    const { read } = createTools();
    handle = (request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) response.writeHead(200, { 'content-type': 'text/plain' }).end('arrived');
      else response.writeHead(302, { location: `/${left - 1}` }).end();
    };
    expect(await read(`${outer.url}/5`)).toContain(`Address: ${outer.url}/0\nPage: 1 of 1\n\narrived`);
    expect(codeOf(await read(`${outer.url}/6`))).toBe('TOO_MANY_REDIRECTS');
  });

  it('stops at the limit of bytes, also when few bytes turn into many', async () => {
    const { read } = createTools();
    const five = 5 * 1024 * 1024;
    const send = (body: Buffer, encoding?: string) => {
      handle = (_request, response) =>
        response
          .writeHead(200, { 'content-type': 'text/plain', ...(encoding ? { 'content-encoding': encoding } : {}) })
          .end(body);
    };
    send(Buffer.alloc(five, 'x'));
    expect(await read(`${outer.url}/just`)).toContain('Page: 1 of 1311');
    send(Buffer.alloc(five + 1, 'x'));
    expect(codeOf(await read(`${outer.url}/over`))).toBe('TOO_LARGE');
    send(gzipSync(Buffer.alloc(30 * 1024 * 1024)), 'gzip');
    expect(codeOf(await read(`${outer.url}/bomb`))).toBe('TOO_LARGE');
    send(brotliCompressSync(Buffer.from('high water')), 'br');
    expect(await read(`${outer.url}/br`)).toContain('high water');
    send(Buffer.from('no gzip at all'), 'gzip');
    expect(codeOf(await read(`${outer.url}/broken`))).toBe('UNREACHABLE');
    send(Buffer.from('?'), 'snappy');
    expect(codeOf(await read(`${outer.url}/odd`))).toBe('UNREADABLE');
  });

  it('gives up after the time limit, wherever the time goes', async () => {
    const slow = { timeoutMs: 300 };
    handle = (_request, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).write('a bit');
    expect(codeOf(await createTools(slow).read(`${outer.url}/body`))).toBe('TIMEOUT');
    handle = () => {};
    expect(codeOf(await createTools(slow).read(`${outer.url}/head`))).toBe('TIMEOUT');
    handle = (_request, response) => setTimeout(() => response.writeHead(302, { location: '/next' }).end(), 100);
    expect(codeOf(await createTools(slow).read(`${outer.url}/hops`))).toBe('TIMEOUT');
    const hanging = { ...slow, resolve: () => new Promise<string[]>(() => {}) };
    expect(codeOf(await createTools(hanging).read('http://slow.example/'))).toBe('TIMEOUT');
  });

  it('lets go of the connection when the run is cancelled', async () => {
    const { run } = createTools();
    const hungUp = new Promise<void>((resolve) => {
      handle = (_request, response) => void response.on('close', resolve).writeHead(200).write('a bit');
    });
    const abort = new AbortController();
    const answer = run('read_web_page', { url: outer.url }, abort.signal);
    setTimeout(() => abort.abort(), 100);
    expect(codeOf(await answer)).toBe('CANCELLED');
    await hungUp;
  });

  it('reads other charsets and other kinds of text, and says what it cannot read', async () => {
    const { read } = createTools();
    const send = (type: string, body: Buffer) => {
      handle = (_request, response) => response.writeHead(200, type === '' ? {} : { 'content-type': type }).end(body);
    };
    send('text/html; charset=ISO-8859-1', Buffer.from('<p>Île Vierge</p>', 'latin1'));
    expect(await read(`${outer.url}/1`)).toContain('Île Vierge');
    send('text/html', Buffer.from('<meta charset="windows-1252"><p>Île Vierge</p>', 'latin1'));
    expect(await read(`${outer.url}/2`)).toContain('Île Vierge');
    send('', Buffer.from(' <!doctype html><p>tide'));
    expect(await read(`${outer.url}/3`)).toContain('\n\ntide');
    send('application/json', Buffer.from('{"tide": 1}'));
    expect(await read(`${outer.url}/4`)).toContain('{"tide": 1}');
    send('application/pdf', Buffer.from('%PDF'));
    expect(codeOf(await read(`${outer.url}/5`))).toBe('UNREADABLE');
    send('text/html; charset=klingon', Buffer.from('<p>tide</p>'));
    expect(await read(`${outer.url}/6`)).toContain('tide');
  });
});

describe('a page that is made to stall its reader', () => {
  it('is given up on, holds nobody else up, and the next page is read', async () => {
    const impatient = createHtmlConverter({ timeoutMs: 2500 });
    await impatient.convert('<p>warm</p>', 'https://a.example/');
    let longestBlockMs = 0;
    let last = performance.now();
    const watch = setInterval(() => {
      longestBlockMs = Math.max(longestBlockMs, performance.now() - last);
      last = performance.now();
    }, 10);
    const hostile = impatient.convert('<div>'.repeat(50_000), 'https://a.example/');
    await expect(hostile).rejects.toMatchObject({ code: 'UNREADABLE' });
    clearInterval(watch);
    expect(longestBlockMs).toBeLessThan(1000);
    expect(await impatient.convert('<p>after</p>', 'https://a.example/')).toMatchObject({ markdown: 'after' });
    await impatient.close();
    await expect(impatient.convert('x', 'https://a.example/')).rejects.toMatchObject({ code: 'UNREADABLE' });
  });
});

describe('what is not on the public internet', () => {
  const refused = async (url: string, options: PageFetcherOptions = {}) => {
    const { read } = createTools(options);
    expect(codeOf(await read(url))).toBe('ADDRESS_REFUSED');
  };

  it('cannot be read under any spelling of its address, and no connection is made', async () => {
    const before = inner.connections() + outer.connections();
    const { port } = inner;
    await refused(`http://127.0.0.2:${port}/`);
    for (const host of [
      '127.0.0.1',
      'localhost',
      '127.1',
      '2130706433',
      '0x7f000001',
      '017700000001',
      '0177.0.0.1',
      '0x7f.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[::]',
      '0.0.0.0',
      '169.254.169.254',
      '[fe80::1]',
      '10.0.0.1',
      '①②⑦.⓪.⓪.①',
      '127.0.0.1.',
    ]) {
      await refused(`http://${host}:${outer.port}/`, { isPermitted: undefined });
    }
    await refused(`https://127.0.0.1:${outer.port}/`, { isPermitted: undefined });
    expect(inner.connections() + outer.connections()).toBe(before);
  });

  it('cannot be reached through a redirect', async () => {
    const before = inner.connections();
    handle = (_request, response) => response.writeHead(302, { location: `${inner.url}/` }).end();
    await refused(`${outer.url}/`);
    handle = (_request, response) => response.writeHead(307, { location: 'file:///etc/passwd' }).end();
    expect(codeOf(await createTools().read(`${outer.url}/`))).toBe('INVALID_URL');
    expect(inner.connections()).toBe(before);
  });

  it('cannot be reached through a name, not even when one of its addresses is public', async () => {
    const before = inner.connections();
    await refused(`http://inner.example:${inner.port}/`, { resolve: async () => ['127.0.0.2'] });
    await refused(`http://mixed.example:${inner.port}/`, { resolve: async () => ['127.0.0.1', '127.0.0.2'] });
    await refused(`http://mixed.example:${inner.port}/`, { resolve: async () => ['127.0.0.1', '::ffff:127.0.0.2'] });
    expect(inner.connections()).toBe(before);
  });

  it('cannot be reached through a name that changes its meaning between check and connection', async () => {
    const before = inner.connections();
    let asked = 0;
    const resolve = async () => [asked++ === 0 ? '127.0.0.1' : '127.0.0.2'];
    handle = (_request, response) =>
      response.writeHead(200, { 'content-type': 'text/plain', connection: 'close' }).end('the outside');
    const { read } = createTools({ resolve });
    const url = `http://rebinding.example:${outer.port}/`;
    expect(await read(url)).toContain('the outside');
    expect(asked).toBe(1);
    expect(codeOf(await read(url, { force_refresh: true }))).toBe('ADDRESS_REFUSED');
    expect(asked).toBe(2);
    expect(inner.connections()).toBe(before);
  });

  it('is told from a name that does not exist', async () => {
    const { read } = createTools({ resolve: () => Promise.reject(new Error('ENOTFOUND')) });
    expect(codeOf(await read('http://nowhere.example/'))).toBe('UNREACHABLE');
  });
});
