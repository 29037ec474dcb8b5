// What a person sees of a run, event by event.
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../../../src/client/run-events.js';
import { createRunView, type RunView } from '../../../src/terminal/run-view.js';

type Phase = Extract<RunEvent, { __typename: 'ResearchStatusEvent' }>['phase'];
type PadOperation = Extract<RunEvent, { __typename: 'ScratchpadEvent' }>['operation'];
type Fields = Partial<Record<string, unknown>>;

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 31, 9, 30, seconds)).toISOString();
const base = { cursor: '1', runId: 'run_1', originRunId: 'run_1', occurredAt: at(0) };
const status = (phase: Phase, activity: string, more: Fields = {}): RunEvent => ({
  ...base,
  __typename: 'ResearchStatusEvent',
  phase,
  activity,
  state: 'IN_PROGRESS',
  tool: null,
  ...more,
});
const says = (delta: string, more: Fields = {}): RunEvent => ({ ...base, __typename: 'ContentEvent', delta, ...more });
const thinks = (delta: string, more: Fields = {}): RunEvent => ({
  ...base,
  __typename: 'ReasoningEvent',
  delta,
  ...more,
});
const pad = (operation: PadOperation, more: Fields = {}): RunEvent => ({
  ...base,
  __typename: 'ScratchpadEvent',
  operation,
  state: 'SUCCESS',
  tool: null,
  assistantId: null,
  entry: null,
  content: null,
  ...more,
});
const note = (content: string, originRunId: string): RunEvent =>
  pad('APPEND', { originRunId, entry: { id: 'entry_1', content, author: null, runId: originRunId } });

function show(act: (view: RunView) => void, options: { isOneScreen?: boolean; colours?: boolean } = {}) {
  const screen = { progress: '', answer: '', all: '' };
  const view = createRunView({
    writeProgress(text) {
      screen.progress += text;
      screen.all += text;
    },
    writeAnswer(text) {
      screen.answer += text;
      screen.all += text;
    },
    isOneScreen: true,
    colours: false,
    width: 60,
    ...options,
  });
  act(view);
  view.close();
  return screen;
}
const showEvents = (...events: RunEvent[]): string => show((view) => events.forEach((event) => view.show(event))).all;

describe('the view of a run', () => {
  it('has the time since the first event and who did it on each line', () => {
    const text = showEvents(
      status('STARTED', 'The research has begun'),
      status('RESEARCHING', 'worker-2 is at work: Look', { originRunId: 'run_b', occurredAt: at(3) }),
      status('RESEARCHING', 'Searching the web: lamps', { originRunId: 'run_b', occurredAt: at(75) }),
    );
    expect(text.split('\n')).toEqual([
      ' 0:00  supervisor The research has begun',
      ' 0:03  worker-2   worker-2 is at work: Look',
      ' 1:15  worker-2   Searching the web: lamps',
      '',
    ]);
  });

  it('quotes a note whole, broken between words, and keeps addresses in one piece', () => {
    const url = 'http://site.example/a/very/long/address/that/does/not/fit/into/a/line';
    const lines = showEvents(
      note(`[VERIFIED] The lamp burns whale oil and nothing else. Source: ${url}`, 'run_a'),
    ).split('\n');
    expect(lines[0]).toContain('worker-1   notes on the scratchpad:');
    expect(lines.slice(1).map((line) => line.trim())).toContain(`│ ${url}`);
    expect(
      lines
        .slice(1)
        .filter((line) => !line.includes(url))
        .every((line) => line.length <= 60),
    ).toBe(true);
  });

  it('shows a scratchpad call once, when it has succeeded or failed', () => {
    expect(showEvents(pad('READ', { state: 'IN_PROGRESS' }), pad('READ', { state: 'COMPLETED' }))).toBe('');
    expect(showEvents(pad('READ'))).toContain('reads the scratchpad');
    expect(showEvents(pad('UPDATE', { content: { text: '[STRATEGY] Look.' } }))).toContain('│ [STRATEGY] Look.');
    expect(showEvents(pad('APPEND', { state: 'ERROR' }))).toContain('APPEND of the scratchpad failed');
  });

  it('gathers thoughts, and a worker’s report, until what follows them', () => {
    const text = showEvents(
      thinks('First '),
      thinks('this.'),
      status('PLANNING', 'Planning'),
      says('It is ', { originRunId: 'run_a' }),
      says('so.', { originRunId: 'run_a' }),
      status('WORKER_COMPLETED', 'The worker is complete.', { originRunId: 'run_a', state: 'COMPLETED' }),
    );
    expect(text.split('\n').map((line) => line.trim())).toEqual([
      '0:00  supervisor “First this.”',
      '0:00  supervisor Planning',
      '0:00  worker-1   The worker is complete.',
      '│ It is so.',
      '',
    ]);
  });

  it('streams the answer as it comes, and begins a line of its own for what follows', () => {
    const events = [says('One'), says(' two'), status('FINISHED', 'The research is complete.', { state: 'COMPLETED' })];
    const together = show((view) => events.forEach((event) => view.show(event)));
    expect(together.all).toBe('\nOne two\n\n 0:00  supervisor The research is complete.\n');
  });

  it('writes nothing of an answer before its end is known where that is no screen', () => {
    const apart = show(
      (view) => {
        view.show(says('One'));
        view.show(says(' two'));
        expect(view.answer()).toBe('');
      },
      { isOneScreen: false },
    );
    expect(apart.all).toBe('');
  });

  it('lets no control character of a page or a model through to the terminal', () => {
    const evil = 'a\u001b]52;c;ZXZpbA==\u0007b\u001b[2Jc\u009bd\re';
    const text = showEvents(
      note(evil, 'run_a'),
      thinks(evil),
      status('RESEARCHING', evil),
      says(evil),
      pad('UPDATE', { content: { text: evil } }),
    );
    expect(text).not.toMatch(/(?!\n)\p{Cc}/u);
    expect(showEvents(status('PLANNING', evil))).toContain('a]52;c;ZXZpbA==b[2Jcd');
  });

  it('colours only where that is wanted', () => {
    const verified = note('[VERIFIED] x', 'run_a');
    expect(show((view) => view.show(verified), { colours: true }).all).toContain('\u001b[32m[VERIFIED] x');
    expect(showEvents(verified)).not.toContain('\u001b');
  });
});
