// How often a run may delegate.
import { expect, it } from 'vitest';
import { createDelegation } from '../../../src/research/delegation.js';
import { MOST_DELEGATIONS } from '../../../src/research/run-limits.js';

it('answers a call beyond the most delegations of a run with an error that says so, and starts no worker', async () => {
  const started: string[] = [];
  const { signal } = new AbortController();
  const delegation = createDelegation({
    maxWorkers: 10,
    runWorker({ name }) {
      started.push(name);
      return Promise.resolve({ run: null, appendedEntries: 0, fetchedUrls: [] });
    },
  });
  const calls = Array.from({ length: MOST_DELEGATIONS + 1 }, (_, place) =>
    delegation.tool.run({ task: `task ${place}` }, { signal, callId: `c${place}` }),
  );
  const last = (await Promise.all(calls)).at(-1)!;
  expect(started).toHaveLength(MOST_DELEGATIONS);
  expect(last.isError).toBe(true);
  expect(last.content).toContain('LIMIT_EXCEEDED');
  expect(last.content).toContain(`${MOST_DELEGATIONS} times`);
});
