// A subscriber that comes back with its last cursor, to any server and over any transport, whenever it is interrupted.
import { subscribe, transports, type ReceivedEvent } from '../../support/subscriber.js';
import { readMark } from './marked-text.js';
import { pause, takePart, type Part, type Participant } from './session.js';
import type { Pad } from './writers.js';

export interface ResumingSubscriber extends Participant {
  readonly appendsSeen: number;
  readonly contentVersion: string;
  /** By the code of the error, or the way in which the connection ended. */
  readonly interruptions: Readonly<Record<string, number>>;
}

interface Options {
  urls: readonly string[];
  /** Leaves by itself after so long, more or less; undefined stays as long as it can. */
  leavesAfterMs?: number;
}

const longestStayMs = 2 ** 31 - 1;
/** Errors that tell a client to come back. */
const passing = new Set(['UNAVAILABLE', 'SUBSCRIBER_TOO_SLOW']);
/** Close codes of WebSockets that do. */
const passingCloses = new Set([1001, 1005, 1006, 1012, 1013]);

function describe(error: unknown): { reason: string; isPassing: boolean } {
  const {
    extensions,
    code,
    message = String(error),
  } = error as {
    extensions?: { code?: string };
    code?: number | string;
    message?: string;
  };
  if (extensions?.code !== undefined) return { reason: extensions.code, isPassing: passing.has(extensions.code) };
  if (typeof code === 'number') return { reason: `close ${code}`, isPassing: passingCloses.has(code) };
  // A server that cannot ask its database whose key it is, or that is closing.
  if (/^(Server responded with|Unexpected server response:) 503/.test(message))
    return { reason: 'status 503', isPassing: true };
  // A connection that could not be made, or that broke.
  const isNetwork = /fetch failed|terminated|ECONN|socket|network|Socket closed/i.test(message);
  return { reason: isNetwork ? 'connection' : message.slice(0, 200), isPassing: isNetwork };
}

export function startResumingSubscriber(part: Part, pad: Pad, { urls, leavesAfterMs }: Options): ResumingSubscriber {
  const { session, random, name } = part;
  const interruptions: Record<string, number> = {};
  let cursor = '';
  let appendsSeen = 0;
  let contentVersion = '0';

  const receive = (connection: number, { operation, replayed, entry, content, ...event }: ReceivedEvent): void => {
    cursor = event.cursor;
    if (entry) appendsSeen += 1;
    if (content) contentVersion = content.version;
    session.recorder.receive({
      atMs: session.now(),
      subscriber: name,
      connection,
      scratchpadId: pad.scratchpadId,
      cursor,
      operation,
      replayed,
      entry: entry && { id: entry.id, content: entry.content },
      content: content && { version: content.version, ...readMark(content.text) },
    });
  };

  const participant = takePart(part, async (connection) => {
    let isCurrent = true;
    const subscription = await subscribe({
      transport: random.pick(transports),
      url: random.pick(urls),
      secret: pad.secret,
      scratchpadId: pad.scratchpadId,
      after: cursor,
      onEvent: (event) => isCurrent && receive(connection, event),
    });
    const staysMs = leavesAfterMs === undefined ? longestStayMs : random.whole(leavesAfterMs / 2, leavesAfterMs * 2);
    await Promise.race([subscription.ended, pause(session, staysMs)]);
    isCurrent = false;
    subscription.close();
    const how = subscription.isOver ? 'completed' : 'left';
    const described = subscription.errors.map(describe);
    for (const { reason } of described.length > 0 ? described : [{ reason: how }]) {
      interruptions[reason] = (interruptions[reason] ?? 0) + 1;
    }
    for (const { reason, isPassing } of described) if (!isPassing) session.complain(`${name} was told ${reason}`);
    await pause(session, random.whole(20, 300));
    return true;
  });
  return {
    name,
    finished: participant.finished,
    interruptions,
    get done() {
      return appendsSeen;
    },
    get appendsSeen() {
      return appendsSeen;
    },
    get contentVersion() {
      return contentVersion;
    },
  };
}
