// What the README says of the TypeScript client, compiled and executed as it stands.
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createClient, type Client } from '../../../src/client/index.js';
import { runTerminal } from '../../support/readme.js';
import { startService, type Service } from '../../support/service.js';

const root = path.resolve(import.meta.dirname, '../../..');
let directory: string;
let service: Service;
let secret: string;

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-readme-client-'));
  service = await startService();
  ({ secret } = await service.createTenant('Developer'));
  await mkdir(path.join(directory, 'node_modules'));
  await symlink(root, path.join(directory, 'node_modules/scratchpad'));
  await symlink(path.join(root, 'node_modules/@types'), path.join(directory, 'node_modules/@types'));
  await writeFile(path.join(directory, 'package.json'), '{ "type": "module" }');
});
afterAll(async () => {
  await service.close();
  await rm(directory, { recursive: true, force: true });
});

it('compiles, and does what it says', async () => {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8');
  const section = readme.split('<!-- client: begin -->')[1]?.split('<!-- client: end -->')[0] ?? '';
  const [, program = ''] = /```ts\n([\s\S]*?)```/.exec(section) ?? [];
  await writeFile(path.join(directory, 'program.ts'), program.replace('http://127.0.0.1:4000', service.url));
  const compile = `${root}/node_modules/.bin/tsc --strict --module NodeNext --target ES2023 --types node program.ts`;
  const terminal = runTerminal(`${compile} && SCRATCHPAD_API_KEY=${secret} node program.js`, directory);
  // Another writer, once the program watches.
  const client: Client = createClient({ url: service.url, apiKey: secret });
  const written = (async () => {
    for (let attempt = 0; attempt < 300 && !terminal.output().includes('[VERIFIED]'); attempt += 1) await sleep(100);
    const [pad] = (await client.scratchpads.list()).items;
    for (let attempt = 0; attempt < 100 && !terminal.output().includes('faster'); attempt += 1) {
      await client.scratchpads.appendEntry(pad?.id ?? '', { content: 'From another writer' });
      await sleep(300);
    }
  })();
  expect(await terminal.ended, terminal.output()).toBe(0);
  await written;
  expect(terminal.output()).toContain('null [VERIFIED] Supplier B delivers in May.\nAPPEND ');
  expect(terminal.output()).toMatch(/Somebody was faster: version (\S+), \1 before\.$/m);
});
