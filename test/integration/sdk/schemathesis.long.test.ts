// Schemathesis, which makes requests out of the OpenAPI document: no 500, no answer that the document does not have.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createPythonEnvironment } from '../../support/python.js';
import { createScratchpad, createToken } from '../../support/operations.js';
import { startService } from '../../support/service.js';

it('finds no answer that differs from the OpenAPI document', async ({ skip }) => {
  const python = await createPythonEnvironment(['schemathesis>=4.32']);
  if (!python) {
    process.stdout.write('Schemathesis was not run: PyPI does not answer.\n');
    skip('PyPI does not answer');
    return;
  }
  const service = await startService();
  try {
    const { userId, secret, client } = await service.createTenant('Ada');
    const settings = path.join(python.directory, 'schemathesis.toml');
    const scratchpadId = await createScratchpad(client);
    const token = await createToken(client, scratchpadId, 'SUPERVISOR');
    const callers = [
      // No operation tells this id: without it the lists of threads would only ever be "not found".
      { secret, parameters: `"path.user_id" = "${userId}"` },
      { secret: token.secret, parameters: `"path.scratchpad_id" = "${scratchpadId}"` },
    ];
    for (const caller of callers) {
      await writeFile(settings, `[parameters]\n${caller.parameters}\n`);
      // A schema cannot say which cursors exist, or that a text may not contain NUL at any depth: such requests are refused with 422.
      const checks = ['--checks', 'all', '--exclude-checks', 'positive_data_acceptance', '--continue-on-failure'];
      const bounds = ['--max-examples', '20', '--seed', '20261130', '--no-color'];
      const target = [`${service.url}/v1/openapi.json`, '--header', `Authorization: Bearer ${caller.secret}`];
      const values = ['--config-file', settings, 'run', ...target, ...checks, ...bounds];
      const { code, output } = await python.run('schemathesis', values, 900_000);
      const who = caller.secret === secret ? 'a user' : 'an agent token';
      process.stdout.write(`As ${who}: ${/Test cases:\s+.*/.exec(output)?.[0] ?? output}\n`);
      expect(code, output).toBe(0);
      expect(output).toMatch(/Tested: +27/);
      expect(Number(/(\d+) generated/.exec(output)?.[1])).toBeGreaterThan(500);
    }
  } finally {
    await service.close();
    await python.remove();
  }
}, 2_700_000);
