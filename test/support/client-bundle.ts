// The client as a page loads it: bundled for browsers out of the built package, minified.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build } from 'vite';

const root = path.resolve(import.meta.dirname, '../..');

export interface Bundle {
  code: string;
  /** What it would still import from elsewhere. */
  imports: string[];
}

/** @param entry the program, which may import from "scratchpad/client" */
export async function bundleForBrowsers(entry: string): Promise<Bundle> {
  const directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-bundle-'));
  try {
    const file = path.join(directory, 'page.js');
    await writeFile(file, entry);
    const result = await build({
      configFile: false,
      root: directory,
      logLevel: 'error',
      resolve: { alias: { 'scratchpad/client': path.join(root, 'dist/client/index.js') } },
      build: {
        write: false,
        minify: true,
        modulePreload: false,
        // A library build of vite would keep its white space.
        rolldownOptions: { input: file, preserveEntrySignatures: 'strict', output: { format: 'es' } },
      },
    });
    const [output] = Array.isArray(result) ? result : [result];
    if (!output || !('output' in output)) throw new Error('vite watches');
    const chunks = output.output.filter((part) => part.type === 'chunk');
    return {
      code: chunks.map(({ code }) => code).join('\n'),
      imports: chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]),
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
