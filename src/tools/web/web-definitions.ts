// The web as a model sees it.
import { z } from 'zod';
import { toolInput, type ToolDefinition } from '../tool-definition.js';

const notBlank = (description: string) =>
  z
    .string()
    .refine((text) => text.trim() !== '', 'must not be blank')
    .refine((text) => text.length <= 1000, 'must have at most 1000 characters')
    .describe(description);

const address = z
  .string()
  .refine((text) => text.length <= 4000, 'must have at most 4000 characters')
  .describe('The address, beginning with http:// or https://.');

const searchInput = toolInput({ query: notBlank('What to look for, as you would type it into a search engine.') });
const readInput = toolInput({
  url: address,
  force_refresh: z.boolean().optional().describe('Fetch it again although it was read before in this run.'),
});
const searchPageInput = toolInput({ url: address, query: notBlank('The words to look for; case does not matter.') });
const scrollInput = toolInput({ url: address, page: z.int().min(1).describe('Which page of it, counted from 1.') });

export const performWebSearch = {
  name: 'perform_web_search',
  description:
    'Searches the web. The result is a list of titles, addresses and excerpts; read a page before you rely on it.',
  input: searchInput,
} as const satisfies ToolDefinition<z.output<typeof searchInput>>;

export const readWebPage = {
  name: 'read_web_page',
  description: 'Fetches a web page and returns the first page of its text as Markdown, with the number of pages.',
  input: readInput,
} as const satisfies ToolDefinition<z.output<typeof readInput>>;

export const searchWebPage = {
  name: 'search_web_page',
  description: 'Looks for words in all pages of a web page and returns the passages around them.',
  input: searchPageInput,
} as const satisfies ToolDefinition<z.output<typeof searchPageInput>>;

export const scrollWebPage = {
  name: 'scroll_web_page',
  description: 'Returns another page of the text of a web page.',
  input: scrollInput,
} as const satisfies ToolDefinition<z.output<typeof scrollInput>>;

export const webDefinitions = [performWebSearch, readWebPage, searchWebPage, scrollWebPage] as const;
