// A scratchpad's state and changes as an agent token sees them: whole, but for the names of the runs and assistants that wrote there.
import { DomainError } from '../shared/errors.js';
import type { PadReading } from './pad-reader.js';
import type { EntryState } from './schemas.js';
import type { ScratchpadChange } from './scratchpad-change.js';

/** The author stays: it is a label. */
export const entryWithoutRun = (entry: EntryState): EntryState => ({ ...entry, runId: null });

export const readingWithoutRuns = (reading: PadReading | Error): PadReading | Error =>
  reading instanceof Error || reading.pages === undefined
    ? reading
    : {
        ...reading,
        pages: reading.pages.map((page) =>
          page instanceof DomainError
            ? page
            : { ...page, edges: page.edges.map((edge) => ({ ...edge, node: entryWithoutRun(edge.node) })) },
        ),
      };

const changeWithoutRun = (change: ScratchpadChange): ScratchpadChange => ({
  ...change,
  ...(change.entry && { entry: entryWithoutRun(change.entry) }),
  runId: null,
  assistantId: null,
});

/** The same changes at the same pace; return() reaches the source. */
export function changesWithoutRuns(
  source: AsyncIterableIterator<ScratchpadChange>,
): AsyncIterableIterator<ScratchpadChange> {
  return {
    async next() {
      const step = await source.next();
      return step.done ? step : { done: false, value: changeWithoutRun(step.value) };
    },
    return: () => source.return?.() ?? Promise.resolve({ done: true, value: undefined }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
