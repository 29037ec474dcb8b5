// Hands HTML to a worker thread, one document after the other, each with a limit on time and memory.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { ReadableText } from './html-to-markdown.js';
import type { ConversionAnswer, ConversionJob } from './html-worker.js';
import { PageError } from './page-error.js';

export interface HtmlConverter {
  /** @throws PageError UNREADABLE when it takes too long or cannot be done */
  convert(html: string, baseUrl: string): Promise<ReadableText>;
  close(): Promise<void>;
}

const memoryLimitMiB = 512;

const limits = {
  // The thread parses what strangers wrote: it gets none of the process's secrets.
  env: {},
  execArgv: [],
  resourceLimits: { maxOldGenerationSizeMb: memoryLimitMiB },
};

/** In the source tree modules are TypeScript, for which a thread has to fetch the loader itself; after the build they are not. */
function startFromSource(module: URL): Worker {
  const loader = new URL(
    'dist/esm/api/index.mjs',
    pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json')),
  );
  const code = `import('${loader.href}').then(({ register }) => { register(); return import('${module.href}'); });`;
  return new Worker(code, { ...limits, eval: true });
}

function startWorker(): Worker {
  const isSource = import.meta.url.endsWith('.ts');
  const module = new URL(isSource ? './html-worker.ts' : './html-worker.js', import.meta.url);
  const worker = isSource ? startFromSource(module) : new Worker(module, limits);
  worker.unref();
  return worker;
}

/** Loading the parsers takes seconds on a machine that is busy: that is no fault of the first document. */
const startLimitMs = 60_000;

/** @param timeoutMs for one document, once its turn has come and the thread has started */
export function createHtmlConverter({ timeoutMs = 10_000 }: { timeoutMs?: number } = {}): HtmlConverter {
  let worker: Worker | undefined;
  let isReady = false;
  let nextId = 0;
  let queue: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  function start(): Worker {
    const started = startWorker();
    isReady = false;
    // What comes of a thread between two jobs, or after it was given up on, must not end the process.
    started.on('error', () => {});
    started.once('exit', () => {
      if (worker === started) worker = undefined;
    });
    return started;
  }

  async function discard(): Promise<void> {
    const discarded = worker;
    worker = undefined;
    await discarded?.terminate();
  }

  function runOne(html: string, baseUrl: string): Promise<ReadableText> {
    if (isClosed) return Promise.reject(new PageError('UNREADABLE', 'The page reader is shut down.'));
    const current = (worker ??= start());
    const job: ConversionJob = { id: ++nextId, html, baseUrl };
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        settle(() => reject(new PageError('UNREADABLE', 'The page is too complicated to be read.')));
        void discard();
      };
      let timer = setTimeout(giveUp, isReady ? timeoutMs : startLimitMs);
      const onMessage = (answer: ConversionAnswer | 'ready'): void => {
        if (answer === 'ready') {
          isReady = true;
          clearTimeout(timer);
          timer = setTimeout(giveUp, timeoutMs);
          return;
        }
        if (answer.id !== job.id) return;
        if ('failed' in answer)
          settle(() => reject(new PageError('UNREADABLE', 'The page could not be made readable.')));
        else settle(() => resolve(answer.text));
      };
      const settle = (finish: () => void): void => {
        clearTimeout(timer);
        current.off('message', onMessage).off('error', giveUp).off('exit', giveUp);
        finish();
      };
      current.on('message', onMessage).on('error', giveUp).on('exit', giveUp);
      current.postMessage(job, []);
    });
  }

  return {
    convert(html, baseUrl) {
      const result = queue.then(() => runOne(html, baseUrl));
      queue = result.catch(() => {});
      return result;
    },
    async close() {
      isClosed = true;
      await discard();
    },
  };
}
