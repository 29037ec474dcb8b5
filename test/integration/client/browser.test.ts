// The client in a page: small, without anything of Node, and at work in a real browser when there is one.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium, type Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLoopbackServer, type LoopbackServer } from '../../../script/demo.d/loopback-server.js';
import { bundleForBrowsers } from '../../support/client-bundle.js';
import { startService, type Service } from '../../support/service.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';

const root = path.resolve(import.meta.dirname, '../../..');

describe('the bundle', () => {
  it('imports nothing, names nothing of Node, and is as small as the README says', async () => {
    const { code, imports } = await bundleForBrowsers(
      `export { createClient, ScratchpadError } from 'scratchpad/client';`,
    );
    expect(imports).toEqual([]);
    expect(code).not.toMatch(/["'`]node:|browser-external|\brequire\(|\bprocess\b|\bBuffer\b/);
    const kilobytes = gzipSync(code, { level: 9 }).length / 1000;
    const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
    const bound = Number(/(\d+(?:\.\d+)?) kB gzipped/.exec(readme)?.[1]);
    process.stdout.write(`The client is ${kilobytes.toFixed(2)} kB gzipped, of ${bound} kB.\n`);
    expect(kilobytes).toBeLessThanOrEqual(bound);
  });
});

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

/** What the page does; it tells its results by the title of the document, which every browser shows. */
const page = `
import { createClient, ScratchpadError } from 'scratchpad/client';

globalThis.use = async ({ url, apiKey }) => {
  const client = createClient({ url, apiKey });
  const thread = await client.threads.create();
  const pad = await client.scratchpads.create({ threadId: thread.id });
  const seen = (globalThis.seen = { padId: pad.id, events: [], entries: [] });
  (async () => {
    for await (const event of client.scratchpads.events(pad.id, { after: '' })) {
      seen.events.push(event.operation + ' ' + (event.entry?.content ?? event.content?.text ?? ''));
    }
    seen.events.push('the end');
  })();
  (async () => {
    for await (const entry of client.scratchpads.entries(pad.id)) seen.entries.push(entry.content);
  })();
  await client.scratchpads.setContent(pad.id, { text: 'Plan' });
  const entry = await client.scratchpads.appendEntry(pad.id, { content: 'From the page' });
  const refused = await client.scratchpads.appendEntry(pad.id, { content: ' ' }).catch((error) => error);
  const stranger = createClient({ url, apiKey: 'nobody' });
  const unknown = await stranger.threads.create().catch((error) => error);
  return {
    isListed: (await client.scratchpads.listEntries(pad.id)).items.some(({ id }) => id === entry.id),
    refused: [refused instanceof ScratchpadError, refused.code, typeof refused.requestId],
    unknown: unknown.code,
  };
};
`;

interface Seen {
  padId: string;
  events: string[];
  entries: string[];
}

describe.skipIf(executablePath === undefined)('a page of another origin', () => {
  let site: LoopbackServer;
  let service: Service;
  let proxy: TcpProxy;
  let browser: Browser;

  beforeAll(async () => {
    const { code } = await bundleForBrowsers(page);
    site = await startLoopbackServer((request, response) => {
      const isScript = request.url === '/page.js';
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8');
      response.end(
        isScript ? code : '<!doctype html><title>A page</title><script type="module" src="/page.js"></script>',
      );
    });
    service = await startService({ environment: { CORS_ORIGINS: site.url } });
    proxy = await startTcpProxy(service.url);
    browser = await chromium.launch({
      executablePath: executablePath ?? '',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-component-update',
        '--no-first-run',
      ],
    });
  });
  afterAll(async () => {
    await browser?.close();
    await proxy?.close();
    await service?.close();
    await site?.close();
  });

  it('creates, appends and follows, also when its connections are cut', async () => {
    const tab = await browser.newPage();
    const mistakes: string[] = [];
    tab.on('pageerror', (error) => mistakes.push(error.message));
    await tab.goto(site.url);
    await tab.waitForFunction('globalThis.use');
    const { secret, client } = await service.createTenant('Alice');
    const order = JSON.stringify({ url: proxy.url, apiKey: secret });
    expect(await tab.evaluate(`use(${order})`)).toEqual({
      isListed: true,
      refused: [true, 'BAD_USER_INPUT', 'string'],
      unknown: 'UNAUTHENTICATED',
    });
    await tab.waitForFunction(`seen.entries.length === 1 && seen.events.length >= 2`);
    const { padId } = await tab.evaluate<Seen>('seen');
    proxy.cut();
    const append =
      'mutation ($id: ID!) { appendScratchpadEntry(input: { scratchpadId: $id, content: "Later" }) { entry { id } } }';
    await client.run(append, { id: padId });
    await tab.waitForFunction(`seen.entries.length === 2 && seen.events.length === 3`);
    await client.run('mutation ($id: ID!) { deleteScratchpad(input: { scratchpadId: $id }) { deletedScratchpadId } }', {
      id: padId,
    });
    await tab.waitForFunction(`seen.events.at(-1) === 'the end'`);
    const { events, entries } = await tab.evaluate<Seen>('seen');
    expect(entries).toEqual(['From the page', 'Later']);
    // A replay tells the ledger before the content.
    expect(events.slice(0, 2).toSorted()).toEqual(['APPEND From the page', 'UPDATE Plan']);
    expect(events.slice(2)).toEqual(['APPEND Later', 'DELETE ', 'the end']);
    expect(mistakes).toEqual([]);
    await tab.close();
  });
});
