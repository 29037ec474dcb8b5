// The rules of docs/architecture.md about who may import whom, as data, and the check that holds source files against them.
import path from 'node:path';
import { parseSync } from 'vite';

export interface SourceFile {
  /** Relative to the project, with slashes: "src/threads/thread-service.ts". */
  path: string;
  text: string;
}

/** Left to right: a folder or file of src imports only from its left. Names in one group do not import each other. */
const order = [
  ['shared'],
  ['redis'],
  ['identity'],
  ['threads', 'scratchpads'],
  ['tools'],
  ['assistants'],
  ['research'],
  ['surfaces'],
  ['stores.ts'],
  ['domain.ts'],
  ['app.ts', 'lifecycle.ts'],
  ['terminal'],
  ['main.ts', 'worker.ts', 'cli.ts'],
];

const entryPoints = /^src\/(main|worker|cli)\.ts$/;
const sqlOwners = [
  /^src\/infra\//,
  /^src\/(identity|threads|assistants)\/(authentication|credential-rows|development-user|[a-z-]+-service)\.ts$/,
  /^src\/threads\/idle-thread\.ts$/,
  /^src\/scratchpads\/(identity-plane|purge-queue|row-index)\.ts$/,
  /^src\/research\/(run-[a-z-]+|sql-conversation)\.ts$/,
  /^src\/surfaces\/graphql\/builder\.ts$/,
];
const redisOwners = [
  /^src\/(infra|redis)\//,
  /^src\/scratchpads\/(?!identity-plane|purge-queue|row-index|scratchpad-service)/,
  /^src\/research\/run-(events|queue)\.ts$/,
];

