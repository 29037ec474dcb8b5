// A process from its start to its orderly end: what the server and the worker have in common.
import { setFlagsFromString } from 'node:v8';
import { ConfigurationError, readConfig, type Config } from './config.js';
import { createLogger, type Logger } from './shared/logger.js';
import { explainFailure } from './stores.js';

/** A request under way gets this long; then the process ends whatever it still does. */
const shutdownLimitMs = 9000;

export interface Running {
  readonly url: string;
  close(): Promise<void>;
}

function readConfigOrExit(environment: NodeJS.ProcessEnv): Config {
  try {
    return readConfig(environment);
  } catch (error) {
    return exitWith(error);
  }
}

/** What an operator has done wrong is said in their words. */
function exitWith(error: unknown): never {
  const prefix = error instanceof ConfigurationError ? 'The configuration is wrong:\n' : 'Could not start: ';
  process.stderr.write(`${prefix}${explainFailure(error)}\n`);
  return process.exit(1);
}

/**
 * V8 puts objects whose kind outlived its first collections straight into the old space from then on: at a busy start, what every request
 * makes and drops. Clearing that away took a fifth of all processor time (docs/performance.md).
 */
const keepShortLivedObjectsYoung = (): void => setFlagsFromString('--no-allocation-site-pretenuring');

/**
 * V8 lets garbage grow to four times what lives before it looks for it: under full load up to 100 MB that come and go. Twice is as fast, and
 * steady.
 */
const keepHeapSmall = (): void => setFlagsFromString('--heap-growing-percent=100');

/**
 * V8 takes its time before it compiles what runs seldom: in bytes of code that a function has run through, a seventh of its default. A server
 * that is asked once in a while answers a quarter faster for it (docs/performance.md), a busy one has compiled everything anyway.
 */
const compileSoon = (): void => setFlagsFromString('--interrupt-budget=20000');

/** @param start opens everything; `onStarted` is called once it answers */
export async function runProcess<App extends Running>(
  environment: NodeJS.ProcessEnv,
  start: (config: Config, logger: Logger) => Promise<App>,
  onStarted: (config: Config, app: App) => void = () => undefined,
): Promise<void> {
  keepShortLivedObjectsYoung();
  keepHeapSmall();
  compileSoon();
  const config = readConfigOrExit(environment);
  const logger = createLogger(config.logLevel);
  // Asked to end while it starts, it ends as soon as it has started: what is half open cannot be closed in order.
  const starting = start(config, logger);
  let closing = false;

  async function shutDown(signal: NodeJS.Signals): Promise<void> {
    if (closing) return;
    closing = true;
    logger.info({ signal }, 'shutting down');
    setTimeout(() => {
      logger.error('shutting down took too long');
      process.exit(1);
    }, shutdownLimitMs).unref();
    try {
      const app = await starting;
      await app.close();
      process.exit(0);
    } catch (error) {
      logger.error({ err: error }, 'shutting down failed');
      process.exit(1);
    }
  }
  process.on('SIGINT', (signal) => void shutDown(signal));
  process.on('SIGTERM', (signal) => void shutDown(signal));

  try {
    const app = await starting;
    logger.info({ url: app.url }, 'listening');
    onStarted(config, app);
  } catch (error) {
    logger.fatal({ err: error }, 'could not start');
    exitWith(error);
  }
}
