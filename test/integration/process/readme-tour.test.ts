// The README's tour, executed as it stands: a newcomer copies exactly these lines.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readExamples, runTerminal as runTerminalIn, type Terminal } from '../../support/readme.js';
import { startScriptServer, type ScriptServer } from '../../support/script-server.js';

let directory: string;
let server: ScriptServer;

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-tour-'));
  server = await startScriptServer({ DATA_DIR: path.join(directory, '.data') });
}, 120_000);
afterAll(async () => {
  await server.end();
  await rm(directory, { recursive: true, force: true });
});

const runTerminal = (lines: string): Terminal => runTerminalIn(lines, directory);

it('runs line by line, with the subscription in a second terminal', async () => {
  const blocks = await readExamples('tour', server.url);
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
