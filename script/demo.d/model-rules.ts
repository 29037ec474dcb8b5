// What the demo's model says: rules, applied to what a request holds and to nothing else. It can compare the heights of two buildings.
import { assignmentOf, callsIn, isErrorResult, isSupervisor, quotedIn, type PastCall } from './conversation.js';
import type { RequestBody } from './model-server.js';

export interface Decision {
  /** Streamed before anything else. */
  thought?: string;
  text?: string;
  calls?: { name: string; arguments: object }[];
}

export interface ModelRules {
  decide(body: RequestBody): Decision;
}

interface Finding {
  subject: string;
  metres: number;
  url: string;
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const call = (name: string, input: object = {}) => ({ name, arguments: input });
const lastResult = (calls: readonly PastCall[], name: string): string =>
  calls.findLast((past) => past.name === name)?.result ?? '';

/** "Which is taller, A or B, and by how much?" */
function subjectsOf(question: string): string[] {
  const [, first, second] = /taller,?\s+(.+?)\s+or\s+(.+?)\s*(?:,|\?|$)/i.exec(question) ?? [];
  return first !== undefined && second !== undefined ? [first, second] : [];
}

const findingLine = /^\[VERIFIED\] (.+) is ([\d.]+) metres high\. Source: (\S+)/gm;

const findingsIn = (pad: string): Finding[] =>
  [...pad.matchAll(findingLine)].map(([, subject = '', metres = '', url = '']) => ({
    subject,
    metres: Number(metres),
    url,
  }));

function conclude(subjects: readonly string[], pad: string): string {
  const findings = subjects.map((subject) => findingsIn(pad).findLast((finding) => finding.subject === subject));
  const sources = findings.flatMap((finding) =>
    finding ? [`- ${sentence(finding.subject)}: ${finding.metres} metres, says ${finding.url}`] : [],
  );
  const missing = subjects.filter((_, place) => !findings[place]);
  const [first, second] = findings;
  if (!first || !second) {
    const gap = `The height of ${missing.join(' and of ')} could not be found out, so the comparison has to stay open.`;
    return [gap, ...(sources.length > 0 ? ['', 'What is known:', '', ...sources] : [])].join('\n');
  }
  const [taller, lower] = first.metres >= second.metres ? [first, second] : [second, first];
  const difference = Number((taller.metres - lower.metres).toFixed(2));
  return [
    `${sentence(taller.subject)} is taller, by ${difference} metres.`,
    '',
    `It is ${taller.metres} metres high, and ${lower.subject} ${lower.metres} metres. Both heights were read on these pages:`,
    '',
    ...sources,
  ].join('\n');
}

const careful = 'Read a page before you believe what a search engine says of it.';

const delegate = (subject: string, requirements: string) =>
  call('delegate_research_task', { task: `How high is ${subject}?`, requirements: `${careful} ${requirements}` });

/** @param code makes this run's plan unlike any other text */
function supervise(question: string, calls: readonly PastCall[], mayCall: boolean, code: string): Decision {
  const subjects = subjectsOf(question);
  const [first = '', second = ''] = subjects;
  const pad = quotedIn(lastResult(calls, 'read_scratchpad'));
  if (!mayCall || subjects.length === 0) return { text: conclude(subjects, pad) };
  if (!calls.some(({ name }) => name === 'update_scratchpad')) {
    const plan = [
      '[STRATEGY] Find both heights, each on a page of its own, then compare.',
      `Survey number: SEED-${code}`,
      ...subjects.map((subject) => `Open: the height of ${subject}, in metres`),
    ].join('\n');
    return {
      thought: 'Two heights decide this question. Neither of them can be known without reading a page.',
      calls: [call('update_scratchpad', { content: plan })],
    };
  }
  const delegations = calls.filter(({ name }) => name === 'delegate_research_task').length;
  const hasJustRead = calls.at(-1)?.name === 'read_scratchpad';
  if (delegations === 0 && /side by side/i.test(question)) {
    return { calls: subjects.map((subject) => delegate(subject, 'Note what you find.')) };
  }
  if (delegations === 0) {
    const wish = 'End your note with a mark of your own that begins with MARK-, so that others can say they saw it.';
    return { thought: 'First the one, then the other.', calls: [delegate(first, wish)] };
  }
  if (!hasJustRead) return { calls: [call('read_scratchpad')] };
  if (delegations < subjects.length) {
    const mark = /MARK-(\w+)/.exec(pad);
    const wish = 'End your note with ACK- and the code of the mark that another worker left on the scratchpad.';
    return {
      thought: mark ? 'The first height is on the scratchpad, with its mark. Now the second one.' : 'On to the second.',
      calls: [delegate(second, mark ? wish : 'Note what you find.')],
    };
  }
  return { text: conclude(subjects, pad) };
}

interface Hit {
  title: string;
  url: string;
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** Of what a search found, what sounds most like the subject. */
function bestHit(subject: string, results: string): Hit | undefined {
  const wanted = wordsOf(subject);
  const hits = [...results.matchAll(/^\d+\. (.+)\n +(\S+)$/gm)].map(([, title = '', url = '']) => ({ title, url }));
  const score = ({ title }: Hit): number => wordsOf(title).filter((word) => wanted.includes(word)).length;
  return hits.sort((a, b) => score(b) - score(a))[0];
}

/** How high a page says that its subject is: the first height in its text. */
const heightIn = (page: string): number | undefined => {
  const found = /(?:is|At) ([\d.]+) metres(?: high)?/.exec(page);
  return found ? Number(found[1]) : undefined;
};

/** The words with which this worker tells the others that it was there. */
function signature(assignment: string, pad: string, code: string): string {
  const mark = /MARK-(\w+)/.exec(pad)?.[1];
  if (assignment.includes('ACK-') && mark !== undefined) return ` ACK-${mark}`;
  return assignment.includes('MARK-') ? ` MARK-${code}` : '';
}

/** @param code makes this worker's mark unlike any other text */
function work(assignment: string, calls: readonly PastCall[], mayCall: boolean, code: string): Decision {
  const subject = /How high is (.+?)\?/.exec(assignment)?.[1] ?? assignment;
  const hit = bestHit(subject, lastResult(calls, 'perform_web_search'));
  const page = lastResult(calls, 'read_web_page');
  const metres = heightIn(page);
  const note = (text: string): Decision => ({ calls: [call('append_scratchpad', { note: text })] });
  const isSettled = calls.some(
    ({ name, arguments: { note } }) => name === 'append_scratchpad' && !String(note).startsWith('[PENDING]'),
  );
  if (isSettled || !mayCall) {
    return { text: hit && metres ? `${sentence(subject)} is ${metres} metres high.` : 'I could not find it out.' };
  }
  if (calls.length === 0) {
    return {
      text: `I see what is known already, and search for ${subject}.`,
      calls: [call('read_scratchpad'), call('perform_web_search', { query: `height of ${subject} in metres` })],
    };
  }
  if (!hit) return note(`[UNVERIFIED] The height of ${subject}: no page was found that says it.`);
  if (!calls.some(({ name }) => name === 'append_scratchpad')) {
    const thought = `${hit.title}: that sounds right. A title proves nothing: I read the page.`;
    return { thought, ...note(`[PENDING] The height of ${subject}: reading ${hit.url}`) };
  }
  if (page === '') return { calls: [call('read_web_page', { url: hit.url })] };
  if (isErrorResult(page)) return note(`[FAILED URL] ${hit.url} could not be read.`);
  if (metres === undefined) return note(`[UNVERIFIED] The height of ${subject}: ${hit.url} does not say it.`);
  const pad = quotedIn(lastResult(calls, 'read_scratchpad'));
  return note(`[VERIFIED] ${subject} is ${metres} metres high. Source: ${hit.url}${signature(assignment, pad, code)}`);
}

/** @param codeOf gives a word for an assignment, the same each time and unlike those of others */
export const createModelRules = (codeOf: (assignment: string) => string): ModelRules => ({
  decide(body) {
    const assignment = assignmentOf(body);
    const step = isSupervisor(body) ? supervise : work;
    return step(assignment, callsIn(body.messages), (body.tools ?? []).length > 0, codeOf(assignment));
  },
});
