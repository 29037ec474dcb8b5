// The judges of the demo: each lets a good recording pass, and names the one thing that is wrong with a doctored one.
import { describe, expect, it } from 'vitest';
import {
  clientToolRequests,
  coreToolBoundary,
  deepResearchIntegration,
  inferenceStream,
  judge,
  localToolExecutions,
  sharedScratchpad,
  workerFailureLifecycle,
  type Faults,
} from '../../../script/demo.d/judges.js';
import type { RequestBody, WireMessage } from '../../../script/demo.d/model-server.js';
import type { RunRecording } from '../../../script/demo.d/recording.js';
import { failingRecording, workingRecording } from '../../support/demo-recording.js';

type Doctor = (recording: RunRecording) => void;
type Case = [what: string, doctor: Doctor, fault: RegExp];

const supervisorRequests = (recording: RunRecording): RequestBody[] =>
  recording.requests.filter(({ messages }) => messages[1]?.content === recording.question);
const workerRequests = (recording: RunRecording, name: string): RequestBody[] =>
  recording.requests.filter(({ messages }) => messages[1]?.content?.includes(`${name}?\n`));
const messagesIn = (requests: RequestBody[]): WireMessage[] => requests.flatMap(({ messages }) => messages);
const replaceIn = (requests: RequestBody[], role: string, from: string, to: string): void => {
  for (const message of messagesIn(requests)) {
    if (message.role === role) message.content = message.content?.replaceAll(from, to) ?? null;
  }
};
const event = (fields: object): RunRecording['events'][number] =>
  ({ ...workingRecording().events[0], ...fields }) as never;
const lastOf = (requests: RequestBody[]): WireMessage[] => requests.at(-1)?.messages ?? [];

function check(judgement: (recording: RunRecording) => Faults, make: () => RunRecording, cases: Case[]): void {
  it('lets a good recording pass', () => {
    expect(judgement(make())).toEqual([]);
  });
  it.each(cases)('objects when %s', (_, doctor, fault) => {
    const recording = make();
    doctor(recording);
    expect(judgement(recording).join('\n')).toMatch(fault);
  });
}

describe('INFERENCE_STREAM', () => {
  check(inferenceStream, workingRecording, [
    ['the run failed', ({ run }) => void (run.status = 'FAILED'), /the run is FAILED/],
    ['a delta is missing', ({ events }) => void events.pop(), /not its output/],
    ['deltas come in another order', ({ events }) => void events.push(events.splice(2, 1)[0]!), /not its output/],
    ['the output is more than was streamed', ({ run }) => void (run.output += '.'), /not its output/],
    [
      "only a worker's text was streamed",
      ({ run, events }) => {
        run.output = 'A is 2 metres high.';
        events.splice(2);
      },
      /not its output/,
    ],
    [
      'nothing was streamed or put out',
      (recording) => {
        recording.run.output = '';
        recording.events = [];
      },
      /not its output/,
    ],
    ['one request was not streamed', ({ requests }) => void (requests[3]!.stream = false), /not streamed/],
    ['the provider was never asked', (recording) => void (recording.requests = []), /never asked/],
  ]);
});

