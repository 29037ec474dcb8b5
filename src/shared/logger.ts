// Structured logs (pino), without secrets whatever a caller passes in.
import { pino, type DestinationStream, type Logger } from 'pino';

export type { Logger };

const secretPaths = ['secret', 'apiKey', 'authorization', 'headers.authorization', 'headers["x-api-key"]'];

/** @param level a pino level, "silent" included */
export const createLogger = (level: string, destination?: DestinationStream): Logger =>
  pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: [...secretPaths, ...secretPaths.map((path) => `*.${path}`)],
    },
    destination ?? pino.destination(1),
  );
