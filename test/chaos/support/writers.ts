// Those who write: appenders, and supervisors who rewrite the content. Half of what they send carries an idempotency key and is sent
// again, to any server, until it is answered; the other half is sent once, whatever becomes of it.
import { setContentDocument } from '../../support/operations.js';
import { markText } from './marked-text.js';
import type { Answer } from './requests.js';
import { pause, takePart, type Part, type Participant } from './session.js';

export interface Pad {
  scratchpadId: string;
  secret: string;
}

export const appendDocument = `mutation ($input: AppendScratchpadEntryInput!) {
  appendScratchpadEntry(input: $input) { entry { id content } entryEdge { cursor } }
}`;

interface Appended {
  appendScratchpadEntry: { entry: { id: string; content: string } };
}
interface Written {
  setScratchpadContent: { content: { version: string } };
}

type Sent<Data> = { answer: Answer<Data>; startedAtMs: number; attempts: number };

/** With a key it goes on until there is an answer; without one it is sent once. */
async function sendWrite<Data>(
  { session, random }: Part,
  secret: string,
  document: string,
  input: { idempotencyKey?: string | undefined },
  firstServer: number,
): Promise<Sent<Data>> {
  const startedAtMs = session.now();
  let server = firstServer;
  for (let attempts = 1; ; attempts += 1) {
    const answer = await session.requests.send<Data>(server, secret, document, { input });
    const isUnknown = answer.kind === 'lost' || (answer.kind === 'refused' && answer.code === 'UNAVAILABLE');
    if (!isUnknown || input.idempotencyKey === undefined || attempts > 200) return { answer, startedAtMs, attempts };
    server = random.whole(0, session.servers - 1);
    await pause(session, random.whole(20, 200));
    if (session.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Appends one text and remembers the answer. @returns the answer */
export async function appendOnce(
  part: Part,
  pad: Pad,
  text: { name: string; length: number },
  firstServer: number,
): Promise<Answer<Appended>> {
  const { session, random, name: client } = part;
  const content = markText(text.name, text.length);
  const idempotencyKey = random.next() < 0.5 ? `key of ${text.name}` : undefined;
  const input = { scratchpadId: pad.scratchpadId, content, idempotencyKey };
  const { answer, startedAtMs, attempts } = await sendWrite<Appended>(
    part,
    pad.secret,
    appendDocument,
    input,
    firstServer,
  );
  if (answer.kind === 'success') {
    session.recorder.acknowledge({
      operation: 'append',
      client,
      scratchpadId: pad.scratchpadId,
      name: text.name,
      idempotencyKey: idempotencyKey ?? null,
      attempts,
      startedAtMs,
      answeredAtMs: answer.answeredAtMs,
      entry: answer.data.appendScratchpadEntry.entry,
    });
  } else if (idempotencyKey !== undefined && (answer.kind === 'lost' || answer.code === 'UNAVAILABLE')) {
    session.complain(`${text.name} got no answer in ${attempts} attempts`);
  }
  return answer;
}

/** @param server where it writes as long as that one answers */
export function startAppender(part: Part, pad: Pad, server: number): Participant {
  const { session, random, name } = part;
  return takePart(part, async (index) => {
    const answer = await appendOnce(part, pad, { name: `${name}-${index}`, length: random.whole(20, 1200) }, server);
    if (answer.kind === 'refused' && answer.code !== 'UNAVAILABLE')
      session.complain(`${name} was refused: ${answer.code}`);
    await pause(session, answer.kind === 'success' ? random.whole(2, 20) : random.whole(50, 200));
    return answer.kind === 'success';
  });
}

/** One in so many rewrites is longer than what an event carries. */
const longOneIn = 20;

/** Replaces the content, nearly always exactly the version that it knows. */
export function startSupervisor(part: Part, pad: Pad, server: number): Participant {
  const { session, random, name } = part;
  let known = '0';
  return takePart(part, async (index) => {
    const mark = `${name}-${index}`;
    const length = random.whole(1, longOneIn) === 1 ? random.whole(70_000, 120_000) : random.whole(200, 3000);
    const idempotencyKey = random.next() < 0.5 ? `key of ${mark}` : undefined;
    const expectedVersion = random.next() < 0.9 ? known : undefined;
    const input = { scratchpadId: pad.scratchpadId, text: markText(mark, length), expectedVersion, idempotencyKey };
    const sent = await sendWrite<Written>(part, pad.secret, setContentDocument, input, server);
    const { answer, startedAtMs, attempts } = sent;
    if (answer.kind === 'success') {
      known = answer.data.setScratchpadContent.content.version;
      session.recorder.acknowledge({
        operation: 'set',
        client: name,
        scratchpadId: pad.scratchpadId,
        name: mark,
        idempotencyKey: idempotencyKey ?? null,
        attempts,
        startedAtMs,
        answeredAtMs: answer.answeredAtMs,
        version: known,
        expectedVersion: expectedVersion ?? null,
      });
    } else if (answer.kind === 'refused' && answer.code === 'CONFLICT' && expectedVersion !== undefined) {
      const { currentVersion } = answer.failure.extensions;
      if (typeof currentVersion === 'string' && currentVersion !== expectedVersion) known = currentVersion;
      else
        session.complain(
          `${name} expected ${expectedVersion}, and the conflict tells ${JSON.stringify(currentVersion)}`,
        );
    } else if (answer.kind === 'refused' && answer.code !== 'UNAVAILABLE') {
      session.complain(`${name} was refused: ${answer.code}`);
    }
    await pause(session, random.whole(20, 120));
    return answer.kind === 'success';
  });
}
