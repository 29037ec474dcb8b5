// The server process: environment → config → app → signals. The only side effects of the service start here.
import { createApp, type App } from './app.js';
import type { Config } from './config.js';
import { runProcess } from './lifecycle.js';
import type { Logger } from './shared/logger.js';

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
function endAtOnce({ dataDirectory }: Config, logger: Logger): void {
  logger.fatal({ dataDirectory }, 'another process took the data directory over');
  process.exit(1);
}

await runProcess(
  process.env,
  (config, logger) => createApp(config, { logger, onDirectoryLost: () => endAtOnce(config, logger) }),
  greet,
);
