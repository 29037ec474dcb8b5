// Shows a run to a person as it happens: activity lines, notes as they land on the scratchpad, the answer streaming.
import { styleText } from 'node:util';
import type { RunEvent } from '../client/run-events.js';
import { duration, oneLine, withoutControls, wrap } from './text.js';

export interface RunView {
  show(event: RunEvent): void;
  /** A line that is no event: of ours, among the others. */
  say(line: string): void;
  /** The part of the answer that was written so far: nothing where it does not stream. */
  answer(): string;
  /** Ends an open line. */
  close(): void;
}

export interface RunViewOptions {
  /** Takes lines, and parts of lines. */
  writeProgress: (text: string) => void;
  /** Takes the answer as it streams, which it does on one screen alone. */
  writeAnswer: (text: string) => void;
  /**
   * Whether both places are one screen, where a line of one must not begin within a line of the other. Elsewhere the answer does not stream:
   * what was written into a file cannot be taken back, nor marked, when the run does not hold.
   */
  isOneScreen: boolean;
  colours: boolean;
  /** Characters in a line. */
  width: number;
}

type Style = Parameters<typeof styleText>[0];
type StatusEvent = Extract<RunEvent, { __typename: 'ResearchStatusEvent' }>;
type PadEvent = Extract<RunEvent, { __typename: 'ScratchpadEvent' }>;

const nameWidth = 10;
const margin = ' '.repeat(nameWidth + 8);

const noteStyles: [string, Style][] = [
  ['[VERIFIED]', 'green'],
  ['[UNVERIFIED]', 'yellow'],
  ['[FAILED URL]', 'red'],
  ['[PENDING]', 'dim'],
];
const styleOfNote = (note: string): Style => noteStyles.find(([marker]) => note.startsWith(marker))?.[1] ?? 'cyan';

export function createRunView(options: RunViewOptions): RunView {
  const { writeProgress, writeAnswer, isOneScreen, colours, width } = options;
  const paint = (style: Style, text: string): string =>
    colours ? styleText(style, text, { validateStream: false }) : text;
  const names = new Map<string, string>();
  const thoughts = new Map<string, string>();
  const reports = new Map<string, string>();
  let startedAt: number | undefined;
  let shownAnswer = '';
  let isMidAnswer = false;

  function line(text: string): void {
    if (isMidAnswer) {
      writeAnswer('\n\n');
      isMidAnswer = false;
    }
    writeProgress(`${text}\n`);
  }

  /** Workers are called what they call themselves; an older server might not say, so the order decides then. */
  function nameOf(event: RunEvent): string {
    if (event.originRunId === event.runId) return 'supervisor';
    const said = event.__typename === 'ResearchStatusEvent' ? /^(worker-\d+) /.exec(event.activity)?.[1] : undefined;
    const name = names.get(event.originRunId) ?? said ?? `worker-${names.size + 1}`;
    names.set(event.originRunId, name);
    return name;
  }

  function entry(event: RunEvent, text: string, style: Style = 'reset'): void {
    const at = Date.parse(event.occurredAt);
    startedAt ??= at;
    const time = paint('dim', duration(at - startedAt).padStart(5));
    const isSupervisor = event.originRunId === event.runId;
    const who = paint(isSupervisor ? 'magenta' : 'blue', nameOf(event).padEnd(nameWidth));
    line(`${time}  ${who} ${paint(style, oneLine(text, width - margin.length))}`);
  }

  function quote(text: string, style: Style): void {
    for (const part of wrap(text, width - margin.length - 2)) {
      line(`${margin}${paint('dim', '│')} ${paint(style, part)}`);
    }
  }

  function showStatus(event: StatusEvent): void {
    const { phase, activity, state } = event;
    switch (phase) {
      case 'SCRATCHPAD_UPDATED':
        // The scratchpad's own event says it, with what was written.
        nameOf(event);
        return;
      case 'RESEARCHING':
        if (state === 'IN_PROGRESS') entry(event, activity);
        else if (state === 'ERROR') entry(event, `${activity}: failed`, 'red');
        return;
      case 'WORKER_COMPLETED':
        entry(event, activity, 'green');
        if (reports.has(event.originRunId)) quote(reports.get(event.originRunId) ?? '', 'dim');
        return;
      case 'WORKER_FAILED':
        entry(event, activity, 'red');
        return;
      case 'FINISHED':
        entry(event, activity, state === 'COMPLETED' ? 'green' : 'red');
        return;
      default:
        entry(event, activity, 'bold');
    }
  }

  function showPad(event: PadEvent): void {
    const { operation, state } = event;
    if (state === 'ERROR') entry(event, `${operation} of the scratchpad failed`, 'red');
    if (state !== 'SUCCESS') return;
    if (event.entry) {
      entry(event, 'notes on the scratchpad:');
      quote(event.entry.content, styleOfNote(event.entry.content));
    } else if (event.content) {
      entry(event, 'writes on the scratchpad:');
      quote(event.content.text, 'cyan');
    } else if (operation === 'READ') {
      entry(event, 'reads the scratchpad', 'dim');
    }
  }

  /** What a model thought comes in pieces: it is shown, shortened, before whatever it did next. */
  function showThoughts(event: RunEvent): void {
    const thought = thoughts.get(event.originRunId)?.trim();
    thoughts.delete(event.originRunId);
    if (thought) entry(event, `“${oneLine(thought, width - margin.length - 2)}”`, 'dim');
  }

  return {
    show(event) {
      if (event.__typename === 'ReasoningEvent') {
        thoughts.set(event.originRunId, (thoughts.get(event.originRunId) ?? '') + event.delta);
        return;
      }
      showThoughts(event);
      if (event.__typename === 'ResearchStatusEvent') return showStatus(event);
      if (event.__typename === 'ScratchpadEvent') return showPad(event);
      if (event.originRunId !== event.runId) {
        reports.set(event.originRunId, (reports.get(event.originRunId) ?? '') + event.delta);
        return;
      }
      if (!isOneScreen) return;
      if (shownAnswer === '') writeProgress('\n');
      shownAnswer += event.delta;
      isMidAnswer = true;
      writeAnswer(withoutControls(event.delta));
    },
    say(text) {
      line(paint('yellow', withoutControls(text)));
    },
    answer: () => shownAnswer,
    close() {
      if (isMidAnswer) writeAnswer('\n');
      isMidAnswer = false;
    },
  };
}
