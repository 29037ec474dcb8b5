// The five verdicts of the demo, each from a recording alone. A judge names every fault that it finds; none means PASS.
import { assignmentOf, callsIn, isErrorResult, quotedIn, textOf, type PastCall } from './conversation.js';
import type { RequestBody, WireMessage } from './model-server.js';
import type { RecordedWorker, RunRecording } from './recording.js';

export type Faults = string[];

const unless = (holds: boolean, fault: string): Faults => (holds ? [] : [fault]);

const requestsOf = ({ requests }: RunRecording, isTheirs: (assignment: string) => boolean): RequestBody[] =>
  requests.filter((request) => isTheirs(assignmentOf(request)));
const ofSupervisor = (recording: RunRecording): RequestBody[] =>
  requestsOf(recording, (assignment) => assignment === recording.question);
const ofWorker = (recording: RunRecording, { task }: RecordedWorker): RequestBody[] =>
  requestsOf(recording, (assignment) => assignment === task || assignment.startsWith(`${task}\n`));

/** A conversation grows: the last request holds all of it that any request held. */
const lastCalls = (requests: readonly RequestBody[]): PastCall[] => callsIn(requests.at(-1)?.messages ?? []);
const padsReadIn = (requests: readonly RequestBody[]): string[] =>
  requests
    .flatMap(({ messages }) => callsIn(messages))
    .flatMap(({ name, result }) => (name === 'read_scratchpad' && result !== undefined ? [quotedIn(result)] : []));

const isDelegation = ({ name }: PastCall): boolean => name === 'delegate_research_task';

export function inferenceStream({ run, events, requests }: RunRecording): Faults {
  const said = events
    .map((event) => (event.__typename === 'ContentEvent' && event.originRunId === run.id ? event.delta : ''))
    .join('');
  return [
    ...unless(run.status === 'COMPLETED', `the run is ${run.status}`),
    ...unless(said !== '' && said === run.output, "the deltas of the supervisor's ContentEvents are not its output"),
    ...unless(requests.length > 0, 'the provider was never asked'),
    ...unless(
      requests.every(({ stream }) => stream === true),
      'a provider request was not streamed',
    ),
  ];
}

function unansweredIn(messages: readonly WireMessage[]): Faults {
  const faults: Faults = [];
  const answered = new Set<number>();
  messages.forEach(({ tool_calls: calls = [] }, place) => {
    calls.forEach(({ id }, number) => {
      const answer = messages[place + 1 + number];
      answered.add(place + 1 + number);
      if (answer?.role !== 'tool' || answer.tool_call_id !== id)
        faults.push(`the call ${id} is not answered in its place`);
    });
  });
  messages.forEach(({ role, tool_call_id: id }, place) => {
    if (role === 'tool' && !answered.has(place))
      faults.push(`the answer to ${id} belongs to no call, or is its second`);
  });
  return faults;
}

const identityName = /^(owner|user|tenant|account|thread|scratch_?pad|assistant|run)(_?ids?)?$|(owner|tenant)_?/i;

function propertyNames(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(propertyNames);
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties } = schema as { properties?: object };
  return [...Object.keys(properties ?? {}), ...Object.values(schema).flatMap(propertyNames)];
}

const identityParametersIn = ({ tools = [] }: RequestBody): Faults =>
  tools.flatMap(({ function: { name, parameters } }) =>
    propertyNames(parameters)
      .filter((property) => identityName.test(property))
      .map((property) => `the tool ${name} has the parameter ${property}`),
  );

const requestKeys = /^(tool_?calls?|function_?calls?|required_?actions?|submit_?tool_?outputs?)$/i;
const requestValues = /^(requires_action|tool_calls|function_call)$/i;

function toolRequestsIn(value: unknown): Faults {
  if (typeof value === 'string') return unless(!requestValues.test(value), `the API answered ${value}`);
  if (Array.isArray(value)) return value.flatMap(toolRequestsIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    ...unless(!requestKeys.test(key) || inner == null, `the API answered with ${key}`),
    ...toolRequestsIn(inner),
  ]);
}

const knownEvents = new Set(['ResearchStatusEvent', 'ScratchpadEvent', 'ContentEvent', 'ReasoningEvent']);

/** What asked the client to execute something. */
export const clientToolRequests = ({ events, results }: RunRecording): Faults => [
  ...events.flatMap(({ __typename }) => unless(knownEvents.has(__typename), `an event of the type ${__typename}`)),
  ...results.flatMap(toolRequestsIn),
];

