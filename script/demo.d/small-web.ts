// A small web of real documents and a search endpoint in the shape of SearXNG's, for the demo and for tests: no network is needed.
import { readFile, readdir } from 'node:fs/promises';
import { startLoopbackServer, type LoopbackServer } from './loopback-server.js';

export interface SmallWeb {
  /** Where the documents are: `${siteUrl}/ile-vierge` is one. */
  siteUrl: string;
  /** What SEARXNG_URL takes. */
  searchUrl: string;
  /** The paths that were asked for at the site, and the queries at the search endpoint, in order. */
  visits: string[];
  queries: string[];
  close(): Promise<void>;
}

interface Document {
  path: string;
  title: string;
  html: string;
  words: string[];
  start: string;
}

const folder = new URL('documents/', import.meta.url);
const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

async function loadDocuments(): Promise<Document[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.html')).sort();
  return Promise.all(
    files.map(async (name) => {
      const html = await readFile(new URL(name, folder), 'utf8');
      const article = /<article>([^]*)<\/article>/.exec(html)?.[1] ?? html;
      const text = article
        .replace(/<[^>]+>/g, ' ')
        .replace(/\s+/g, ' ')
        .trim();
      const title = /<title>([^<]*)/.exec(html)?.[1] ?? name;
      return { path: `/${name.slice(0, -5)}`, title, html, words: wordsOf(text), start: text.slice(0, 200) };
    }),
  );
}

/** How many of the query's words a document has, rare words counting more. */
function score(document: Document, query: string[], all: Document[]): number {
  return query
    .filter((word) => document.words.includes(word))
    .reduce((sum, word) => sum + 1 / all.filter((other) => other.words.includes(word)).length, 0);
}

function searchAnswer(siteUrl: string, documents: Document[], query: string): object {
  const ranked = documents
    .map((document) => ({ document, score: score(document, wordsOf(query), documents) }))
    .filter((hit) => hit.score > 0)
    .sort((a, b) => b.score - a.score);
  return {
    query,
    number_of_results: ranked.length,
    results: ranked.map(({ document, score }, place) => ({
      url: siteUrl + document.path,
      title: document.title,
      content: document.start,
      engine: 'small web',
      engines: ['small web'],
      positions: [place + 1],
      category: 'general',
      score,
    })),
    answers: [],
    corrections: [],
    infoboxes: [],
    suggestions: [],
    unresponsive_engines: [],
  };
}

export async function startSmallWeb(): Promise<SmallWeb> {
  const documents = await loadDocuments();
  const visits: string[] = [];
  const queries: string[] = [];

  const site: LoopbackServer = await startLoopbackServer((request, response) => {
    const path = request.url ?? '/';
    visits.push(path);
    const found = documents.find((document) => document.path === path);
    response.writeHead(found ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' });
    response.end(found?.html ?? '<title>Not here</title><p>There is no such document.</p>');
  });
  const search = await startLoopbackServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const query = searchParams.get('q') ?? '';
    if (pathname !== '/search' || searchParams.get('format') !== 'json') {
      response.writeHead(403).end();
      return;
    }
    queries.push(query);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(searchAnswer(site.url, documents, query)));
  });

  return {
    siteUrl: site.url,
    searchUrl: search.url,
    visits,
    queries,
    close: async () => {
      await Promise.all([site.close(), search.close()]);
    },
  };
}
