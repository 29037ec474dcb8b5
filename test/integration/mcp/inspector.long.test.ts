// The MCP Inspector's command line, as the README has it, against this server.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createScratchpad, createToken, readLedger, type AgentRole } from '../../support/operations.js';
import { runTerminal } from '../../support/readme.js';
import { startService } from '../../support/service.js';

const root = path.resolve(import.meta.dirname, '../../..');

async function readCommand(): Promise<{ command: string; packageName: string }> {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8');
  const [command = '', packageName = ''] = /^npx (@modelcontextprotocol\/inspector@\S+) .*$/m.exec(readme) ?? [];
  return { command, packageName };
}

it('lists the tools of a role, and calls one', async ({ skip }) => {
  const { command, packageName } = await readCommand();
  const directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-inspector-'));
  const run = async (lines: string): Promise<{ code: number | null; output: string }> => {
    const terminal = runTerminal(`export npm_config_yes=true npm_config_loglevel=error\n${lines}`, directory);
    return { code: await terminal.ended, output: terminal.output() };
  };
  const look = await run(`npm view ${packageName} version --fetch-retries=1 --fetch-timeout=20000`);
  // A registry that answers and has no such version is a mistake in the README.
  const isAway = look.code !== 0 && !/E404|ETARGET/.test(look.output);
  if (isAway) {
    process.stdout.write('The MCP Inspector was not run: the npm registry does not answer.\n');
    await rm(directory, { recursive: true, force: true });
    skip('the npm registry does not answer');
    return;
  }
  const service = await startService();
  try {
    const { client } = await service.createTenant('Ada');
    const scratchpadId = await createScratchpad(client);
    const inspect = async (role: AgentRole, ending = ''): Promise<unknown> => {
      const { secret } = await createToken(client, scratchpadId, role, { name: 'Inspector' });
      const line = command.replace('http://127.0.0.1:4000', service.url).replace('--method tools/list', ending || '$&');
      const { code, output } = await run(`SCRATCHPAD_TOKEN=${secret}\n${line}`);
      expect(code, output).toBe(0);
      return JSON.parse(output.slice(output.indexOf('{'))) as unknown;
    };
    const names = ['read_scratchpad', 'update_scratchpad', 'append_scratchpad'].map((name) => ({ name }));
    expect(await inspect('SUPERVISOR')).toMatchObject({ tools: names });
    expect(await inspect('OBSERVER')).toMatchObject({ tools: names.slice(0, 1) });
    const call = "--method tools/call --tool-name append_scratchpad --tool-arg 'note=[VERIFIED] It works.'";
    expect(await inspect('WORKER', call)).toMatchObject({ isError: false });
    const [entry, ...others] = await readLedger(client, scratchpadId);
    expect([entry, others]).toMatchObject([{ content: '[VERIFIED] It works.', author: 'Inspector' }, []]);
    process.stdout.write(`The MCP Inspector (${packageName}) lists the tools of each role, and calls one.\n`);
  } finally {
    await service.close();
    await rm(directory, { recursive: true, force: true });
  }
}, 600_000);
