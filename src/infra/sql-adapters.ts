// Wrappers around Prisma's driver adapters: one counts statements, one runs a migration script as the whole that it is.
import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';

type SqlQueryable = Pick<SqlDriverAdapter, 'provider' | 'adapterName' | 'queryRaw' | 'executeRaw'>;
type SqlTransaction = Awaited<ReturnType<SqlDriverAdapter['startTransaction']>>;

const countedQueries = (queryable: SqlQueryable, onStatement: () => void): SqlQueryable => ({
  provider: queryable.provider,
  adapterName: queryable.adapterName,
  queryRaw: (query) => {
    onStatement();
    return queryable.queryRaw(query);
  },
  executeRaw: (query) => {
    onStatement();
    return queryable.executeRaw(query);
  },
});

function countedTransaction(transaction: SqlTransaction, onStatement: () => void): SqlTransaction {
  // With a phantom query the adapter sends COMMIT or ROLLBACK by itself; without one Prisma sends it as a statement.
  const onEnd = transaction.options.usePhantomQuery ? onStatement : () => undefined;
  return {
    ...countedQueries(transaction, onStatement),
    options: transaction.options,
    commit: () => {
      onEnd();
      return transaction.commit();
    },
    rollback: () => {
      onEnd();
      return transaction.rollback();
    },
    ...(transaction.createSavepoint && { createSavepoint: (name) => transaction.createSavepoint!(name) }),
    ...(transaction.rollbackToSavepoint && { rollbackToSavepoint: (name) => transaction.rollbackToSavepoint!(name) }),
    ...(transaction.releaseSavepoint && { releaseSavepoint: (name) => transaction.releaseSavepoint!(name) }),
  };
}

/** The same adapter, with `onStatement` called once for each statement that it sends, BEGIN and COMMIT included. */
export function countStatements(
  factory: SqlMigrationAwareDriverAdapterFactory,
  onStatement: () => void,
): SqlMigrationAwareDriverAdapterFactory {
  const counted = (adapter: SqlDriverAdapter): SqlDriverAdapter => ({
    ...countedQueries(adapter, onStatement),
    executeScript: (script) => {
      onStatement();
      return adapter.executeScript(script);
    },
    startTransaction: async (isolationLevel) => {
      onStatement();
      if (isolationLevel) onStatement();
      return countedTransaction(await adapter.startTransaction(isolationLevel), onStatement);
    },
    getConnectionInfo: () => adapter.getConnectionInfo?.() ?? { supportsRelationJoins: true },
    dispose: () => adapter.dispose(),
  });
  return {
    provider: factory.provider,
    adapterName: factory.adapterName,
    connect: async () => counted(await factory.connect()),
    connectToShadowDb: async () => counted(await factory.connectToShadowDb()),
  };
}

/**
 * The same adapter, but a script goes to the database in one awaited piece, so that it is one transaction and its error
 * is seen. The originals split it at every `;` (which breaks a trigger's body) or do not wait for it.
 */
export const withWholeScripts = (
  adapter: SqlDriverAdapter,
  runScript: (script: string) => Promise<unknown>,
): SqlDriverAdapter => ({
  provider: adapter.provider,
  adapterName: adapter.adapterName,
  queryRaw: (query) => adapter.queryRaw(query),
  executeRaw: (query) => adapter.executeRaw(query),
  startTransaction: (isolationLevel) => adapter.startTransaction(isolationLevel),
  getConnectionInfo: () => adapter.getConnectionInfo?.() ?? { supportsRelationJoins: true },
  dispose: () => adapter.dispose(),
  executeScript: async (script) => {
    await runScript(script);
  },
});
