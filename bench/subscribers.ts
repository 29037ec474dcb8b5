// The subscribers of a measurement, in a process of their own: many WebSockets that count what they get and how late it comes.
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { percentile } from './table.js';

/** What the measuring process asks for. */
export type SubscriberTask =
  | { task: 'connect'; sockets: SocketPlan[] }
  /** @see SubscriberReport */
  | { task: 'report' }
  | { task: 'disconnect' };

export interface SocketPlan {
  url: string;
  protocol?: string;
  /** Sent in turn, each after the next message of the server. */
  greetings: string[];
  /** The first message that contains this means that the subscriber listens; undefined: it listens when it has sent everything. */
  readyMark?: string;
}

/** Since the last report. */
export interface SubscriberReport {
  delivered: number;
  p50Ms: number;
  p99Ms: number;
  closed: number;
}

/** In the text of what is published: when it was, in the clock that all processes of a machine share. */
export const stamp = (): string => `@${(performance.timeOrigin + performance.now()).toFixed(3)}@`;

const stampPattern = /@(\d+\.\d{3})@/;
const connectAtOnce = 50;

/** A message is searched once, however many sockets of this process get the same bytes: parsing is not what is measured. */
function createLatencies() {
  let latencies: number[] = [];
  return {
    add(text: string) {
      const sentAt = stampPattern.exec(text)?.[1];
      if (sentAt !== undefined) latencies.push(performance.timeOrigin + performance.now() - Number(sentAt));
    },
    take() {
      const taken = latencies;
      latencies = [];
      return taken;
    },
  };
}

if (process.send) {
  const sockets: WebSocket[] = [];
  const latencies = createLatencies();
  let closed = 0;

  const connect = ({ url, protocol, greetings, readyMark }: SocketPlan): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(url, protocol === undefined ? [] : [protocol], {
        perMessageDeflate: false,
        skipUTF8Validation: true,
      });
      const left = [...greetings];
      let listening = false;
      const greet = (): void => {
        const next = left.shift();
        if (next !== undefined) socket.send(next);
        if (left.length === 0 && readyMark === undefined) settle();
      };
      const settle = (): void => {
        listening = true;
        resolve();
      };
      socket.on('error', reject);
      socket.on('close', () => (closed += 1));
      socket.on('open', greet);
      socket.on('message', (data: Buffer) => {
        const text = data.toString('latin1');
        if (listening) latencies.add(text);
        else if (readyMark !== undefined && text.includes(readyMark)) settle();
        else greet();
      });
      sockets.push(socket);
    });

  const answer = async (task: SubscriberTask): Promise<SubscriberReport | { ready: true }> => {
    if (task.task === 'connect') {
      for (let from = 0; from < task.sockets.length; from += connectAtOnce) {
        await Promise.all(task.sockets.slice(from, from + connectAtOnce).map(connect));
      }
      // What was sent last has to arrive before anything is published.
      await sleep(500);
      return { ready: true };
    }
    if (task.task === 'disconnect') {
      for (const socket of sockets.splice(0)) socket.terminate();
      return { ready: true };
    }
    const taken = latencies.take();
    return {
      delivered: taken.length,
      p50Ms: taken.length > 0 ? percentile(taken, 0.5) : Number.NaN,
      p99Ms: taken.length > 0 ? percentile(taken, 0.99) : Number.NaN,
      closed,
    };
  };

  process.on('message', (task: SubscriberTask) => {
    answer(task).then(
      (result) => process.send?.(result),
      (error: unknown) => process.send?.({ failed: String(error) }),
    );
  });
  process.on('disconnect', () => process.exit());
}
