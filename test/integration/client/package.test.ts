// The package as somebody installs it: packed, unpacked elsewhere with nothing beside it, imported, compiled against.
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startService, type Service } from '../../support/service.js';

const run = promisify(execFile);
const root = path.resolve(import.meta.dirname, '../../..');
const limitMs = 60_000;
let directory: string;
let service: Service | undefined;

/** @returns what it said, also when it failed */
async function output(command: string, ...parameters: string[]): Promise<{ failed: boolean; text: string }> {
  try {
    const { stdout, stderr } = await run(command, parameters, { cwd: directory, timeout: limitMs });
    return { failed: false, text: stdout + stderr };
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return { failed: true, text: stdout + stderr };
  }
}

const compile = (...parameters: string[]) =>
  output(process.execPath, path.join(root, 'node_modules/typescript/bin/tsc'), '--noEmit', '--strict', ...parameters);
const moduleSystems = [
  ['NodeNext', 'NodeNext'],
  ['ESNext', 'Bundler'],
] as const;

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-package-'));
  await run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', directory], {
    cwd: root,
    timeout: limitMs,
  });
  const [archive = ''] = await readdir(directory);
  const installed = path.join(directory, 'node_modules/scratchpad');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', path.join(directory, archive), '-C', installed, '--strip-components=1'], {
    timeout: limitMs,
  });
  await writeFile(path.join(directory, 'package.json'), '{ "type": "module" }');
});
afterAll(async () => {
  await service?.close();
  await rm(directory, { recursive: true, force: true });
});

it('holds what runs, and no sources, tests or secrets', async () => {
  const installed = path.join(directory, 'node_modules/scratchpad');
  const names = (await readdir(installed)).toSorted();
  expect(names).toEqual(['LICENSE', 'README.md', 'dist', 'package.json', 'prisma', 'schema.graphql']);
});

it('works as a program, without any other package', async () => {
  service = await startService();
  const { secret } = await service.createTenant('Alice');
  await writeFile(
    path.join(directory, 'program.js'),
    `import { createClient } from 'scratchpad/client';
    const client = createClient({ url: '${service.url}', apiKey: '${secret}' });
    const { id } = await client.scratchpads.create({ threadId: (await client.threads.create()).id });
    await client.scratchpads.appendEntry(id, { content: 'Hello' });
    for await (const { content } of client.scratchpads.entries(id)) {
      console.log(content);
      break;
    }`,
  );
  expect(await output(process.execPath, 'program.js')).toEqual({ failed: false, text: 'Hello\n' });
});

it('shows nothing of the server to those who import it', async () => {
  await writeFile(path.join(directory, 'deep.js'), `await import('scratchpad/dist/app.js');`);
  expect((await output(process.execPath, 'deep.js')).text).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED');
});

it.each(moduleSystems)('has types that hold and that object, as %s and %s modules', async (module, resolution) => {
  await copyFile(path.join(root, 'test/fixtures/client-consumer.ts'), path.join(directory, 'consumer.ts'));
  const settings = ['--module', module, '--moduleResolution', resolution, '--target', 'ES2022', '--lib', 'ES2023,DOM'];
  expect(await compile(...settings, '--types', '', 'consumer.ts')).toEqual({ failed: false, text: '' });
  // Each expected error is one: without the expectation the compiler objects.
  const source = await readFile(path.join(directory, 'consumer.ts'), 'utf8');
  const expectation = /\/\/ @ts-expect-error.*/g;
  await writeFile(path.join(directory, 'mistaken.ts'), source.replace(expectation, ''));
  const { failed, text } = await compile(...settings, '--types', '', 'mistaken.ts');
  expect(failed).toBe(true);
  expect(text.match(/error TS/g)).toHaveLength(source.match(expectation)?.length ?? 0);
});
