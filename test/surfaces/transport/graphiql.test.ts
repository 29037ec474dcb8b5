// GraphiQL, in a real browser when there is one: it works without the internet, with its key, and its subscriptions are live.
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceSecret, eventually, startToyService, type ToyService } from './toy-service.js';

let service: ToyService;
beforeAll(async () => {
  service = await startToyService();
});
afterAll(() => service.close());

const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

/** Node's fetch does not let a caller choose the Host. */
const getPage = (headers: Record<string, string>, from = service): Promise<string> =>
  new Promise((resolve, reject) => {
    request(from.graphqlUrl, { headers: { ...html, ...headers } }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
      response.on('end', () => resolve(text));
    })
      .on('error', reject)
      .end();
  });

describe('the page', () => {
  test('is served to browsers only, with a policy that lets in nothing from elsewhere', async () => {
    const page = await fetch(service.graphqlUrl, { headers: html });
    expect(page.headers.get('content-type')).toContain('text/html');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).not.toMatch(/https?:|unsafe-eval|\*/);
    expect(await page.text()).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect((await fetch(service.graphqlUrl, { headers: { accept: 'application/json' } })).status).toBe(401);
  });

  test('carries the development key for this machine alone', async () => {
    expect(await getPage({})).toContain(aliceSecret);
    expect(await getPage({ host: `localhost:${service.port}` })).toContain(aliceSecret);
    expect(await getPage({ host: `[::1]:${service.port}` })).toContain(aliceSecret);
    const strangers: Record<string, string>[] = [
      { host: `evil.example:${service.port}` },
      { host: '127.0.0.1.evil.example' },
      { host: 'localhost.evil.example' },
      { host: '192.168.0.7' },
      { host: 'localhost@evil.example' },
      { 'x-forwarded-for': '203.0.113.7' },
      { forwarded: 'for=203.0.113.7' },
    ];
    for (const headers of strangers) expect(await getPage(headers)).not.toContain(aliceSecret);
  });

  test('carries no key when the server listens on more than loopback, and does not exist when switched off', async () => {
    const wide = await startToyService({ http: { host: '0.0.0.0' } });
    expect(await getPage({ host: `127.0.0.1:${wide.port}` }, wide)).not.toContain(aliceSecret);
    await wide.close();
    const off = await startToyService({ graphql: { graphiql: { enabled: false, developmentSecret: aliceSecret } } });
    expect((await fetch(off.graphqlUrl, { headers: html })).status).toBe(401);
    expect((await fetch(`${off.graphqlUrl}/graphiql/graphiql.js`)).status).toBe(404);
    await off.close();
  });

  test('cannot be broken out of by a key', async () => {
    const secret = '</script><script>alert(1)</script>';
    const odd = await startToyService({ graphql: { graphiql: { enabled: true, developmentSecret: secret } } });
    expect(await getPage({}, odd)).not.toContain('<script>alert');
    await odd.close();
  });

  test('has assets that are cached by their content', async () => {
    const first = await fetch(`${service.graphqlUrl}/graphiql/start.js`);
    const etag = first.headers.get('etag') ?? '';
    expect([first.status, etag]).toEqual([200, expect.stringMatching(/^".{22}"$/)]);
    const again = await fetch(`${service.graphqlUrl}/graphiql/start.js`, { headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);
  });
});

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

describe.skipIf(executablePath === undefined)('in a browser', () => {
  let browser: Browser;
  let page: Page;
  const requested = new Set<string>();
  const mistakes: string[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
      ],
    });
    page = await browser.newPage();
    page.on('request', (outgoing) => requested.add(new URL(outgoing.url()).origin));
    page.on('console', (message) => {
      if (message.type() === 'error') mistakes.push(message.text());
    });
    page.on('pageerror', (error) => mistakes.push(error.message));
  });
  afterAll(() => browser.close());

  const open = async (path = '') => {
    await page.goto(service.graphqlUrl + path);
    await page.waitForSelector('button[aria-label*="Execute"]');
  };
  const runIt = () => page.click('button[aria-label*="Execute"]');
  const seen = (text: string) => page.waitForSelector(`.result-window:has-text("${text}")`, { timeout: 10_000 });

  test('opens with examples in tabs and the key in its headers, and runs a query', async () => {
    await open(`?query=${encodeURIComponent('{ me }')}`);
    const text = await page.textContent('body');
    for (const tab of ['CreateThread', 'SetContent', 'Append', 'Watch', 'Overview']) expect(text).toContain(tab);
    await runIt();
    await seen('user_alice');
  });

  test('shows a subscription live', async () => {
    await page.evaluate('localStorage.clear()');
    await open(`?query=${encodeURIComponent('subscription { events { number } }')}`);
    await runIt();
    await eventually(() => service.sources.open.size === 1, 'the subscription is open');
    service.sources.push({ event: { number: 4711 } });
    await seen('4711');
    service.sources.push({ event: { number: 4712 } });
    await seen('4712');
    await page.click('button[aria-label*="Stop"]');
    await eventually(() => service.sources.open.size === 0, 'the subscription is over');
    expect(service.sources.counts).toMatchObject({ opened: 1, returned: 1 });
  });

  test('changes to another tab at the first click, for a newcomer', async () => {
    const fresh = await browser.newPage({ viewport: { width: 1280, height: 760 } });
    await fresh.goto(service.graphqlUrl);
    await fresh.waitForSelector('.graphiql-tab-button');
    await fresh.waitForTimeout(1500);
    // A tab that is displaced jumps from under the pointer, and the click misses it.
    const displacements = `[...document.querySelectorAll('.graphiql-tab')].map((tab) => getComputedStyle(tab).transform)`;
    expect(new Set(await fresh.evaluate<string[]>(displacements))).toEqual(new Set(['none']));
    await fresh.locator('.graphiql-tab-button', { hasText: 'Watch' }).click();
    await fresh.waitForSelector('.graphiql-tab-active:has-text("Watch")', { timeout: 2000 });
    await fresh.close();
  });

  test('keeps its tabs over a reload, and opens no more', async () => {
    await page.goto('about:blank');
    await open();
    await page.evaluate('localStorage.clear()');
    await open();
    await page.waitForTimeout(1000);
    const countTabs = () => page.locator('.graphiql-tab').count();
    const before = await countTabs();
    await page.reload();
    await page.waitForSelector('button[aria-label*="Execute"]');
    expect([before, await countTabs()]).toEqual([6, 6]);
  });

  test('needs nothing from elsewhere, breaks no policy, and stores no key', async () => {
    expect([...requested]).toEqual([service.url]);
    expect(mistakes).toEqual([]);
    expect(await page.evaluate('JSON.stringify(Object.entries(localStorage))')).not.toContain('key_of_alice');
  });
});
