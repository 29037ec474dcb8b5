// The README's examples, executed as they stand: a newcomer copies exactly these lines.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');

export interface Example {
  lines: string;
  isSecondTerminal: boolean;
}

/** The blocks for a shell between `<!-- part: begin -->` and `<!-- part: end -->`, with another server's address in them. */
export async function readExamples(part: string, serverUrl: string): Promise<Example[]> {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8');
  const text = readme.split(`<!-- ${part}: begin -->`)[1]?.split(`<!-- ${part}: end -->`)[0] ?? '';
  return [...text.matchAll(/```sh( second-terminal)?\n([\s\S]*?)```/g)].map(([, second, lines = '']) => ({
    isSecondTerminal: second !== undefined,
    lines: lines.replace('http://127.0.0.1:4000', serverUrl).replaceAll(' dist/', ` ${root}/dist/`),
  }));
}

export interface Terminal {
  output: () => string;
  ended: Promise<number | null>;
}

/** Runs lines in one bash, as a terminal would; the directory holds `.data` like the project's folder does. */
export function runTerminal(lines: string, directory: string): Terminal {
  const child = spawn('bash', ['-u', '-c', lines], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const read = (chunk: Buffer): void => void (text += chunk.toString());
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  return { output: () => text, ended: once(child, 'close').then(([code]: (number | null)[]) => code ?? null) };
}
