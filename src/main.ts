// The server process: environment → config → app → signals. The only side effects of the service start here.
import { createApp, type App } from './app.js';
import { ConfigurationError, readConfig, type Config } from './config.js';
import { createLogger } from './shared/logger.js';
import { explainFailure } from './stores.js';

/** A request under way gets this long; then the process ends whatever it still does. */
const shutdownLimitMs = 9000;

function readConfigOrExit(): Config {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    process.stderr.write(`The configuration is wrong:\n${error.message}\n`);
    return process.exit(1);
  }
}

/** For a person at a terminal; the log line says the same to machines. */
function greet(config: Config, app: App): void {
  if (!config.embedded) return;
  const lines = [
    '',
    `  Scratchpad answers at ${app.url}`,
    ...(config.graphiql ? [`  GraphiQL              ${app.url}/graphql`] : []),
    `  Development key       ${app.developmentSecret}`,
    '',
    '',
  ];
  process.stdout.write(lines.join('\n'));
}

/** Closing in order would write into a folder that is somebody else's by now. */
function endAtOnce(): void {
  logger.fatal({ dataDirectory: config.dataDirectory }, 'another process took the data directory over');
  process.exit(1);
}

const config = readConfigOrExit();
const logger = createLogger(config.logLevel);

// Asked to end while it starts, it ends as soon as it has started: what is half open cannot be closed in order.
const starting = createApp(config, { logger, onDirectoryLost: endAtOnce });
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
  greet(config, app);
} catch (error) {
  logger.fatal({ err: error }, 'could not start');
  process.stderr.write(`Could not start: ${explainFailure(error)}\n`);
  process.exit(1);
}
