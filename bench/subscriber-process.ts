// Starts the process that holds a measurement's WebSockets, and speaks with it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { SocketPlan, SubscriberReport, SubscriberTask } from './subscribers.js';

export interface Subscribers {
  connect(sockets: SocketPlan[]): Promise<void>;
  /** What was delivered since the last report. */
  report(): Promise<SubscriberReport>;
  disconnect(): Promise<void>;
  stop(): Promise<void>;
}

export function startSubscribers(): Subscribers {
  // The loader of TypeScript is inherited with this process's own options.
  const child = fork(fileURLToPath(new URL('subscribers.ts', import.meta.url)));
  const ask = async (task: SubscriberTask): Promise<SubscriberReport> => {
    const answered = once(child, 'message') as Promise<[SubscriberReport | { failed: string }]>;
    child.send(task);
    const [answer] = await answered;
    if ('failed' in answer) throw new Error(`The subscribers failed: ${answer.failed}`);
    return answer;
  };
  return {
    connect: async (sockets) => void (await ask({ task: 'connect', sockets })),
    report: () => ask({ task: 'report' }),
    disconnect: async () => void (await ask({ task: 'disconnect' })),
    async stop() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

/** A subscriber of ours; every one sends the same document and variables. */
export const subscription = (url: string, secret: string, scratchpadId: string): SocketPlan => ({
  url: `${url.replace('http', 'ws')}/graphql`,
  protocol: 'graphql-transport-ws',
  greetings: [
    JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${secret}` } }),
    JSON.stringify({
      id: '1',
      type: 'subscribe',
      payload: {
        query: `subscription Watch($id: ID!) {
          scratchpadEvents(scratchpadId: $id) { cursor operation entry { id content createdAt } }
        }`,
        variables: { id: scratchpadId },
      },
    }),
  ],
});
