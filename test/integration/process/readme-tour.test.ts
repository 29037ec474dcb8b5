// The README's tour, executed as it stands: a newcomer copies exactly these lines.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startScriptServer, type ScriptServer } from '../../support/script-server.js';

const root = path.resolve(import.meta.dirname, '../../..');
let directory: string;
let server: ScriptServer;

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-tour-'));
  server = await startScriptServer({ DATA_DIR: path.join(directory, '.data') });
}, 120_000);
afterAll(async () => {
  await server.kill();
  await rm(directory, { recursive: true, force: true });
});

/** Runs lines in one bash, as a terminal would; the working directory holds `.data` like the project's folder does. */
function runTerminal(lines: string): { output: () => string; ended: Promise<number | null> } {
  const child = spawn('bash', ['-u', '-c', lines], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const read = (chunk: Buffer): void => void (text += chunk.toString());
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  return { output: () => text, ended: once(child, 'exit').then(([code]: (number | null)[]) => code ?? null) };
}

it('runs line by line, with the subscription in a second terminal', async () => {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8');
  const tour = readme.split('<!-- tour: begin -->')[1]?.split('<!-- tour: end -->')[0] ?? '';
  const blocks = [...tour.matchAll(/```sh( second-terminal)?\n([\s\S]*?)```/g)].map(([, second, lines]) => ({
    isSecondTerminal: second !== undefined,
    lines: (lines ?? '').replace('http://127.0.0.1:4000', server.url),
  }));
  expect(blocks.length).toBeGreaterThan(6);
  const [first, create] = blocks;
  const subscription = blocks.find((block) => block.isSecondTerminal);

  // The second terminal begins with the first block and is given the ids, as the text says.
  const subscriptionAt = blocks.findIndex((block) => block.isSecondTerminal);
  const before = runTerminal(`${first?.lines}${create?.lines}`);
  expect(await before.ended).toBe(0);
  const pad = /sp_[0-9A-Z]+/.exec(before.output())?.[0];
  const thread = /thread_[0-9A-Z]+/.exec(before.output())?.[0];
  expect(before.output()).toContain('"viewer":{"id":"user_');
  const watching = runTerminal(`${first?.lines}PAD=${pad}\n${subscription?.lines}`);
  await expect.poll(watching.output, { timeout: 10_000 }).toContain('viewer');

  const rest = blocks.slice(subscriptionAt + 1).map((block) => block.lines);
  const main = runTerminal(`${first?.lines}PAD=${pad}\nTHREAD=${thread}\n${rest.join('')}`);
  expect(await main.ended).toBe(0);
  const output = main.output();
  expect(output.match(/"createdAt"/g)).toHaveLength(3);
  expect(output).toMatch(/"code":"CONFLICT","currentVersion":"\d+"/);
  const [once, again] = [
    ...output.matchAll(/^\{"data":\{"appendScratchpadEntry":\{"entry":\{"id":"([^"]+)"\}\}\}\}$/gm),
  ].map((match) => match[1]);
  expect(once).toBe(again);
  expect(output).toContain('"entryCount":4');
  expect(output).toContain('"formattedView":"');
  expect(output).toContain(`"deletedThreadId":"${thread}"`);
  expect(output.match(/"errors"/g)).toHaveLength(1);

  expect(await watching.ended).toBe(0);
  const operations = [...watching.output().matchAll(/"operation":"([A-Z]+)"/g)].map((match) => match[1]);
  expect(operations).toEqual(['UPDATE', 'APPEND', 'APPEND', 'APPEND', 'APPEND', 'DELETE']);
}, 60_000);
