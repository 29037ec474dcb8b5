// The demo's model behind its HTTP server: decides by rules, thinks aloud, streams, and dies where it is told to.
import { createHmac, randomBytes } from 'node:crypto';
import { assignmentOf, callsIn, isSupervisor } from './conversation.js';
import { createModelRules, type Decision } from './model-rules.js';
import { callsReply, chunkOf, startModelServer, textReply, type ModelRequest, type Reply } from './model-server.js';

export interface ResearchModel {
  /** What LLM_BASE_URL takes. */
  baseUrl: string;
  requests: ModelRequest[];
  /** The provider dies under the worker whose task names this, in the middle of its conclusion. Undefined: under nobody. */
  dieUnder(subject: string | undefined): void;
  /** What was sent before it died, each time. */
  cutOff: string[];
  close(): Promise<void>;
}

const pieces = (text: string): string[] => text.match(/[^]{1,16}/g) ?? [];

/** @param paceMs between two pieces of an answer, so that a person sees it stream */
export async function startResearchModel({ paceMs }: { paceMs: number }): Promise<ResearchModel> {
  const salt = randomBytes(8);
  const codeOf = (assignment: string): string =>
    createHmac('sha256', salt).update(assignment).digest('hex').slice(0, 6).toUpperCase();
  const rules = createModelRules(codeOf);
  const cutOff: string[] = [];
  let doomed: string | undefined;
  let callCount = 0;

  function toReply({ thought = '', text, calls = [] }: Decision): Reply {
    const thoughts = pieces(thought).map((piece) => chunkOf({ reasoning_content: piece }));
    const numbered = calls.map((call) => ({ ...call, id: `call_${++callCount}` }));
    const reply =
      numbered.length > 0 ? callsReply(numbered, text === undefined ? {} : { text }) : textReply(text ?? '');
    return { ...reply, chunks: [...thoughts, ...(reply.chunks ?? [])], pauseMsBetweenChunks: paceMs };
  }

  function die(subject: string): Reply {
    const begun = `From what I have read so far, ${subject} seems to be about`;
    cutOff.push(begun);
    const chunks = pieces(begun).map((content) => chunkOf({ content }));
    return { chunks, ending: 'die', pauseMsBetweenChunks: paceMs };
  }

  const server = await startModelServer(({ body }) => {
    const isDoomed = doomed !== undefined && !isSupervisor(body) && assignmentOf(body).includes(doomed);
    const hasRead = callsIn(body.messages).some(({ name }) => name === 'read_web_page');
    return isDoomed && hasRead ? die(doomed ?? '') : toReply(rules.decide(body));
  });
  return {
    baseUrl: server.baseUrl,
    requests: server.requests,
    dieUnder(subject) {
      doomed = subject;
    },
    cutOff,
    close: () => server.close(),
  };
}
