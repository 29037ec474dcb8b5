import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Two copies of graphql (ESM and CommonJS) would break instanceof: every import meets the same file.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    include: ['test/**/*.test.ts'],
    // Generous: a machine that is busy with something else is no reason to fail.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Promises in seconds are kept against the clock of a machine that others use, too: a test that fails there gets a second chance,
    // and the report says that it needed one. At a developer's desk it fails at once.
    retry: process.env['CI'] === 'true' ? 2 : 0,
    pool: 'forks',
    maxWorkers: 2,
  },
});
