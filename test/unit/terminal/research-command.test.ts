// What `cli research` writes as the answer, and what it says of one that did not hold.
import { describe, expect, it } from 'vitest';
import type { GraphqlClient } from '../../../src/client/graphql-client.js';
import { research } from '../../../src/terminal/research-command.js';
import { createRunView } from '../../../src/terminal/run-view.js';

const prose = 'It is as high as everybody says.';
const at = new Date(Date.UTC(2026, 0, 31)).toISOString();
const base = { cursor: '1', runId: 'run_1', originRunId: 'run_1', occurredAt: at };

/** A server whose run says its prose, and then ends like this. */
function serverWhoseRunEnds(end: { status: string; output: string | null; lastError: object | null }): GraphqlClient {
  const run = { id: 'run_1', turnCount: 1, unverifiedCitations: [], childRuns: [], ...end };
  return {
    request: (document: string) =>
      Promise.resolve(
        document.includes('mutation')
          ? { createThread: { thread: { id: 'thread_1' } }, startResearch: { run } }
          : { run },
      ),
    async *subscribe() {
      await Promise.resolve();
      yield { runEvents: { ...base, __typename: 'ContentEvent', delta: prose } };
      const finished = { phase: 'FINISHED', activity: 'Over.', state: 'COMPLETED', tool: null };
      yield { runEvents: { ...base, __typename: 'ResearchStatusEvent', ...finished } };
    },
  } as unknown as GraphqlClient;
}

async function researchWith(end: Parameters<typeof serverWhoseRunEnds>[0], isOneScreen: boolean) {
  const written = { answer: '', progress: '' };
  const writeAnswer = (text: string): void => void (written.answer += text);
  const view = createRunView({
    writeProgress: (text) => void (written.progress += text),
    writeAnswer,
    isOneScreen,
    colours: false,
    width: 100,
  });
  const client = serverWhoseRunEnds(end);
  const code = await research({ question: 'How high?' }, { client, view, writeAnswer, onInterrupt: () => () => {} });
  return { code, ...written };
}

const completed = { status: 'COMPLETED', output: prose, lastError: null };
const refused = { status: 'FAILED', output: null, lastError: { code: 'NO_EVIDENCE', message: 'Nothing.' } };
const cancelled = { status: 'CANCELLED', output: null, lastError: null };

describe('the answer of a research run', () => {
  it('is written once where it does not stream, when the run has completed', async () => {
    expect(await researchWith(completed, false)).toMatchObject({ code: 0, answer: `${prose}\n` });
  });

  it.each([refused, cancelled])('is not written into a file by a run that ended $status', async (end) => {
    expect(await researchWith(end, false)).toMatchObject({ code: 1, answer: '' });
  });

  it('is written once on a screen, as it streams', async () => {
    const { answer, progress } = await researchWith(completed, true);
    expect(answer.split(prose)).toHaveLength(2);
    expect(progress).not.toContain('No answer');
  });

  it.each([
    [refused, 'NO_EVIDENCE'],
    [cancelled, 'CANCELLED'],
  ])('is marked on a screen when it did not hold', async (end, reason) => {
    const { answer, progress } = await researchWith(end, true);
    expect(answer).toContain(prose);
    expect(progress).toContain(`No answer: the text above did not hold (${reason}).`);
  });
});