/** What the client did beside starting and watching: the work of tools is none of its business. */
export const localToolExecutions = ({ operations }: RunRecording): Faults =>
  operations
    .filter((document) => document.trimStart().startsWith('mutation'))
    .flatMap((document) => [...document.matchAll(/\{\s*(\w+)\s*\(\s*input:/g)].map(([, field = '']) => field))
    .filter((field) => field !== 'createThread' && field !== 'startResearch')
    .map((field) => `the client sent ${field}`);

export const coreToolBoundary = (recording: RunRecording): Faults => [
  ...unless(
    recording.requests.some(({ messages }) => callsIn(messages).length > 0),
    'no tool was ever called',
  ),
  ...recording.requests.flatMap(({ messages }) => unansweredIn(messages)),
  ...recording.requests.flatMap(identityParametersIn),
  ...clientToolRequests(recording),
  ...localToolExecutions(recording),
];

const noteOf = ({ notes }: RunRecording, worker: RecordedWorker, pattern: RegExp): string | undefined =>
  notes
    .filter(({ runId }) => runId === worker.id)
    .map(({ content }) => pattern.exec(content)?.[1])
    .find((found) => found !== undefined);

const seedOf = ({ events, run }: RunRecording): string | undefined =>
  events
    .map((event) => (event.__typename === 'ScratchpadEvent' && event.originRunId === run.id ? event.content : null))
    .find((content) => content !== null)?.text;

export function sharedScratchpad(recording: RunRecording): Faults {
  const [a, b] = recording.run.childRuns;
  const seed = seedOf(recording);
  if (!a || !b) return ['there are not two workers'];
  if (seed === undefined) return ['the supervisor wrote no seed'];
  const code = noteOf(recording, a, /MARK-(\w+)/);
  if (code === undefined) return ['worker A left no marker'];
  const marker = `MARK-${code}`;

  const supervisor = ofSupervisor(recording);
  const hasDelegatedB = ({ messages }: RequestBody): boolean =>
    callsIn(messages).some((call) => isDelegation(call) && call.arguments['task'] === b.task);
  const supervisorSawMarker = supervisor.some(
    (request) => !hasDelegatedB(request) && padsReadIn([request]).some((pad) => pad.includes(marker)),
  );
  const padsOfB = padsReadIn(ofWorker(recording, b));
  const calls = lastCalls(supervisor);
  const lastDelegation = calls.findLast(isDelegation)?.messageIndex ?? Infinity;
  return [
    ...unless(
      padsReadIn(ofWorker(recording, a)).some((pad) => pad.includes(seed)),
      "worker A's requests do not contain the seed",
    ),
    ...unless(supervisorSawMarker, "the supervisor had not seen A's marker when it delegated to B"),
    ...unless(
      padsOfB.some((pad) => pad.includes(seed) && pad.includes(marker)),
      "worker B's requests do not contain the seed and A's marker",
    ),
    ...unless(noteOf(recording, b, /ACK-(\w+)/) === code, "worker B's acknowledgement is not in the ledger"),
    ...unless(
      calls.some(({ name, messageIndex }) => name === 'read_scratchpad' && messageIndex > lastDelegation),
      'the supervisor did not read the scratchpad again before its answer',
    ),
  ];
}

const padTools = new Set(['read_scratchpad', 'update_scratchpad', 'append_scratchpad']);

/** What only the worker's own conversation may hold: what it said on its way, and what it was shown of the web. */
function privateTexts(requests: readonly RequestBody[]): string[] {
  const messages = requests.at(-1)?.messages ?? [];
  const said = messages.filter(({ role }) => role === 'assistant').map(textOf);
  const shown = callsIn(messages).flatMap(({ name, result }) => (padTools.has(name) ? [] : [result ?? '']));
  return [...said, ...shown].filter((text) => text !== '');
}

function leaksOf(recording: RunRecording, worker: RecordedWorker): Faults {
  const requests = ofWorker(recording, worker);
  const first = requests[0];
  if (!first) return [`no request of the worker ${worker.id} is known`];
  const supervisorMessages = ofSupervisor(recording).flatMap(({ messages }) => messages);
  const elsewhere = [...supervisorMessages, ...recording.threadMessages];
  const callIds = new Set(lastCalls(requests).map(({ id }) => id));
  return [
    ...unless(
      !elsewhere.some(({ content }) => content === assignmentOf(first)),
      "a worker's task is a message outside of its thread",
    ),
    ...privateTexts(requests).flatMap((text) =>
      unless(
        !elsewhere.some(({ content }) => content?.includes(text)),
        `a worker's message is outside of its thread: ${text.slice(0, 60)}`,
      ),
    ),
    ...unless(
      !supervisorMessages.some(({ tool_calls: calls = [] }) => calls.some(({ id }) => callIds.has(id))),
      "a supervisor's request contains a worker's call",
    ),
  ];
}

const urlsIn = (text: string): string[] =>
  (text.match(/https?:\/\/[^\s<>()[\]]+/g) ?? []).map((url) => url.replace(/[.,;:]+$/, ''));

export function deepResearchIntegration(recording: RunRecording): Faults {
  const { run, strayThreads, strayAssistants, ephemeralRows } = recording;
  const workers = run.childRuns;
  const fetched = workers
    .flatMap((worker) => lastCalls(ofWorker(recording, worker)))
    .filter(({ name, result }) => name === 'read_web_page' && result !== undefined && !isErrorResult(result))
    .map((call) => call.arguments['url']);
  return [
    ...unless(workers.length === 2, `${workers.length} workers instead of two`),
    ...workers.flatMap(({ id, kind, status, thread, assistant }) => [
      ...unless(kind === 'RESEARCH_WORKER' && status === 'COMPLETED', `the ${kind} ${id} is ${status}`),
      ...unless(thread === null, `the thread of the worker ${id} is public`),
      ...unless(assistant === null, `the assistant of the worker ${id} is still there`),
    ]),
    ...workers.flatMap((worker) => leaksOf(recording, worker)),
    ...strayThreads.map((id) => `the thread ${id} is left`),
    ...strayAssistants.map((id) => `the assistant ${id} is left`),
    ...ephemeralRows.map((id) => `the database still holds ${id}`),
    ...unless(
      urlsIn(run.output ?? '').some((url) => fetched.includes(url)),
      'the answer cites no page that a worker fetched',
    ),
  ];
}

export function workerFailureLifecycle(recording: RunRecording): Faults {
  const { run, cutOff, notes } = recording;
  const failed = run.childRuns.filter(({ status }) => status === 'FAILED');
  const [victim] = failed;
  const others = run.childRuns.filter((worker) => worker !== victim);
  if (!victim || failed.length > 1) return [`${failed.length} workers failed instead of one`];
  if (cutOff.length === 0) return ['no provider died after partial text'];

  const supervisor = ofSupervisor(recording);
  const delegations = lastCalls(supervisor).filter(
    (call) => isDelegation(call) && call.arguments['task'] === victim.task,
  );
  const [delegation] = delegations;
  const answers = (supervisor.at(-1)?.messages ?? []).filter(
    ({ role, tool_call_id: id }) => role === 'tool' && id === delegation?.id,
  );
  const code = victim.lastError?.code ?? '';
  const error = textOf(answers[0]);
  const heard = supervisor.flatMap(({ messages }) => messages.map((message) => JSON.stringify(message)));
  return [
    ...unless(code !== '', 'the failed worker has no error'),
    ...unless(delegations.length === 1 && answers.length === 1, 'the supervisor got not exactly one result for it'),
    ...unless(isErrorResult(error) && code !== '' && error.includes(code), 'the result is no error with its code'),
    ...cutOff.flatMap((text) =>
      unless(
        !heard.some((message) => message.includes(JSON.stringify(text).slice(1, -1))),
        'the partial text reached the supervisor',
      ),
    ),
    ...unless(others.length > 0, 'there is no other worker'),
    ...others.flatMap(({ id, status }) => [
      ...unless(status === 'COMPLETED', `the other worker is ${status}`),
      ...unless(
        notes.some(({ runId, content }) => runId === id && content.startsWith('[VERIFIED]')),
        "the other worker's finding is gone",
      ),
    ]),
  ];
}

export interface Verdict {
  name: string;
  faults: Faults;
}

/** @param failing the run in which a provider died */
export const judge = (working: RunRecording, failing: RunRecording): Verdict[] => [
  { name: 'INFERENCE_STREAM', faults: inferenceStream(working) },
  { name: 'CORE_TOOL_BOUNDARY', faults: [working, failing].flatMap(coreToolBoundary) },
  { name: 'SHARED_SCRATCHPAD', faults: sharedScratchpad(working) },
  { name: 'DEEP_RESEARCH_INTEGRATION', faults: deepResearchIntegration(working) },
  { name: 'WORKER_FAILURE_LIFECYCLE', faults: workerFailureLifecycle(failing) },
];
