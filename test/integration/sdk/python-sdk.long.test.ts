// The published Python SDK, unmodified, against this server: the judge of the REST wire shapes.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createPythonEnvironment } from '../../support/python.js';
import { createScratchpad, createToken } from '../../support/operations.js';
import { startService } from '../../support/service.js';

const root = path.resolve(import.meta.dirname, '../../..');
const script = path.join(root, 'test/fixtures/python-sdk.py');

/** The example of the README, for this server. */
async function readExample(url: string, secret: string): Promise<string> {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8');
  const lines = /```python\n([\s\S]*?)```/.exec(readme)?.[1]?.replace('http://127.0.0.1:4000', url);
  return `KEY = "${secret}"\n${lines}print(client.scratchpads.list_entries(pad.id).data[0].content)\n`;
}

it('calls every method of the SDK that the service answers', async ({ skip }) => {
  const python = await createPythonEnvironment(['projectdavid>=1.113.1', 'projectdavid-common']);
  if (!python) {
    process.stdout.write('The Python SDK was not tested: PyPI does not answer.\n');
    skip('PyPI does not answer');
    return;
  }
  const service = await startService();
  try {
    const { userId, secret } = await service.createTenant('Ada');
    const other = await service.createTenant('Grace');
    const scratchpadId = await createScratchpad(other.client);
    const token = await createToken(other.client, scratchpadId, 'WORKER');
    const values = [script, service.url, secret, userId, token.secret, scratchpadId];
    const { code, output } = await python.run('python', values, 300_000);
    const passed = [...output.matchAll(/^passed (\S+)$/gm)].map(([, name]) => name);
    const versions = output.match(/^projectdavid\S* \S+$/gm)?.join(', ');
    process.stdout.write(`The Python SDK (${versions}) works with these methods:\n  ${passed.join('\n  ')}\n`);
    const unanswered = [...output.matchAll(/^not answered (\S+)$/gm)].map(([, name]) => name);
    process.stdout.write(`These it offers and the service does not answer:\n  ${unanswered.join('\n  ')}\n`);
    expect(code, output).toBe(0);
    expect(output).toMatch(/^works with an agent token$/m);
    expect(output).toMatch(/^all methods passed$/m);
    expect(passed).toHaveLength(27);

    const example = await python.run('python', ['-c', await readExample(service.url, secret)], 60_000);
    expect(example.code, example.output).toBe(0);
    expect(example.output).toContain('Verified finding…');
  } finally {
    await service.close();
    await python.remove();
  }
}, 1_500_000);