describe('CORE_TOOL_BOUNDARY', () => {
  const answers = (recording: RunRecording): WireMessage[] => lastOf(workerRequests(recording, 'A'));
  check(coreToolBoundary, workingRecording, [
    ['nothing was ever called', (recording) => void (recording.requests = []), /no tool was ever called/],
    ['a call is unanswered', (recording) => void answers(recording).splice(4, 1), /a2 is not answered/],
    ['the last call is unanswered', (recording) => void answers(recording).pop(), /a3 is not answered/],
    [
      'answers come in another order',
      (recording) => {
        const messages = answers(recording);
        [messages[3], messages[4]] = [messages[4]!, messages[3]!];
      },
      /not answered in its place/,
    ],
    [
      'a call is answered twice',
      (recording) => {
        const messages = answers(recording);
        messages.splice(5, 0, { ...messages[4]! });
      },
      /belongs to no call, or is its second/,
    ],
    [
      'an answer has a stranger’s id',
      (recording) => void (answers(recording)[3]!.tool_call_id = 'a9'),
      /a1 is not answered/,
    ],
    [
      'a user speaks between call and answer',
      (recording) => void answers(recording).splice(3, 0, { role: 'user', content: 'Well?' }),
      /a1 is not answered/,
    ],
    ...['owner_id', 'userId', 'tenant', 'thread_id', 'scratchpadId', 'scratch_pad_thread_owner'].map((name): Case => [
      `a tool takes ${name}`,
      ({ requests }) => {
        const parameters = requests[0]!.tools![1]!.function.parameters;
        (parameters['properties'] as Record<string, object>)['filter'] = { type: 'object', properties: { [name]: {} } };
      },
      new RegExp(`update_scratchpad has the parameter ${name}`),
    ]),
    [
      'an answer of the API asks for tool outputs',
      ({ results }) => void results.push({ data: { run: { status: 'requires_action' } } }),
      /answered requires_action/,
    ],
    [
      'an event carries a tool call',
      ({ results }) => void results.push({ data: { runEvents: { delta: '', toolCalls: [{ id: 'x' }] } } }),
      /answered with toolCalls/,
    ],
    [
      'an event is of a strange type',
      ({ events }) => void events.push(event({ __typename: 'ToolCallEvent' })),
      /ToolCallEvent/,
    ],
    [
      'the client did the work of a tool',
      ({ operations }) =>
        void operations.push('mutation ($input: X!) { appendScratchpadEntry(input: $input) { entry { id } } }'),
      /client sent appendScratchpadEntry/,
    ],
  ]);

  it('says what reached the client, and what it did itself, each by itself', () => {
    const recording = workingRecording();
    expect(clientToolRequests(recording)).toEqual([]);
    expect(localToolExecutions(recording)).toEqual([]);
    recording.results.push({ data: { required_action: {} } });
    recording.operations.push('mutation { createMessage(input: { content: "result" }) { message { id } } }');
    expect(clientToolRequests(recording)).toHaveLength(1);
    expect(localToolExecutions(recording)).toHaveLength(1);
  });
});

describe('SHARED_SCRATCHPAD', () => {
  check(sharedScratchpad, workingRecording, [
    ['there is one worker', ({ run }) => void run.childRuns.pop(), /not two workers/],
    ['the supervisor wrote nothing', ({ events }) => void events.shift(), /wrote no seed/],
    ['A left no marker', ({ notes }) => void (notes[0]!.content = '[VERIFIED] A.'), /left no marker/],
    ['A’s marker was written by somebody else', ({ notes }) => void (notes[0]!.runId = 'run_b'), /left no marker/],
    [
      'A never saw the seed',
      (recording) => replaceIn(workerRequests(recording, 'A'), 'tool', 'SEED-1', ''),
      /A's requests/,
    ],
    [
      'A was told the seed instead of reading it',
      (recording) => {
        replaceIn(workerRequests(recording, 'A'), 'tool', 'SEED-1', '');
        replaceIn(workerRequests(recording, 'A'), 'user', 'careful.', 'careful.\n[STRATEGY] Find both.\nSEED-1');
      },
      /A's requests/,
    ],
    [
      'the supervisor read before B only what A had not yet written',
      (recording) => {
        for (const message of messagesIn(supervisorRequests(recording))) {
          if (message.tool_call_id === 's3') message.content = '| [STRATEGY] Find both.\n| SEED-1';
        }
      },
      /had not seen A's marker/,
    ],
    [
      'B never saw the marker',
      (recording) => replaceIn(workerRequests(recording, 'B'), 'tool', 'MARK-77', ''),
      /B's requests/,
    ],
    [
      'B never saw the seed',
      (recording) => replaceIn(workerRequests(recording, 'B'), 'tool', 'SEED-1', ''),
      /B's requests/,
    ],
    ['B acknowledged nothing', ({ notes }) => void notes.pop(), /acknowledgement/],
    ['B acknowledged another marker', ({ notes }) => void (notes[1]!.content = 'ACK-78'), /acknowledgement/],
    ['A acknowledged itself', ({ notes }) => void (notes[1]!.runId = 'run_a'), /acknowledgement/],
    [
      'the supervisor answered without reading again',
      (recording) =>
        void recording.requests.splice(recording.requests.indexOf(supervisorRequests(recording).at(-1)!), 1),
      /did not read the scratchpad again/,
    ],
  ]);
});

