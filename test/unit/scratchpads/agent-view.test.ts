// What agents see of changes: the same objects for all of them, so that they are told together.
import { expect, test } from 'vitest';
import { createAgentChanges } from '../../../src/scratchpads/agent-view.js';
import type { ScratchpadChange } from '../../../src/scratchpads/scratchpad-change.js';
import type { Divertible, Preparation } from '../../../src/shared/divertible.js';

const change = { operation: 'CLEAR', runId: 'run_1', assistantId: 'assistant_1' } as ScratchpadChange;

test('agents whose views are prepared alike are prepared by one function, which sees no run', () => {
  const given: Preparation<ScratchpadChange, object>[] = [];
  const source = {
    divert: (prepare: Preparation<ScratchpadChange, object>) => given.push(prepare),
  } as unknown as Divertible<ScratchpadChange>;
  const agentChanges = createAgentChanges();
  const seat = { take: () => true };
  const asItIs = (view: ScratchpadChange): ScratchpadChange => view;
  const otherwise = (view: ScratchpadChange): object => [view];
  for (const prepare of [asItIs, asItIs, otherwise]) {
    (agentChanges(source) as Divertible<ScratchpadChange>).divert(prepare, seat);
  }
  expect(given[0]).toBe(given[1]);
  expect(given[2]).not.toBe(given[1]);
  expect(given[0]!(change)).toMatchObject({ operation: 'CLEAR', runId: null, assistantId: null });
  expect(given[2]!(change)).toEqual([given[0]!(change)]);
});
