// Turns an HTML document into Markdown: the article when there is one, else everything. Slow on hostile input: call it in a worker.
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';

export interface ReadableText {
  title: string;
  markdown: string;
}

/** As much of the DOM as is used here: the compiler's own DOM types would come over the whole program. */
interface HtmlNode {
  textContent: string | null;
  getAttribute(name: string): string | null;
}
interface HtmlDocument {
  body: HtmlNode;
  querySelector(selector: string): HtmlNode | null;
}

/** Above this many elements looking for the article costs too much; the whole document is taken. */
const maxElementsToWeigh = 20_000;
/** An "article" shorter than this is more likely a teaser than the content. */
const minimumArticleLength = 500;

function parse(html: string): HtmlDocument {
  // The parser wants the outer elements that HTML lets authors leave out.
  const isWhole = /<html[\s>]/i.test(html) && /<body[\s>]/i.test(html);
  const window: unknown = parseHTML(isWhole ? html : `<html><head></head><body>${html}</body></html>`);
  return (window as { document: HtmlDocument }).document;
}

function createTurndown(baseUrl: string): TurndownService {
  const turndown = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' });
  turndown.remove(['script', 'style', 'noscript', 'iframe', 'template', 'title', 'object']);
  turndown.addRule('links', {
    filter: (node) => node.nodeName === 'A',
    replacement(content, node) {
      const text = content.trim().replace(/\s+/g, ' ');
      const href = (node as unknown as HtmlNode).getAttribute('href') ?? '';
      const url = URL.canParse(href, baseUrl) ? new URL(href, baseUrl) : undefined;
      const isUseful = url !== undefined && /^https?:$/.test(url.protocol) && text !== '' && !href.startsWith('#');
      return isUseful ? `[${text}](${url.href})` : text;
    },
  });
  turndown.addRule('images', {
    filter: 'img',
    replacement: (_content, node) => {
      const alt = ((node as unknown as HtmlNode).getAttribute('alt') ?? '').trim();
      return alt === '' ? '' : `[image: ${alt}]`;
    },
  });
  turndown.addRule('cells', {
    filter: ['td', 'th'],
    replacement: (content) => ` ${content.trim().replace(/\s+/g, ' ')} |`,
  });
  turndown.addRule('rows', { filter: 'tr', replacement: (content) => `\n|${content}` });
  turndown.addRule('tables', { filter: 'table', replacement: (content) => `\n\n${content.trim()}\n\n` });
  turndown.addRule('table sections', { filter: ['thead', 'tbody', 'tfoot'], replacement: (content) => content });
  return turndown;
}

function findArticle(document: HtmlDocument): { title: string; element: HtmlNode } | undefined {
  try {
    const reader = new Readability<HtmlNode>(document, {
      maxElemsToParse: maxElementsToWeigh,
      serializer: (node: unknown) => node as HtmlNode,
    });
    const article = reader.parse();
    if (!article?.content || (article.length ?? 0) < minimumArticleLength) return undefined;
    return { title: article.title ?? '', element: article.content };
  } catch {
    return undefined;
  }
}

/** @param baseUrl what relative links are relative to */
export function htmlToMarkdown(html: string, baseUrl: string): ReadableText {
  const document = parse(html);
  const title = (document.querySelector('title')?.textContent ?? '').trim().replace(/\s+/g, ' ');
  const article = findArticle(document);
  // Looking for the article takes the document apart, so the whole of it is parsed again.
  const element = article?.element ?? parse(html).body;
  const markdown = createTurndown(baseUrl).turndown(element);
  return { title: article?.title || title, markdown: markdown.trim() };
}
