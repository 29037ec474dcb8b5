// What an error of the SQL store means, whichever driver and layer it comes from. Knows shapes and imports nothing.

/** Prisma's codes for a server that cannot be reached, refuses us, or has no connection left. */
const unavailableCodes = new Set([
  'P1000',
  'P1001',
  'P1002',
  'P1003',
  'P1008',
  'P1010',
  'P1011',
  'P1017',
  'P2024',
  'P2034',
  'P2037',
]);

/** The driver adapters' kinds for the same: raw queries carry them under a code that says nothing. */
const unavailableKinds = new Set([
  'AuthenticationFailed',
  'ConnectionClosed',
  'DatabaseAccessDenied',
  'DatabaseDoesNotExist',
  'DatabaseNotReachable',
  'SocketTimeout',
  'TlsConnectionError',
  'TooManyConnections',
  'TransactionWriteConflict',
]);

/**
 * SQLSTATE: connection (08), refused (28), rolled back by concurrency (40), out of resources (53), shut down or cancelled
 * by the server (57), broken system (58), unknown database, idle in transaction, read-only standby, lock not available.
 */
const unavailableStates = /^(08|28|40|53|57|58)...$|^(3D000|25P0[34]|25006|55P03)$/;

const networkCodes = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)/;

/** A Unix socket that is not there, or not ours: the code alone could be any file's. */
const noSocket = /\bconnect (ENOENT|EACCES)\b/;

/** Errors that node-postgres, its pool, PGlite and Prisma's transactions throw without a code of their own. */
const unavailableMessages = [
  'Connection terminated',
  'Connection ended unexpectedly',
  'Client has encountered a connection error',
  'Client was closed',
  'Query read timeout',
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Cannot use a pool after calling end',
  'PGlite is clos',
  'Unable to start a transaction in the given time',
  'on an expired transaction',
];

interface ErrorLayer {
  code: string;
  kind: string;
  message: string;
  constraint: string;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** An error, what it wraps, and what that wraps: Prisma's error, the adapter's, the driver's. */
function layersOf(error: unknown, depth = 0): ErrorLayer[] {
  if (typeof error !== 'object' || error === null || depth > 5) return [];
  const fields = error as Record<string, unknown>;
  const meta = (fields['meta'] ?? {}) as Record<string, unknown>;
  const layer = {
    code: textOf(fields['originalCode']) || textOf(fields['code']),
    kind: textOf(fields['kind']),
    message: textOf(fields['message']),
    constraint: JSON.stringify(fields['constraint'] ?? ''),
  };
  const wrapped = [
    fields['cause'],
    meta['driverAdapterError'],
    ...(Array.isArray(fields['errors']) ? fields['errors'] : []),
  ];
  return [layer, ...wrapped.flatMap((inner) => layersOf(inner, depth + 1))];
}

/**
 * Whether a unique constraint refused a write.
 * @param columns SQL names: only the constraint on exactly these, for example `isUniqueViolation(error, 'thread_id')`;
 *   a primary key cannot be asked for in this way
 */
export function isUniqueViolation(error: unknown, ...columns: string[]): boolean {
  const layers = layersOf(error);
  if (!layers.some(({ code }) => code === 'P2002' || code === '23505')) return false;
  if (columns.length === 0) return true;
  // PGlite's adapter names the columns, adapter-pg the index, which Prisma calls <table>_<columns>_key.
  const fields = JSON.stringify({ fields: columns });
  return layers.some(
    ({ constraint }) =>
      constraint.replaceAll(String.raw`\"`, '') === fields || constraint.endsWith(`_${columns.join('_')}_key"}`),
  );
}

/** Whether a row that a write refers to does not exist (any more), or still is referred to. */
export const isForeignKeyViolation = (error: unknown): boolean =>
  layersOf(error).some(({ code }) => code === 'P2003' || code === '23503' || code === '23001');

/** Whether the database could not be asked, as opposed to having answered: the same request may succeed later. */
export const isSqlUnavailable = (error: unknown): boolean =>
  layersOf(error).some(
    ({ code, kind, message }) =>
      unavailableCodes.has(code) ||
      unavailableKinds.has(kind) ||
      unavailableStates.test(code) ||
      networkCodes.test(code) ||
      noSocket.test(message) ||
      unavailableMessages.some((part) => message.includes(part)),
  );
