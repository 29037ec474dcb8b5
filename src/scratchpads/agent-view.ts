// A scratchpad's state and changes as an agent token sees them: whole, but for the names of the runs and assistants that wrote there.
import { mapNodes } from '../shared/pagination.js';
import { isDivertible, type Preparation, type Seat } from '../shared/divertible.js';
import { DomainError } from '../shared/errors.js';
import type { LedgerPage } from './ledger-page.js';
import type { PadReading } from './pad-reader.js';
import type { EntryState } from './schemas.js';
import type { ScratchpadChange } from './scratchpad-change.js';

/** The author stays: it is a label. */
export const entryWithoutRun = (entry: EntryState): EntryState => ({ ...entry, runId: null });

/** The page of an unchanged ledger stays the same object here, too. */
const pageViews = new WeakMap<LedgerPage, LedgerPage>();

function pageWithoutRuns(page: LedgerPage): LedgerPage {
  let view = pageViews.get(page);
  if (!view) {
    view = { ...mapNodes(page, entryWithoutRun), totalCount: page.totalCount };
    pageViews.set(page, view);
  }
  return view;
}

export const readingWithoutRuns = (reading: PadReading | Error): PadReading | Error =>
  reading instanceof Error || reading.pages === undefined
    ? reading
    : {
        ...reading,
        pages: reading.pages.map((page) => (page instanceof DomainError ? page : pageWithoutRuns(page))),
      };

const changeWithoutRun = (change: ScratchpadChange): ScratchpadChange =>
  Object.freeze({
    ...change,
    ...(change.entry && { entry: Object.freeze(entryWithoutRun(change.entry)) }),
    runId: null,
    assistantId: null,
  });

/** A view of changes that is the same object for every agent who is told the same change. */
export function createAgentChanges(): (
  source: AsyncIterableIterator<ScratchpadChange>,
) => AsyncIterableIterator<ScratchpadChange> {
  const views = new WeakMap<ScratchpadChange, ScratchpadChange>();
  const viewOf = (change: ScratchpadChange): ScratchpadChange => {
    let view = views.get(change);
    if (!view) {
      view = changeWithoutRun(change);
      views.set(change, view);
    }
    return view;
  };
  /** By what is done with the views: the same for all agents, as what is done is the same for all who are told together. */
  const preparations = new WeakMap<Preparation<ScratchpadChange, object>, Preparation<ScratchpadChange, object>>();
  const ofView = <Told extends object>(
    prepare: Preparation<ScratchpadChange, Told>,
  ): Preparation<ScratchpadChange, Told> => {
    let prepareView = preparations.get(prepare) as Preparation<ScratchpadChange, Told> | undefined;
    if (!prepareView) {
      prepareView = (change) => prepare(viewOf(change));
      preparations.set(prepare, prepareView);
    }
    return prepareView;
  };

  // The same changes at the same pace; return() reaches the source.
  return (source) => ({
    async next() {
      const step = await source.next();
      return step.done ? step : { done: false, value: viewOf(step.value) };
    },
    return: () => source.return?.() ?? Promise.resolve({ done: true, value: undefined }),
    ...(isDivertible(source) && {
      divert<Told extends object>(prepare: Preparation<ScratchpadChange, Told>, seat: Seat<Told>): void {
        source.divert(ofView(prepare), seat);
      },
    }),
    [Symbol.asyncIterator]() {
      return this;
    },
  });
}