/** Packages that only some modules may know, and those modules. */
const packageFences: { packages: RegExp; allowed: RegExp[] }[] = [
  {
    packages:
      /^(@prisma\/(adapter-pg|driver-adapter-utils|schema-engine-wasm)|pg|@electric-sql\/pglite|pglite-prisma-adapter)$/,
    allowed: [/^src\/infra\//],
  },
  { packages: /^@prisma\/client$/, allowed: sqlOwners },
  { packages: /^ioredis$/, allowed: redisOwners },
  {
    packages: /^graphql-redis-subscriptions$/,
    allowed: [/^src\/redis\/channel-hub\.ts$/],
  },
  {
    packages:
      /^(graphql|graphql-ws|graphql-yoga|@pothos\/.+|@graphql-yoga\/.+|@envelop\/.+|@escape\.tech\/graphql-armor.*)$/,
    allowed: [/^src\/surfaces\/graphql\//],
  },
  { packages: /^dataloader$/, allowed: [/^src\/surfaces\/graphql\//, /^src\/scratchpads\//] },
  { packages: /^(hono|@hono\/.+)$/, allowed: [/^src\/surfaces\/rest\//] },
  { packages: /^@modelcontextprotocol\/sdk$/, allowed: [/^src\/surfaces\/mcp\//] },
  { packages: /^openai$/, allowed: [/^src\/research\/provider\//] },
  { packages: /^bullmq$/, allowed: [/^src\/infra\//, /^src\/research\//] },
  { packages: /^rate-limiter-flexible$/, allowed: [/^src\/infra\//] },
  { packages: /^prom-client$/, allowed: [/^src\/infra\//] },
  { packages: /^pino$/, allowed: [/^src\/shared\/logger\.ts$/] },
  { packages: /^ulidx$/, allowed: [/^src\/shared\/ids\.ts$/] },
  { packages: /^commander$/, allowed: [/^src\/cli\.ts$/] },
];

interface ImportedModule {
  specifier: string;
  /** Erased by the compiler. */
  typeOnly: boolean;
  names: string[];
}

type Visit = (node: Record<string, unknown>) => void;

function walk(value: unknown, visit: Visit): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, visit);
  } else if (typeof value === 'object' && value !== null) {
    const node = value as Record<string, unknown>;
    if (typeof node.type === 'string') visit(node);
    for (const child of Object.values(node)) walk(child, visit);
  }
}

const literalOf = (node: unknown): string | undefined => {
  const value = (node as { value?: unknown } | null)?.value;
  return typeof value === 'string' ? value : undefined;
};

/** Everything that `file` takes from elsewhere, in every form that TypeScript knows, and whether it reads process.env. */
function read(file: SourceFile): { imports: ImportedModule[]; readsEnvironment: boolean; mistakes: string[] } {
  const { module, program, errors } = parseSync(file.path, file.text);
  const imports: ImportedModule[] = [];
  const mistakes = errors.map((error) => `does not parse: ${error.message}`);
  let readsEnvironment = false;
  for (const { moduleRequest, entries } of module.staticImports) {
    imports.push({
      specifier: moduleRequest.value,
      typeOnly: entries.length > 0 && entries.every((entry) => entry.isType),
      names: entries.map((entry) => entry.importName.name ?? '*'),
    });
  }
  for (const entry of module.staticExports.flatMap((statement) => statement.entries)) {
    if (!entry.moduleRequest) continue;
    const names = [entry.importName.name ?? '*'];
    imports.push({ specifier: entry.moduleRequest.value, typeOnly: entry.isType, names });
  }
  walk(program, (node) => {
    if (node.type === 'ImportExpression' || node.type === 'TSImportType') {
      const specifier = literalOf(node.source);
      if (specifier === undefined) mistakes.push('imports a module whose name is computed');
      else imports.push({ specifier, typeOnly: node.type === 'TSImportType', names: ['*'] });
    }
    if (node.type === 'MemberExpression') {
      const object = node.object as { type: string; name?: string };
      const property = node.property as { name?: string; value?: unknown };
      const isProcess = object.type === 'Identifier' && object.name === 'process';
      if (isProcess && (property.name === 'env' || property.value === 'env')) readsEnvironment = true;
    }
  });
  const environmentNames = new Set(['env', '*']);
  if (
    imports.some(
      ({ specifier, names }) => specifier === 'node:process' && names.some((name) => environmentNames.has(name)),
    )
  ) {
    readsEnvironment = true;
  }
  return { imports, readsEnvironment, mistakes };
}

/** The source file behind a relative import: compiled names end in .js. */
const sourceOf = (from: string, specifier: string): string =>
  path.posix.join(path.posix.dirname(from), specifier).replace(/\.js$/, '.ts');

const partOf = (sourcePath: string): string => sourcePath.split('/')[1] ?? '';
const rankOf = (part: string): number => order.findIndex((group) => group.includes(part));

/** Why `from` may not import the source file `to`, or undefined. */
function refusalOfFile(from: string, to: string, imported: ImportedModule): string | undefined {
  const [fromPart, toPart] = [partOf(from), partOf(to)];
  if (to.startsWith('src/generated/')) {
    if (sqlOwners.some((owner) => owner.test(from))) return undefined;
    // What a row looks like may be known more widely; how it is fetched may not.
    const onlyRows = imported.typeOnly && !imported.names.some((name) => name === 'PrismaClient' || name === '*');
    return onlyRows ? undefined : 'only the modules that own SQL use the Prisma client';
  }
  if (fromPart === toPart) {
    const [fromSurface, toSurface] = [from.split('/')[2], to.split('/')[2]];
    const bothFolders = from.split('/').length > 3 && to.split('/').length > 3;
    const crosses = fromPart === 'surfaces' && bothFolders && fromSurface !== toSurface;
    return crosses ? 'one surface does not import another' : undefined;
  }
  if (toPart === 'client' && ['terminal', 'cli.ts'].includes(fromPart)) return undefined;
  if (fromPart === 'client' || toPart === 'client' || fromPart === 'terminal') {
    return 'the client and the server share only the wire';
  }
  if (toPart === 'infra') {
    return /^src\/(stores|app|cli)\.ts$/.test(from)
      ? undefined
      : 'infra is imported by stores.ts, app.ts and cli.ts alone';
  }
  if (fromPart === 'infra') return toPart === 'shared' ? undefined : 'infra imports nothing but shared';
  if (toPart === 'config.ts') {
    return rankOf(fromPart) >= rankOf('stores.ts')
      ? undefined
      : 'only the composition root and the entry points know the configuration';
  }
  if (fromPart === 'config.ts') return toPart === 'shared' ? undefined : 'config.ts imports nothing but shared';
  const [fromRank, toRank] = [rankOf(fromPart), rankOf(toPart)];
  if (fromRank < 0 || toRank < 0) return `${fromRank < 0 ? fromPart : toPart} has no place in the order of src`;
  return toRank < fromRank ? undefined : `${fromPart} does not import ${toPart}`;
}

/** Why `from` may not import the package, or undefined. */
function refusalOfPackage(from: string, specifier: string, dependencies: ReadonlySet<string>): string | undefined {
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  if (!dependencies.has(name)) return `${name} is not among the dependencies of package.json`;
  const fence = packageFences.find(({ packages }) => packages.test(name));
  if (!fence || fence.allowed.some((allowed) => allowed.test(from))) return undefined;
  return `the package ${name} does not belong here`;
}

/**
 * Every breach of the rules, one line each: "src/a.ts imports x: reason".
 * @param dependencies the names of the packages that are installed in production
 */
export function findBreaches(files: readonly SourceFile[], dependencies: ReadonlySet<string>): string[] {
  return files.flatMap((file) => {
    const { imports, readsEnvironment, mistakes } = read(file);
    const breaches = mistakes.map((mistake) => `${file.path} ${mistake}`);
    if (readsEnvironment && !entryPoints.test(file.path)) {
      breaches.push(`${file.path} reads process.env: only the entry points do`);
    }
    for (const imported of imports) {
      const { specifier } = imported;
      const isClient = partOf(file.path) === 'client';
      if (isClient && !specifier.startsWith('.')) {
        breaches.push(`${file.path} imports ${specifier}: the client runs in browsers and needs no package`);
        continue;
      }
      if (specifier.startsWith('node:')) continue;
      const refusal = specifier.startsWith('.')
        ? refusalOfFile(file.path, sourceOf(file.path, specifier), imported)
        : refusalOfPackage(file.path, specifier, dependencies);
      if (refusal) breaches.push(`${file.path} imports ${specifier}: ${refusal}`);
    }
    return breaches;
  });
}
