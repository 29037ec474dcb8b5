// The four web tools: every failure of the web is a result that the model can read.
import { errorResult, successResult, type Tool, type ToolDefinition, type ToolResult } from '../tool-definition.js';
import { PageError } from './page-error.js';
import type { PageText } from './page-text.js';
import type { SearchEngine } from './search-engine.js';
import { findSnippets } from './snippets.js';
import { performWebSearch, readWebPage, scrollWebPage, searchWebPage } from './web-definitions.js';
import type { WebSession } from './web-session.js';

export interface WebToolsOptions {
  engine: SearchEngine;
  /** Of the one run that the tools are made for. */
  session: WebSession;
}

const tool = <Input>(definition: ToolDefinition<Input>, run: Tool<Input>['run']): Tool<Input> => ({ definition, run });

const readable = async (work: () => Promise<string>): Promise<ToolResult> => {
  try {
    return successResult(await work());
  } catch (error) {
    if (error instanceof PageError) return errorResult(error.code, error.message);
    throw error;
  }
};

const heading = (page: PageText): string =>
  [page.title === '' ? [] : [`Title: ${page.title}`], `Address: ${page.url}`].flat().join('\n');

function showPage(page: PageText, number: number): string {
  const text = page.pages[number - 1];
  const count = page.pages.length;
  if (text === undefined)
    throw new PageError('NO_SUCH_PAGE', `This address has ${count} page${count === 1 ? '' : 's'}.`);
  const more = number < count ? `\n\n[Page ${number} of ${count}. scroll_web_page shows the others.]` : '';
  return `${heading(page)}\nPage: ${number} of ${count}\n\n${text.trim() === '' ? '[no text]' : text}${more}`;
}

function showSnippets(page: PageText, query: string): string {
  const { snippets, total } = findSnippets(page.pages, query);
  if (total === 0) return `${heading(page)}\n\nNothing on its ${page.pages.length} page(s) matches "${query}".`;
  const shown = snippets.map(({ page: number, text }) => `[page ${number}] ${text}`);
  const rest = total > snippets.length ? [`[${total - snippets.length} more passages were left out]`] : [];
  return [heading(page), ...shown, ...rest].join('\n\n');
}

/** For one run: what it has read is remembered in `session` and nowhere else. */
export const createWebTools = ({ engine, session }: WebToolsOptions) => [
  tool(performWebSearch, ({ query }, { signal }) =>
    readable(async () => {
      const hits = await engine.search(query, signal);
      if (hits.length === 0) return `Nothing was found for "${query}".`;
      return hits.map((hit, place) => `${place + 1}. ${hit.title}\n   ${hit.url}\n   ${hit.excerpt}`).join('\n\n');
    }),
  ),
  tool(readWebPage, ({ url, force_refresh }, { signal }) =>
    readable(async () => showPage(await session.read(url, { forceRefresh: force_refresh ?? false, signal }), 1)),
  ),
  tool(searchWebPage, ({ url, query }, { signal }) =>
    readable(async () => showSnippets(await session.read(url, { forceRefresh: false, signal }), query)),
  ),
  tool(scrollWebPage, ({ url, page }, { signal }) =>
    readable(async () => showPage(await session.read(url, { forceRefresh: false, signal }), page)),
  ),
];