describe('DEEP_RESEARCH_INTEGRATION', () => {
  check(deepResearchIntegration, workingRecording, [
    ['a worker is missing', ({ run }) => void run.childRuns.pop(), /1 workers/],
    ['a worker failed', ({ run }) => void (run.childRuns[1]!.status = 'FAILED'), /run_b is FAILED/],
    ['a child is no worker', ({ run }) => void (run.childRuns[0]!.kind = 'ASSISTANT'), /ASSISTANT run_a/],
    ['a worker shows its thread', ({ run }) => void (run.childRuns[0]!.thread = { id: 'thread_a' }), /run_a is public/],
    ['a worker keeps its assistant', ({ run }) => void (run.childRuns[0]!.assistant = { id: 'asst' }), /still there/],
    [
      'a worker’s task is a message of the parent thread',
      ({ threadMessages }) =>
        void threadMessages.push({ role: 'USER', content: 'How high is A?\n\nRequirements:\nBe careful.' }),
      /task is a message outside/,
    ],
    [
      'what a worker said is in the parent thread',
      ({ threadMessages }) => void threadMessages.push({ role: 'ASSISTANT', content: 'I look at http://site/b.' }),
      /message is outside of its thread: I look/,
    ],
    [
      'what a worker read is in a supervisor’s request',
      (recording) =>
        void supervisorRequests(recording)[2]!.messages.push({
          role: 'user',
          content: 'It says: Text of http://site/a',
        }),
      /outside of its thread: Text of/,
    ],
    [
      'a worker’s call is in a supervisor’s request',
      (recording) => {
        const calling = lastOf(workerRequests(recording, 'A')).find((message) => message.tool_calls !== undefined);
        supervisorRequests(recording)[2]!.messages.push({
          role: 'assistant',
          content: null,
          tool_calls: calling!.tool_calls!,
        });
      },
      /contains a worker's call/,
    ],
    [
      'nothing is known of what a worker sent',
      (recording) => void (recording.requests = supervisorRequests(recording)),
      /no request of the worker/,
    ],
    ['a thread is left', ({ strayThreads }) => void strayThreads.push('thread_x'), /thread_x is left/],
    ['an assistant is left', ({ strayAssistants }) => void strayAssistants.push('asst_x'), /asst_x is left/],
    ['a hidden row is left', ({ ephemeralRows }) => void ephemeralRows.push('thread_y'), /still holds thread_y/],
    ['the answer cites nothing', ({ run }) => void (run.output = 'A is taller.'), /cites no page/],
    ['the answer cites what nobody fetched', ({ run }) => void (run.output = 'See http://site/c.'), /cites no page/],
    [
      'the cited page could not be fetched',
      (recording) =>
        replaceIn(workerRequests(recording, 'A'), 'tool', 'Text of', '{"is_error":true,"code":"HTTP_ERROR","error":"'),
      /cites no page/,
    ],
  ]);
});

describe('WORKER_FAILURE_LIFECYCLE', () => {
  const answerToB = (recording: RunRecording): WireMessage => lastOf(recording.requests).at(-1)!;
  check(workerFailureLifecycle, failingRecording, [
    ['no worker failed', ({ run }) => void (run.childRuns[1]!.status = 'COMPLETED'), /0 workers failed/],
    ['both failed', ({ run }) => void (run.childRuns[0]!.status = 'FAILED'), /2 workers failed/],
    ['nothing died', (recording) => void (recording.cutOff = []), /no provider died/],
    ['the worker has no error', ({ run }) => void (run.childRuns[1]!.lastError = null), /has no error/],
    ['the supervisor got no answer', (recording) => void lastOf(recording.requests).pop(), /not exactly one result/],
    [
      'the supervisor got two answers',
      (recording) => void lastOf(recording.requests).push({ ...answerToB(recording) }),
      /not exactly one result/,
    ],
    [
      'the supervisor was told of success',
      (recording) => void (answerToB(recording).content = '{"status":"COMPLETED"}'),
      /no error with its code/,
    ],
    [
      'the error has another code',
      (recording) => void (answerToB(recording).content = '{"is_error":true,"code":"INTERNAL"}'),
      /no error with its code/,
    ],
    [
      'the partial text came along',
      (recording) =>
        void (answerToB(recording).content = answerToB(recording).content!.replace(
          'The',
          'So far, B seems to be … The',
        )),
      /partial text reached/,
    ],
    ['there was no other worker', ({ run }) => void run.childRuns.shift(), /no other worker/],
    [
      'the other was cancelled',
      ({ run }) => void (run.childRuns[0]!.status = 'CANCELLED'),
      /other worker is CANCELLED/,
    ],
    ['the other’s finding is gone', ({ notes }) => void notes.pop(), /finding is gone/],
  ]);
});

it('gives the five verdicts, in the order of the plan', () => {
  const verdicts = judge(workingRecording(), failingRecording());
  expect(verdicts.map(({ name, faults }) => `${name}=${faults.length}`)).toEqual([
    'INFERENCE_STREAM=0',
    'CORE_TOOL_BOUNDARY=0',
    'SHARED_SCRATCHPAD=0',
    'DEEP_RESEARCH_INTEGRATION=0',
    'WORKER_FAILURE_LIFECYCLE=0',
  ]);
});
