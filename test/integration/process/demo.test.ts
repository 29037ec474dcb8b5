// script/demo as a newcomer runs it: no network, no key, five verdicts, and nothing left behind.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

const demo = path.resolve(import.meta.dirname, '../../../script/demo');
let directory: string;

beforeAll(async () => {
  // Short: a Unix socket will be in it.
  directory = await mkdtemp(path.join(tmpdir(), 'demo-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** What compiles TypeScript on the fly keeps its results for the next time. */
const leftBehind = async (): Promise<string[]> =>
  (await readdir(directory)).filter((name) => !name.startsWith('tsx-') && name !== 'node-compile-cache');

function startDemo(variables: Record<string, string> = {}) {
  const child = spawn(demo, {
    cwd: tmpdir(),
    env: { ...process.env, LLM_BASE_URL: '', TMPDIR: directory, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const read = (chunk: Buffer): void => void (output += chunk.toString());
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  const ended = once(child, 'close').then(([code]: (number | null)[]) => code ?? null);
  return { child, output: () => output, ended };
}

it('shows two runs, ends with the five verdicts, and leaves nothing behind', async () => {
  const { output, ended } = startDemo();
  expect(await ended, output()).toBe(0);
  const lines = output().trimEnd().split('\n');
  expect(lines.slice(-5)).toEqual([
    'INFERENCE_STREAM=PASS',
    'CORE_TOOL_BOUNDARY=PASS',
    'SHARED_SCRATCHPAD=PASS',
    'DEEP_RESEARCH_INTEGRATION=PASS',
    'WORKER_FAILURE_LIFECYCLE=PASS',
  ]);
  expect(lines).toContain('CLIENT_TOOL_REQUEST_SURFACED=NO');
  expect(lines).toContain('LOCAL_TOOL_EXECUTOR_USED=NO');
  // What a person came for.
  expect(output()).toMatch(/\[VERIFIED\] the lighthouse of Île Vierge is 82\.5 metres high/);
  expect(output()).toContain('The lighthouse of Île Vierge is taller, by 27.5 metres.');
  expect(output()).toContain('PROVIDER_ERROR');
  expect(await leftBehind()).toEqual([]);
}, 180_000);

it('ends everything that it started when it is interrupted', async () => {
  const { child, output, ended } = startDemo();
  await expect.poll(output, { timeout: 120_000, interval: 50 }).toContain('Planning the research');
  child.kill('SIGINT');
  expect(await ended, output()).toBe(130);
  expect(await leftBehind()).toEqual([]);
}, 180_000);
