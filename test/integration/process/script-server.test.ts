// script/server as a newcomer uses it: embedded stores, one command, Ctrl-C, and again.
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startScriptServer, type ScriptServer } from '../../support/script-server.js';

let dataDirectory = '';
const started = new Set<ScriptServer>();

beforeAll(async () => {
  dataDirectory = await mkdtemp(path.join(tmpdir(), 'scratchpad-server-'));
});
afterEach(async () => {
  for (const server of started) await server.end();
  started.clear();
});
afterAll(() => rm(dataDirectory, { recursive: true, force: true }));

async function startServer(variables: Record<string, string> = {}): Promise<ScriptServer> {
  const server = await startScriptServer({ DATA_DIR: dataDirectory, ...variables });
  started.add(server);
  return server;
}

async function ask(server: ScriptServer, query: string, variables: object = {}): Promise<Record<string, unknown>> {
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${server.developmentKey}` },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = (await response.json()) as { data: Record<string, unknown>; errors?: unknown };
  expect(errors).toBeUndefined();
  return data;
}

/** Whether a process has this folder in its command line. Linux only: elsewhere nothing is known. */
async function processesOf(directory: string): Promise<string[]> {
  if (!existsSync('/proc/self/cmdline')) return [];
  const commands = (await readdir('/proc'))
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => ''));
  return (await Promise.all(commands)).filter((command) => command.includes(directory));
}

const createPad = /* GraphQL */ `
  mutation {
    createThread(input: {}) {
      thread {
        id
      }
    }
  }
`;

describe('script/server', () => {
  it('starts on embedded stores, prints what a person needs, and keeps everything over SIGTERM, SIGINT and SIGKILL', async () => {
    const first = await startServer();
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(first.output()).toContain(`${first.url}/graphql`);
    const created = await ask(first, createPad);
    expect(await first.stop('SIGTERM')).toMatchObject({ code: 0 });
    expect(await processesOf(dataDirectory)).toEqual([]);

    for (const signal of ['SIGINT', 'SIGKILL', 'SIGTERM'] as const) {
      const next = await startServer();
      expect(next.developmentKey).toBe(first.developmentKey);
      const { viewer } = (await ask(next, '{ viewer { threads { edges { node { id } } } } }')) as {
        viewer: { threads: { edges: { node: unknown }[] } };
      };
      expect(viewer.threads.edges.map((edge) => edge.node)).toEqual([
        (created['createThread'] as { thread: unknown }).thread,
      ]);
      const { code, tookMs } = await next.stop(signal);
      expect(code).toBe(signal === 'SIGKILL' ? null : 0);
      expect(tookMs).toBeLessThan(10_000);
    }
    expect(await processesOf(dataDirectory)).toEqual([]);
  }, 240_000);

  it('is ready again in under 3 s', async () => {
    // The fastest of a few. Where more wants to run than there are processors, a second of work takes longer than a second.
    const patience = Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());
    let fastestMs = Infinity;
    for (let attempt = 0; attempt < 6 && fastestMs >= 3000; attempt += 1) {
      const server = await startServer();
      fastestMs = Math.min(fastestMs, server.startedInMs);
      await server.stop('SIGTERM');
    }
    process.stdout.write(
      `second start ready in ${Math.round(fastestMs)} ms, load ${patience.toFixed(1)} per processor\n`,
    );
    expect(fastestMs).toBeLessThan(3000 * patience);
  }, 240_000);

  it('says what is wrong with the configuration, one line for each mistake, and ends with 1', async () => {
    const error = await startServer({ PORT: 'http', LOG_LEVEL: 'loud' }).catch((reason: unknown) => String(reason));
    expect(error).toContain('ended with 1');
    expect(error).toMatch(/^PORT must be a whole number$/m);
    expect(error).toMatch(/^LOG_LEVEL must be trace,/m);
  });
});
