// What the README says of research, executed as it stands, with the demo's model in the place of the reader's.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startResearchModel, type ResearchModel } from '../../../script/demo.d/research-model.js';
import { startSmallWeb, type SmallWeb } from '../../../script/demo.d/small-web.js';
import { readExamples, runTerminal } from '../../support/readme.js';
import { startScriptServer, type ScriptServer } from '../../support/script-server.js';

let directory: string;
let web: SmallWeb;
let model: ResearchModel;
let server: ScriptServer;

beforeAll(async () => {
  [directory, web, model] = await Promise.all([
    mkdtemp(path.join(tmpdir(), 'scratchpad-readme-')),
    startSmallWeb(),
    startResearchModel({ paceMs: 2 }),
  ]);
  server = await startScriptServer({
    DATA_DIR: path.join(directory, '.data'),
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY: 'provider-key',
    LLM_MODEL: 'rules',
    SEARXNG_URL: web.searchUrl,
    WEB_ALLOW_PRIVATE_HOSTS: 'true',
  });
}, 120_000);
afterAll(async () => {
  await server.end();
  await Promise.all([web.close(), model.close()]);
  await rm(directory, { recursive: true, force: true });
});

it('runs from the terminal, and from a program that subscribes', async () => {
  const examples = await readExamples('research', server.url);
  expect(examples).toHaveLength(2);
  const terminal = runTerminal(`set -e\n${examples.map(({ lines }) => lines).join('')}`, directory);
  expect(await terminal.ended, terminal.output()).toBe(0);
  const output = terminal.output();

  const answer = await readFile(path.join(directory, 'answer.md'), 'utf8');
  expect(answer).toContain('Jeddah Light is taller, by 78 metres.');
  expect(output).toContain('[VERIFIED] Jeddah Light is 133 metres high.');

  const events = [...output.matchAll(/"__typename":"(\w+)"/g)].map(([, type]) => type);
  expect(new Set(events)).toEqual(
    new Set(['ResearchStatusEvent', 'ScratchpadEvent', 'ReasoningEvent', 'ContentEvent']),
  );
  expect(output).toContain('event: complete');
  const [state = ''] = /^\{"data":\{"run":.*$/m.exec(output) ?? [];
  const { run } = (JSON.parse(state) as { data: { run: Record<string, unknown> } }).data;
  expect(run).toMatchObject({ status: 'COMPLETED', unverifiedCitations: [], lastError: null });
  expect(run['childRuns']).toHaveLength(2);
  expect(run['output']).toBe(answer.trimEnd());
}, 90_000);
