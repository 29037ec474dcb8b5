// The shared scratchpad of one run: resolved from the run's metadata once, the same for all three tools, whoever's conversation calls.
import type { Principal } from '../identity/principal.js';
import type { ScratchpadService } from '../scratchpads/scratchpad-service.js';
import { notFound } from '../shared/errors.js';
import { createId } from '../shared/ids.js';
import {
  appendScratchpad,
  readScratchpad,
  updateScratchpad,
  type ScratchpadPort,
} from '../tools/scratchpad/scratchpad-tools.js';
import { scratchpadActivities } from './run-activity.js';
import type { RunReporter, ScratchpadReport } from './run-reporter.js';
import type { RunMetaData } from './run-store.js';
import { createWorkUnderWay } from './work-under-way.js';

export interface RunScratchpad extends ScratchpadPort {
  /** How many entries this run has appended. */
  appendedEntries(): number;
  /** Tells the stream of a call to one of its tools that was answered without it; of any other tool's it says nothing. */
  refused(toolName: string): void;
  /** Resolves when nothing is under way any more: a cancelled call may still be writing. */
  settled(): Promise<void>;
}

interface Options {
  scratchpads: Pick<ScratchpadService, 'ensureForThread' | 'formattedView' | 'read' | 'setContent' | 'appendEntry'>;
  /** The run's owner. */
  principal: Principal;
  metaData: RunMetaData;
  runId: string;
  /** Who writes: the assistant, by its name. */
  author: string;
  assistantId: string | null;
  reporter: Pick<RunReporter, 'scratchpad' | 'status'>;
}

type Operation = keyof typeof scratchpadActivities;
type Payload = Pick<ScratchpadReport, 'entry' | 'content'>;

const toolOf: Record<Operation, string> = {
  READ: readScratchpad.name,
  UPDATE: updateScratchpad.name,
  APPEND: appendScratchpad.name,
};

const operations = Object.keys(toolOf) as Operation[];

export function createRunScratchpad(options: Options): RunScratchpad {
  const { scratchpads, principal, metaData, runId, author, assistantId, reporter } = options;
  const origin = { author, runId, ...(assistantId !== null && { assistantId }) };
  const underWay = createWorkUnderWay();
  let resolving: Promise<string> | undefined;
  let appended = 0;

  async function lookUp(): Promise<string> {
    if (metaData.scratch_pad_thread === undefined) throw notFound();
    return (await scratchpads.ensureForThread(principal, metaData.scratch_pad_thread)).id;
  }

  /** With the id at hand no thread is looked up; without it one look-up serves everything, also what comes at the same time. */
  async function resolvePad(): Promise<string> {
    if (metaData.scratchpad_id !== undefined) return metaData.scratchpad_id;
    resolving ??= lookUp();
    try {
      return await resolving;
    } catch (error) {
      resolving = undefined;
      throw error;
    }
  }

  async function expiresAt(scratchpadId: string): Promise<Date | null> {
    if (principal.kind !== 'user') return null;
    const pad = { ownerId: principal.userId, scratchpadId };
    try {
      return (await scratchpads.read(principal, [{ pad, expiresAt: true }]))[0]?.expiresAt ?? null;
    } catch {
      // What was asked for is done: a missing instant in its event is no reason to call it failed.
      return null;
    }
  }

  /** One bracketed operation; its result goes to whoever called, its payload into the stream. */
  async function perform<Result>(
    operation: Operation,
    work: (scratchpadId: string) => Promise<Result>,
    payloadOf: (result: Result) => Payload,
  ): Promise<Result> {
    const scratchpadId = await resolvePad();
    const activity = scratchpadActivities[operation];
    const report = (state: ScratchpadReport['state'], more: Partial<ScratchpadReport> = {}): void =>
      reporter.scratchpad({ scratchpadId, operation, state, activity, tool: toolOf[operation], assistantId, ...more });

    report('IN_PROGRESS');
    try {
      const result = await work(scratchpadId);
      report('SUCCESS', { ...payloadOf(result), expiresAt: await expiresAt(scratchpadId) });
      report('COMPLETED');
      if (operation !== 'READ') {
        const written = operation === 'APPEND' ? `${author} appended a note` : `${author} rewrote the content`;
        reporter.status('SCRATCHPAD_UPDATED', written, { state: 'COMPLETED', tool: toolOf[operation] });
      }
      return result;
    } catch (error) {
      report('ERROR');
      throw error;
    }
  }

  async function reportRefusal(operation: Operation): Promise<void> {
    const scratchpadId = await resolvePad();
    const call = { scratchpadId, operation, tool: toolOf[operation], assistantId };
    reporter.scratchpad({ ...call, state: 'IN_PROGRESS', activity: scratchpadActivities[operation] });
    reporter.scratchpad({
      ...call,
      state: 'ERROR',
      activity: `${scratchpadActivities[operation]}: the call was refused`,
    });
  }

  return {
    refused(toolName) {
      const operation = operations.find((one) => toolOf[one] === toolName);
      // Without a pad there is nothing that the event could name.
      if (operation) underWay.track(reportRefusal(operation)).catch(() => undefined);
    },
    read: () =>
      underWay.track(
        perform(
          'READ',
          (scratchpadId) => scratchpads.formattedView(principal, scratchpadId),
          () => ({}),
        ),
      ),
    async update(content) {
      await underWay.track(
        perform(
          'UPDATE',
          (scratchpadId) => scratchpads.setContent(principal, scratchpadId, { text: content }, origin),
          (written) => ({ content: written }),
        ),
      );
    },
    async append(note) {
      await underWay.track(
        perform(
          'APPEND',
          async (scratchpadId) => {
            // With a key of its own a write whose answer was lost is not made twice on the way.
            const input = { content: note, idempotencyKey: createId('call') };
            const { entry } = await scratchpads.appendEntry(principal, scratchpadId, input, origin);
            appended++;
            return entry;
          },
          (entry) => ({ entry }),
        ),
      );
    },
    appendedEntries: () => appended,
    settled: () => underWay.settled(),
  };
}
