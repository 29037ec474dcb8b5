// A process that only executes runs, beside the server: any number of them share its stores. It serves /healthz, /readyz and /metrics.
import { createRunWorker } from './app.js';
import { runProcess } from './lifecycle.js';

await runProcess(process.env, (config, logger) => createRunWorker(config, { logger }));
