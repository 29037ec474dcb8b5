// Where PostgreSQL's programs are on this machine, and who may run them.
import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const oldestVersion = 15;

export interface PostgresBinaries {
  directory: string;
  version: number;
  /** PostgreSQL refuses to run as root; then it runs as this user. */
  runAs: { uid: number; gid: number } | undefined;
}

/** @throws Error that says what to install */
export function findPostgres(): PostgresBinaries {
  for (const directory of candidates()) {
    const version = versionOf(directory);
    if (version !== undefined && version >= oldestVersion) return { directory, version, runAs: unprivilegedUser() };
  }
  throw new Error(
    `These tests need a PostgreSQL server (${oldestVersion} or newer), and none is installed: ` +
      '`apt-get install postgresql` or `brew install postgresql@17`, or set TEST_DATABASE_URL to one that they may use.',
  );
}

const candidates = (): string[] => [
  ...newestFirst('/usr/lib/postgresql', 'bin'),
  ...(process.env['PATH'] ?? '').split(delimiter).filter((directory) => directory !== ''),
  ...newestFirst('/opt/homebrew/opt', 'bin', /^postgresql(@\d+)?$/),
  ...newestFirst('/usr/local/opt', 'bin', /^postgresql(@\d+)?$/),
  ...newestFirst('/usr', 'bin', /^pgsql-\d+$/),
];

const newestFirst = (parent: string, child: string, pattern = /^\d+$/): string[] =>
  existsSync(parent)
    ? readdirSync(parent)
        .filter((name) => pattern.test(name))
        .sort((a, b) => Number(b.replace(/\D/g, '')) - Number(a.replace(/\D/g, '')))
        .map((name) => join(parent, name, child))
    : [];

function versionOf(directory: string): number | undefined {
  try {
    accessSync(join(directory, 'initdb'), constants.X_OK);
    const output = execFileSync(join(directory, 'postgres'), ['--version'], { encoding: 'utf8' });
    return Number(/(\d+)/.exec(output)?.[1]);
  } catch {
    return undefined;
  }
}

function unprivilegedUser(): PostgresBinaries['runAs'] {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: 'pipe' }));
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // There is no such user: try the next.
    }
  }
  throw new Error('PostgreSQL does not run as root, and there is neither a user postgres nor nobody.');
}
