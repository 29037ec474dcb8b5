// What the README says of agents, executed as it stands: its shell lines, its program, and the addresses and headers of its configurations.
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readExamples, runTerminal } from '../../support/readme.js';
import { startService, type Service } from '../../support/service.js';

const root = path.resolve(import.meta.dirname, '../../..');
let directory: string;
let service: Service;
let token: string;

/** The blocks of one language in the README's section about agents. */
async function blocksOf(language: string): Promise<string[]> {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8');
  const section = readme.split('<!-- agents: begin -->')[1]?.split('<!-- agents: end -->')[0] ?? '';
  return [...section.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text = '']) =>
    text.replaceAll('http://127.0.0.1:4000', service.url),
  );
}

async function toolsAt(url: string, authorization: string): Promise<string[]> {
  const client = new Client({ name: 'a test', version: '1.0.0' });
  const options = { requestInit: { headers: { authorization } } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  const { tools } = await client.listTools();
  await client.close();
  return tools.map(({ name }) => name);
}

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'scratchpad-agents-'));
  service = await startService();
  const { secret } = await service.createTenant('Developer');
  await mkdir(path.join(directory, '.data'));
  await writeFile(path.join(directory, '.data/development-key'), secret);
  await symlink(path.join(root, 'node_modules'), path.join(directory, 'node_modules'));
});
afterAll(async () => {
  await service.close();
  await rm(directory, { recursive: true, force: true });
});

it('makes a token, and calls a tool with it', async () => {
  const examples = await readExamples('agents', service.url);
  expect(examples).toHaveLength(2);
  const lines = examples.map((example) => example.lines).join('');
  const terminal = runTerminal(`set -e\n${lines}\necho "token $SCRATCHPAD_TOKEN"`, directory);
  expect(await terminal.ended, terminal.output()).toBe(0);
  expect(terminal.output()).toContain('"isError":false');
  token = /token (spa_\S+)/.exec(terminal.output())?.[1] ?? '';
  expect(token).toHaveLength(47);
});

it('runs as a program', async () => {
  const [program = ''] = await blocksOf('js');
  await writeFile(path.join(directory, 'agent.mjs'), program);
  const terminal = runTerminal(`SCRATCHPAD_TOKEN=${token} node agent.mjs`, directory);
  expect(await terminal.ended, terminal.output()).toBe(0);
  expect(terminal.output()).toContain('by "Worker A"\n| [VERIFIED] Supplier B delivers in May.');
});

it('connects with what the commands for other programs say', async () => {
  const [commands = '', ...inspector] = await blocksOf('text');
  expect(inspector).toHaveLength(1);
  const lines = commands.trim().split('\n');
  expect(lines.map((line) => line.split(' ')[0])).toEqual(['claude', 'codex']);
  for (const line of lines) {
    // The programs are not here: their names stand for showing what they are given.
    const stub = 'claude() { printf "%s\\n" "$@"; }; codex() { claude "$@"; }';
    const terminal = runTerminal(`${stub}; export SCRATCHPAD_TOKEN=${token}; ${line}`, directory);
    expect(await terminal.ended, terminal.output()).toBe(0);
    const words = terminal.output().split('\n');
    const url = words.find((word) => word.startsWith('http:')) ?? '';
    const variable = words[words.indexOf('--bearer-token-env-var') + 1] ?? '';
    const header = words.find((word) => word.startsWith('Authorization: ')) ?? '';
    const authorization =
      header.slice('Authorization: '.length) || (variable === 'SCRATCHPAD_TOKEN' && `Bearer ${token}`);
    expect(await toolsAt(url, authorization || ''), line).toEqual(['read_scratchpad', 'append_scratchpad']);
  }
});

it('connects with what the configurations say', async () => {
  const configurations = (await blocksOf('json')).map(
    (text) => JSON.parse(text) as Record<string, Record<string, { url: string; headers: Record<string, string> }>>,
  );
  const servers = configurations.map(({ mcpServers, servers: named }) => (mcpServers ?? named)?.['scratchpad']);
  expect(servers).toHaveLength(2);
  for (const server of servers) {
    const authorization = server?.headers['Authorization']?.replace(/\$\{\w+:SCRATCHPAD_TOKEN\}/, token) ?? '';
    expect(await toolsAt(server?.url ?? '', authorization)).toEqual(['read_scratchpad', 'append_scratchpad']);
  }
});
