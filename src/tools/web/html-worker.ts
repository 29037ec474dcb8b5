// The thread that reads HTML, so that a page which takes minutes holds nobody up and can be given up on.
import { parentPort } from 'node:worker_threads';
import { htmlToMarkdown, type ReadableText } from './html-to-markdown.js';

export interface ConversionJob {
  id: number;
  html: string;
  baseUrl: string;
}

export type ConversionAnswer = { id: number; text: ReadableText } | { id: number; failed: true };

parentPort?.on('message', ({ id, html, baseUrl }: ConversionJob) => {
  let answer: ConversionAnswer;
  try {
    answer = { id, text: htmlToMarkdown(html, baseUrl) };
  } catch {
    // Nesting without end, for one: the stack overflows, the thread does not.
    answer = { id, failed: true };
  }
  parentPort?.postMessage(answer, []);
});

// Everything is loaded: from now on time is a document's own.
parentPort?.postMessage('ready', []);
