// Recordings of two runs as the demo makes them, small enough to be read: what its judges let pass. Each call gives a copy of its own.
import type { RunEvent } from '../../src/client/run-events.js';
import type { RequestBody, WireMessage } from '../../script/demo.d/model-server.js';
import type { RecordedWorker, RunRecording } from '../../script/demo.d/recording.js';

const view = (...lines: string[]): string =>
  ['SCRATCHPAD', ...lines.map((line) => `| ${line}`), 'END OF SCRATCHPAD'].join('\n');
const says = (role: string, content: string): WireMessage => ({ role, content });

/** A message that calls, and the answers to it. */
const calls = (
  text: string | null,
  ...made: [id: string, name: string, input: object, result: string][]
): WireMessage[] => [
  {
    role: 'assistant',
    content: text,
    tool_calls: made.map(([id, name, input]) => ({
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(input) },
    })),
  },
  ...made.map(([id, , , result]) => ({ role: 'tool', content: result, tool_call_id: id })),
];

const tool = (name: string, ...parameters: string[]) => ({
  type: 'function',
  function: {
    name,
    description: name,
    parameters: { type: 'object', properties: Object.fromEntries(parameters.map((key) => [key, { type: 'string' }])) },
  },
});
const supervisorTools = [
  tool('read_scratchpad'),
  tool('update_scratchpad', 'content'),
  tool('delegate_research_task', 'task', 'requirements'),
];
const workerTools = [tool('read_scratchpad'), tool('append_scratchpad', 'note'), tool('read_web_page', 'url')];

/** The requests of one conversation: one whenever everything that was called is answered, and the first. */
function requestsOf(
  system: string,
  assignment: string,
  tools: RequestBody['tools'],
  turns: WireMessage[][],
): RequestBody[] {
  const start = [says('system', system), says('user', assignment)];
  return [[], ...turns].map((_, count) => ({
    model: 'rules',
    stream: true,
    tools,
    messages: [...start, ...turns.slice(0, count).flat()],
  }));
}

const base = { cursor: '1', runId: 'run_1', occurredAt: '2026-01-31T09:30:00.000Z' };
const content = (originRunId: string, delta: string): RunEvent => ({
  ...base,
  originRunId,
  __typename: 'ContentEvent',
  delta,
});
const seedWritten = (text: string): RunEvent => ({
  ...base,
  originRunId: 'run_1',
  __typename: 'ScratchpadEvent',
  operation: 'UPDATE',
  state: 'SUCCESS',
  tool: 'update_scratchpad',
  assistantId: null,
  entry: null,
  content: { text, version: '1', updatedAt: base.occurredAt },
});

const worker = (id: string, task: string): RecordedWorker => ({
  id,
  kind: 'RESEARCH_WORKER',
  status: 'COMPLETED',
  task,
  thread: null,
  assistant: null,
  lastError: null,
});

const question = 'Which is taller, A or B?';
const seed = '[STRATEGY] Find both.\nSEED-1';
const plan = calls(null, ['s1', 'update_scratchpad', { content: seed }, 'done']);
const output = 'A is taller, says http://site/a.';
const noteOfA = '[VERIFIED] A is 2 metres high. Source: http://site/a MARK-77';

const operations = [
  'mutation { createThread(input: {}) { thread { id } } }',
  'mutation ($input: StartResearchInput!) { startResearch(input: $input) { run { id } } }',
  'subscription { runEvents(runId: "run_1") { cursor } }',
];

/** One worker after the other. */
export function workingRecording(): RunRecording {
  const [a, b] = [worker('run_a', 'How high is A?'), worker('run_b', 'How high is B?')];
  const noteOfB = '[VERIFIED] B is 1 metres high. Source: http://site/b ACK-77';
  const supervisor = requestsOf('You lead.', question, supervisorTools, [
    plan,
    calls(null, ['s2', 'delegate_research_task', { task: a.task }, '{"status":"COMPLETED"}']),
    calls(null, ['s3', 'read_scratchpad', {}, view(...seed.split('\n'), noteOfA)]),
    calls(null, ['s4', 'delegate_research_task', { task: b.task }, '{"status":"COMPLETED"}']),
    calls(null, ['s5', 'read_scratchpad', {}, view(...seed.split('\n'), noteOfA, noteOfB)]),
  ]);
  const research = (id: string, task: string, pad: string, url: string, note: string): RequestBody[] =>
    requestsOf('You are a research worker.', `${task}\n\nRequirements:\nBe careful.`, workerTools, [
      calls(
        `I look at ${url}.`,
        [`${id}1`, 'read_scratchpad', {}, pad],
        [`${id}2`, 'read_web_page', { url }, `Text of ${url}`],
      ),
      calls(null, [`${id}3`, 'append_scratchpad', { note }, 'appended']),
    ]);
  return structuredClone({
    question,
    run: { id: 'run_1', status: 'COMPLETED', output, childRuns: [a, b] },
    threadMessages: [says('USER', question), says('ASSISTANT', output)] as RunRecording['threadMessages'],
    notes: [
      { content: noteOfA, author: 'worker-1', runId: a.id },
      { content: noteOfB, author: 'worker-2', runId: b.id },
    ],
    strayThreads: [],
    strayAssistants: [],
    ephemeralRows: [],
    events: [
      seedWritten(seed),
      content('run_a', 'A is 2 metres high.'),
      content('run_1', output.slice(0, 9)),
      content('run_1', output.slice(9)),
    ],
    operations,
    results: [{ data: { startResearch: { run: { id: 'run_1' } } } }],
    requests: [
      ...supervisor,
      ...research('a', a.task, view(...seed.split('\n')), 'http://site/a', noteOfA),
      ...research('b', b.task, view(...seed.split('\n'), noteOfA), 'http://site/b', noteOfB),
    ],
    cutOff: [],
  });
}

/** Two workers side by side, and the provider of the second dies. */
export function failingRecording(): RunRecording {
  const working = workingRecording();
  const [a, b] = [worker('run_a', 'How high is A?'), worker('run_b', 'How high is B?')];
  const error = JSON.stringify({ is_error: true, code: 'PROVIDER_ERROR', error: 'The worker failed.' });
  return {
    ...working,
    run: {
      ...working.run,
      childRuns: [a, { ...b, status: 'FAILED', lastError: { code: 'PROVIDER_ERROR', message: 'It broke off.' } }],
    },
    notes: working.notes.slice(0, 1),
    requests: requestsOf('You lead.', question, supervisorTools, [
      plan,
      calls(
        null,
        ['s2', 'delegate_research_task', { task: a.task }, '{"status":"COMPLETED"}'],
        ['s3', 'delegate_research_task', { task: b.task }, error],
      ),
    ]),
    cutOff: ['So far, B seems to be'],
  };
}
