// `cli research`: against a running server and with one of its own, with the demo's model and documents.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startResearchModel, type ResearchModel } from '../../../script/demo.d/research-model.js';
import { startSmallWeb, type SmallWeb } from '../../../script/demo.d/small-web.js';
import { startScriptServer, type ScriptServer } from '../../support/script-server.js';

const cli = path.resolve(import.meta.dirname, '../../../dist/cli.js');
const question = 'Which is taller, Jeddah Light or the Tower of Hercules, and by how much?';

let directory: string;
let web: SmallWeb;
let model: ResearchModel;
let server: ScriptServer;
let settings: Record<string, string>;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  [directory, web, model] = await Promise.all([
    mkdtemp(path.join(tmpdir(), 'research-')),
    startSmallWeb(),
    startResearchModel({ paceMs: 5 }),
  ]);
  settings = {
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY: 'provider-key',
    LLM_MODEL: 'rules',
    SEARXNG_URL: web.searchUrl,
    WEB_ALLOW_PRIVATE_HOSTS: 'true',
  };
  server = await startScriptServer({ DATA_DIR: path.join(directory, 'server'), ...settings });
}, 120_000);
afterEach(() => {
  model.dieUnder(undefined);
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});
afterAll(async () => {
  await server.end();
  await Promise.all([web.close(), model.close()]);
  await rm(directory, { recursive: true, force: true });
});

function startCli(parameters: string[], variables: Record<string, string> = {}) {
  const cleared = {
    DATABASE_URL: '',
    REDIS_URL: '',
    SCRATCHPAD_API_KEY: '',
    LLM_BASE_URL: '',
    LLM_MODEL: '',
    SEARXNG_URL: '',
  };
  const child = spawn(process.execPath, [cli, 'research', ...parameters], {
    env: { ...process.env, ...cleared, DATA_DIR: path.join(directory, 'own'), ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  const texts = { answer: '', progress: '' };
  child.stdout.on('data', (chunk: Buffer) => void (texts.answer += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => void (texts.progress += chunk.toString()));
  const ended = once(child, 'close').then(([code]: (number | null)[]) => ({ code: code ?? null, ...texts }));
  return { child, texts, ended };
}

const atServer = (...more: string[]): string[] => [
  question,
  '--url',
  server.url,
  '--key',
  server.developmentKey,
  ...more,
];

describe('cli research against a running server', () => {
  it('shows activity and findings as they land, and writes the answer alone to stdout', async () => {
    const { code, answer, progress } = await startCli(atServer()).ended;
    expect(progress).toContain('supervisor');
    expect(code).toBe(0);
    expect(answer).toMatch(/^Jeddah Light is taller, by 78 metres\.\n/);
    expect(answer).toContain(`${web.siteUrl}/jeddah-light`);
    expect(answer).not.toContain('supervisor');
    const landmarks = [
      'Planning',
      '[STRATEGY]',
      'worker-1',
      '[PENDING]',
      'Reading http',
      '[VERIFIED]',
      'worker-2',
      'COMPLETED after',
    ];
    const places = landmarks.map((landmark) => progress.indexOf(landmark));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(progress).not.toContain('Unverified');
    expect(progress).not.toContain('\u001b');
  }, 60_000);

  it('takes the key from the environment, and says so when the server does not know it', async () => {
    const known = startCli([question, '--url', `${server.url}/graphql`], { SCRATCHPAD_API_KEY: server.developmentKey });
    expect(await known.ended).toMatchObject({ code: 0 });
    const unknown = await startCli([question, '--url', server.url, '--key', 'not-a-key']).ended;
    expect(unknown).toMatchObject({ code: 1, answer: '' });
    expect(unknown.progress).toContain('does not know this key');
    expect((await startCli([question, '--url', server.url]).ended).progress).toContain('SCRATCHPAD_API_KEY');
  }, 60_000);

  it('exits with 1 and the error code when no worker succeeds', async () => {
    model.dieUnder('How high is');
    const { code, answer, progress } = await startCli(atServer('--max-workers', '1')).ended;
    expect({ code, answer }).toEqual({ code: 1, answer: '' });
    expect(progress).toContain('PROVIDER_ERROR');
    expect(progress).toContain('NO_EVIDENCE');
    expect(progress).toContain('docs/guides/providers.md');
  }, 60_000);

  it('cancels the run on Ctrl-C and waits for its end', async () => {
    const { child, texts, ended } = startCli(atServer());
    await expect.poll(() => texts.progress, { timeout: 20_000, interval: 20 }).toContain('[STRATEGY]');
    child.kill('SIGINT');
    const { code, progress } = await ended;
    expect(code).toBe(1);
    expect(progress).toContain('Cancelling the run');
    expect(progress).toContain('CANCELLED after');
  }, 60_000);

  it('refuses what is no count and no address before it asks anybody', async () => {
    expect((await startCli(atServer('--max-turns', '0')).ended).progress).toContain('whole number of at least 1');
    const crowd = await startCli([question, '--max-workers', '11'], settings).ended;
    expect(crowd).toMatchObject({ code: 1, answer: '' });
    expect(crowd.progress).toMatch(/--max-workers.*Give at most 10/);
    expect((await startCli([question, '--url', 'ftp://host']).ended).progress).toContain('http://127.0.0.1:4000');
    const away = await startCli([question, '--url', 'http://127.0.0.1:9', '--key', 'k']).ended;
    expect(away).toMatchObject({ code: 1 });
    expect(away.progress).toContain('No server answers at http://127.0.0.1:9/graphql');
  }, 60_000);
});

describe('cli research without a server', () => {
  it('starts what it needs, and ends it', async () => {
    for (let time = 0; time < 2; time += 1) {
      const { code, answer, progress } = await startCli([question], settings).ended;
      expect({ code, progress }).toMatchObject({ code: 0 });
      expect(answer).toContain('Jeddah Light is taller, by 78 metres.');
    }
  }, 120_000);

  it('says what to set when no model is configured, or none is named', async () => {
    const none = await startCli([question]).ended;
    expect(none).toMatchObject({ code: 1, answer: '' });
    expect(none.progress).toContain('LLM_BASE_URL');
    expect(none.progress).toContain('docs/guides/providers.md');
    const unnamed = await startCli([question], { ...settings, LLM_MODEL: '' }).ended;
    expect(unnamed).toMatchObject({ code: 1, answer: '' });
    expect(unnamed.progress).toContain('LLM_MODEL');
  }, 60_000);

  it('names the way out when a server holds the data directory', async () => {
    const held = await startCli([question], { ...settings, DATA_DIR: path.join(directory, 'server') }).ended;
    expect(held.code).toBe(1);
    expect(held.progress).toContain('--url');
  }, 60_000);
});
