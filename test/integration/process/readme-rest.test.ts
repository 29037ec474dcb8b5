// The README's REST examples, executed as they stand.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startService, type Service } from '../../support/service.js';

const root = path.resolve(import.meta.dirname, '../../..');
let directory: string;
let service: Service;

beforeAll(async () => {
  service = await startService();
  directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-rest-'));
  await mkdir(path.join(directory, '.data'));
  await writeFile(path.join(directory, '.data/development-key'), (await service.createTenant('Ada')).secret);
});
afterAll(async () => {
  await service.close();
  await rm(directory, { recursive: true, force: true });
});

it('run line by line and say what the text promises', async () => {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8');
  const section = readme.split('<!-- rest: begin -->')[1]?.split('<!-- rest: end -->')[0] ?? '';
  const lines = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block).join('');
  const script = lines.replace('http://127.0.0.1:4000', service.url);
  const child = spawn('bash', ['-u', '-c', script], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const read = (chunk: Buffer): void => void (output += chunk.toString());
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  const [code] = (await once(child, 'close')) as [number | null];
  expect(code, output).toBe(0);
  const answers = output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const [first, second, lost, once1, once2, entries, appended, view, deleted] = answers;
  expect(answers).toHaveLength(9);
  expect([first?.content, second?.content]).toEqual(['Plan: compare two suppliers.', 'Plan: ask both for samples.']);
  expect(lost).toMatchObject({ status: 412, code: 'CONFLICT' });
  expect(once2).toEqual(once1);
  expect(entries?.data).toEqual([once1]);
  expect(appended).toHaveProperty('message');
  expect(view?.content).toContain('Supplier B is cheaper');
  expect(deleted).toMatchObject({ deleted: true });
});
