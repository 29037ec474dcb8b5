// Prisma's schema engine as WebAssembly, on our own driver adapters: no downloaded binary, the same on every machine.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { PGlite } from '@electric-sql/pglite';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  bindMigrationAwareSqlAdapterFactory,
  DriverAdapterError,
  type SqlMigrationAwareDriverAdapterFactory,
} from '@prisma/driver-adapter-utils';
import type * as SchemaEnginePackage from '@prisma/schema-engine-wasm';
import { Pool, type DatabaseError } from 'pg';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import type { DatabaseSource } from './postgres.js';
import { withWholeScripts } from './sql-adapters.js';

type EngineModule = Pick<typeof SchemaEnginePackage, 'SchemaEngine'> & {
  __wbg_set_wasm(exports: Record<string, unknown>): void;
};

/** Node has it; the type library without a browser does not. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: {
    instantiate(bytes: Uint8Array, imports: object): Promise<{ instance: { exports: Record<string, unknown> } }>;
  };
};

/** The glue code of the engine holds one instance for each process: loading a second one would break the first. */
let engineModule: Promise<EngineModule> | undefined;

async function loadEngineModule(): Promise<EngineModule> {
  // The package's main file imports the .wasm itself, which Node 20 cannot do without a flag.
  const gluePath = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const glue = (await import('@prisma/schema-engine-wasm/schema_engine_bg')) as unknown as EngineModule;
  const wasm = await readFile(gluePath.replace(/\.js$/, '.wasm'));
  const { instance } = await WebAssembly.instantiate(wasm, { './schema_engine_bg.js': withoutLingeringTimers(glue) });
  glue.__wbg_set_wasm(instance.exports);
  (instance.exports['__wbindgen_start'] as () => void)();
  return glue;
}

/** The engine never clears the ten seconds of its advisory lock: they must not keep a finished process alive. */
const withoutLingeringTimers = (glue: object): object =>
  Object.fromEntries(
    Object.entries(glue).map(([name, value]: [string, unknown]) => [
      name,
      name.startsWith('__wbg_setTimeout_')
        ? (callback: () => void, milliseconds: number) => setTimeout(callback, milliseconds).unref()
        : value,
    ]),
  );

/**
 * Hands an engine that is connected to `source` to `use`, and ends its connections afterwards: the engine's advisory
 * lock lives as long as they do.
 * @param datamodel the text of schema.prisma, where the engine has to know it; then `source` must be a throw-away database
 */
export async function withSchemaEngine<Result>(
  source: DatabaseSource,
  use: (engine: SchemaEnginePackage.SchemaEngine) => Promise<Result>,
  datamodel?: string,
): Promise<Result> {
  engineModule ??= loadEngineModule();
  const { SchemaEngine } = await engineModule;
  const adapter = 'pglite' in source ? connectEmbedded(source.pglite) : connectServer(source.databaseUrl);
  try {
    const engine = await SchemaEngine.new(
      { datamodels: datamodel === undefined ? undefined : [['schema.prisma', datamodel]] },
      () => undefined,
      bindMigrationAwareSqlAdapterFactory(adapter.factory),
    );
    try {
      return await use(engine);
    } finally {
      engine.free();
    }
  } catch (error) {
    // What the database said about a script is plainer than what the engine makes of it.
    throw adapter.scriptError() ?? error;
  } finally {
    await adapter.close();
  }
}

interface EngineConnection {
  factory: SqlMigrationAwareDriverAdapterFactory;
  /** The database's error of the last script that failed. */
  scriptError(): unknown;
  close(): Promise<void>;
}

function connectServer(databaseUrl: string): EngineConnection {
  // No statement timeout: building an index may take its time. One connection: the engine's lock belongs to it.
  const pool = new Pool({ connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 10_000 });
  pool.on('error', () => undefined);
  const runScript = (script: string) => pool.query(script);
  return { ...wrapFactory(new PrismaPg(pool), runScript), close: () => pool.end() };
}

const connectEmbedded = (pglite: PGlite): EngineConnection => ({
  ...wrapFactory(new PrismaPGlite(pglite), (script) => pglite.exec(script)),
  close: () => Promise.resolve(),
});

function wrapFactory(
  factory: SqlMigrationAwareDriverAdapterFactory,
  run: (script: string) => Promise<unknown>,
): Pick<EngineConnection, 'factory' | 'scriptError'> {
  let scriptError: unknown;
  const runScript = (script: string) =>
    run(script).catch((error: unknown) => {
      scriptError = error;
      throw asDriverError(error);
    });
  const connect = async () => withWholeScripts(await factory.connect(), runScript);
  return {
    scriptError: () => scriptError,
    factory: {
      provider: factory.provider,
      adapterName: factory.adapterName,
      connect,
      // Only a comparison replays migrations in a second database, and it runs on a throw-away one.
      connectToShadowDb: connect,
    },
  };
}

/** The form in which the engine takes an error that the database answered. */
function asDriverError(error: unknown): unknown {
  const { code, severity = 'ERROR', message, detail, column, hint } = error as DatabaseError;
  if (code === undefined) return error;
  return new DriverAdapterError({ kind: 'postgres', code, severity, message, detail, column, hint });
}
