// Stands in for what executes runs, where a test is about starting, watching and cancelling them: it records, and executes nothing.
import type { RunRuntime } from '../../src/domain.js';
import type { RunAddress, RunEventRecord } from '../../src/research/run-event.js';
import type { RunRow } from '../../src/research/run-store.js';

export interface RecordingRunRuntime extends RunRuntime {
  readonly enqueued: RunRow[];
  readonly cancelRequested: RunRow[];
  readonly endedUnexecuted: RunRow[];
  readonly subscriptions: { run: RunAddress; after: string | undefined }[];
  /** What every subscription delivers; then it completes. */
  told: RunEventRecord[];
  /** Called before a run is taken; may throw, as a queue does that is away. */
  beforeEnqueue: (run: RunRow) => void | Promise<void>;
  /** Called before a signal is taken; may throw. */
  beforeSignal: (run: RunRow) => void | Promise<void>;
}

const nothing = (): void => {};

async function* deliver(events: readonly RunEventRecord[]): AsyncGenerator<RunEventRecord, undefined> {
  yield* events;
  return undefined;
}

export function createRecordingRunRuntime(): RecordingRunRuntime {
  const runtime: RecordingRunRuntime = {
    enqueued: [],
    cancelRequested: [],
    endedUnexecuted: [],
    subscriptions: [],
    told: [],
    beforeEnqueue: nothing,
    beforeSignal: nothing,
    dispatcher: {
      async enqueue(run) {
        await runtime.beforeEnqueue(run);
        runtime.enqueued.push(run);
      },
      async requestCancel(run) {
        await runtime.beforeSignal(run);
        runtime.cancelRequested.push(run);
      },
      async endedUnexecuted(run) {
        await runtime.beforeSignal(run);
        runtime.endedUnexecuted.push(run);
      },
    },
    events: {
      subscribe: (run, { after }) => {
        runtime.subscriptions.push({ run, after });
        return Promise.resolve(deliver(runtime.told));
      },
    },
  };
  return runtime;
}
