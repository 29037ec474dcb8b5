// Programs from PyPI, each in a virtual environment that is thrown away with the test.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface Outcome {
  code: number | null;
  output: string;
}

/** Runs a program to its end, without the caller's environment but the little that it needs, and at most this long. */
function runProgram(program: string, values: string[], options: { cwd: string; timeoutMs: number }): Promise<Outcome> {
  const child = spawn(program, values, {
    cwd: options.cwd,
    env: { ...process.env, PYTHONUNBUFFERED: '1', PIP_DISABLE_PIP_VERSION_CHECK: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.timeoutMs,
  });
  let output = '';
  const read = (chunk: Buffer): void => void (output += chunk.toString());
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

export interface PythonEnvironment {
  directory: string;
  run(program: string, values: string[], timeoutMs: number): Promise<Outcome>;
  remove(): Promise<void>;
}

// Generous: they are large, and the machine may be busy.
const installLimitMs = 900_000;

/**
 * An environment with these packages, as PyPI has them now; undefined when PyPI does not answer at all.
 * @throws Error when it answers and they cannot be installed
 */
export async function createPythonEnvironment(packages: string[]): Promise<PythonEnvironment | undefined> {
  const directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-python-'));
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true });
  const run: PythonEnvironment['run'] = (program, values, timeoutMs) =>
    runProgram(path.join(directory, 'bin', program), values, { cwd: directory, timeoutMs });
  try {
    const made = await runProgram('python3', ['-m', 'venv', directory], { cwd: tmpdir(), timeoutMs: installLimitMs });
    if (made.code !== 0) throw new Error(`python3 -m venv ended with ${made.code}:\n${made.output}`);
    const [name = ''] = /^[\w-]+/.exec(packages[0] ?? '') ?? [];
    const look = await run('pip', ['index', 'versions', '--retries', '1', '--timeout', '10', name], 60_000);
    if (look.code !== 0) {
      await remove();
      return undefined;
    }
    const installed = await run('pip', ['install', '--quiet', ...packages], installLimitMs);
    if (installed.code !== 0) throw new Error(`pip install ended with ${installed.code}:\n${installed.output}`);
    return { directory, run, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
