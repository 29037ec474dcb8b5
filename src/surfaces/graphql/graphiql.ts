// GraphiQL, served whole from this process: it works without the internet and runs no script of anybody else.
import { createHash } from 'node:crypto';
import type { HttpExchange } from '../../shared/http-exchange.js';
import { exampleTabs } from './graphiql-examples.js';

export interface Graphiql {
  handlePage(exchange: HttpExchange): void;
  /** @returns false when there is no such asset */
  handleAsset(exchange: HttpExchange): Promise<boolean>;
}

interface Asset {
  contentType: string;
  body: Buffer;
  etag: string;
}

const assetPath = '/graphql/graphiql';
const title = 'Scratchpad GraphiQL';
const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#e10098" d="M3 1h10v14H3z"/><path stroke="#fff" d="M5 5h6M5 8h6M5 11h4"/></svg>',
)}`;

/** Scripts only from here; styles also inline, because the editor makes them; connections to this server alone; no frames around it. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "font-src 'self' data:",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const startScript = `
self.MonacoEnvironment = {
  globalAPI: false,
  getWorkerUrl: (_module, label) => '${assetPath}/worker-' + (['json', 'graphql'].includes(label) ? label : 'editor') + '.js',
};
const options = JSON.parse(document.getElementById('options').textContent);
// Tell GraphiQL what its active tab holds: otherwise every reload opens one more, empty tab.
try {
  const { tabs, activeTabIndex } = JSON.parse(localStorage.getItem('graphiql:tabState'));
  const { query, variables } = tabs[activeTabIndex];
  const linked = new URL(location.href).searchParams.get('query');
  if (query && (!linked || linked === query)) Object.assign(options, { query, variables: variables ?? undefined });
} catch {
  // The first visit: nothing is stored.
}
YogaGraphiQL.renderYogaGraphiQL(document.getElementById('root'), options);
`;

/** Five megabytes that most processes never need: loaded with the first page. */
async function loadAssets(): Promise<ReadonlyMap<string, Asset>> {
  const { css, js, editorWorkerService, graphqlWorker, jsonWorker } =
    await import('@graphql-yoga/render-graphiql/graphiql');
  const script = 'text/javascript; charset=utf-8';
  const files: [name: string, contentType: string, text: string][] = [
    ['graphiql.css', 'text/css; charset=utf-8', css],
    ['graphiql.js', script, js],
    ['start.js', script, startScript],
    ['worker-editor.js', script, editorWorkerService],
    ['worker-graphql.js', script, graphqlWorker],
    ['worker-json.js', script, jsonWorker],
  ];
  return new Map(
    files.map(([name, contentType, text]) => {
      const body = Buffer.from(text);
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
      return [`${assetPath}/${name}`, { contentType, body, etag }];
    }),
  );
}

/**
 * The tabs' animation library leaves every tab displaced on paper and lets it jump from under the pointer that presses it, so
 * that the first click on a tab goes nowhere. Without displacement a tab is where it is seen.
 */
const tabFix = '.graphiql-tab { transform: none !important; }';

/** JSON that cannot end the script element that it stands in. */
const inlineJson = (value: unknown): string => JSON.stringify(value).replaceAll('<', String.raw`\u003c`);

function renderPage(secret: string | undefined): string {
  const headers = { Authorization: `Bearer ${secret ?? '<your API key>'}` };
  const options = {
    title,
    endpoint: '/graphql',
    headers: JSON.stringify(headers, undefined, 2),
    // A key that a browser remembers outlives its revocation, and the database that knew it.
    shouldPersistHeaders: false,
    defaultTabs: exampleTabs.map((tab) => ({ ...tab, headers: JSON.stringify(headers, undefined, 2) })),
    method: 'POST',
  };
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>${title}</title>
    <link rel="icon" href="${icon}">
    <link rel="stylesheet" href="${assetPath}/graphiql.css">
    <style>${tabFix}</style>
  </head>
  <body class="no-focus-outline">
    <noscript>GraphiQL needs JavaScript.</noscript>
    <div id="root"></div>
    <script type="application/json" id="options">${inlineJson(options)}</script>
    <script src="${assetPath}/graphiql.js"></script>
    <script src="${assetPath}/start.js"></script>
  </body>
</html>
`;
}

/**
 * @param developmentSecret shown to callers on this machine only: who reaches the page from elsewhere, or by a foreign name
 * that resolves to this machine, gets a page without it
 */
export function createGraphiql(developmentSecret: string | undefined): Graphiql {
  let assets: Promise<ReadonlyMap<string, Asset>> | undefined;
  return {
    handlePage(exchange) {
      const { response, loopback } = exchange;
      exchange.note({ operation: 'graphiql' });
      response.writeHead(200, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': contentSecurityPolicy,
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      });
      response.end(renderPage(loopback ? developmentSecret : undefined));
    },

    async handleAsset(exchange) {
      const { request, response, path } = exchange;
      const asset = (await (assets ??= loadAssets())).get(path);
      if (!asset || request.method !== 'GET') return false;
      exchange.note({ operation: 'graphiql' });
      const fresh = request.headers['if-none-match'] === asset.etag;
      // Workers have a policy of their own: the answer's.
      response.setHeader('content-security-policy', contentSecurityPolicy);
      response.setHeader('cache-control', 'no-cache');
      response.setHeader('etag', asset.etag);
      if (fresh) response.writeHead(304).end();
      else
        response
          .writeHead(200, { 'content-type': asset.contentType, 'content-length': asset.body.length })
          .end(asset.body);
      return true;
    },
  };
}
