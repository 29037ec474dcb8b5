// Folders that take seconds to make and are the same for every test file: made once, kept under the system's temporary
// directory, and copied from there.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { migrationsDirectory } from '../../src/infra/migrations.js';

export const run = promisify(execFile);

export const createTemporaryDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'scratchpad-test-'));

/**
 * The path of the folder `kind`, made by `build` unless somebody has. It depends on prisma/migrations: when they change
 * it is made anew. Several processes may ask at once. Copy it, do not use it.
 */
export async function cachedTemplate(kind: string, build: (directory: string) => Promise<void>): Promise<string> {
  const path = join(tmpdir(), `scratchpad-test-template-${userInfo().username}-${kind}-${await migrationsHash()}`);
  if (await exists(path)) return path;
  const draft = await createTemporaryDirectory();
  try {
    await build(draft);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { recursive: true });
    // Somebody else was faster: a folder with something in it is not replaced.
    if (!(await exists(path))) throw error;
  }
  return path;
}

async function migrationsHash(): Promise<string> {
  const hash = createHash('sha256');
  const files = await readdir(migrationsDirectory, { recursive: true, withFileTypes: true });
  const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
  for (const path of paths.toSorted()) hash.update(relative(migrationsDirectory, path)).update(await readFile(path));
  return hash.digest('hex').slice(0, 12);
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
