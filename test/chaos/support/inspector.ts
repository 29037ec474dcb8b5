// Looks into a running server process through Node's own inspector, from outside: the server knows nothing of it.
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { ServerSlot } from './server-slot.js';

export interface Footprint {
  /** After a garbage collection. */
  heapBytes: number;
  residentBytes: number;
  /** How many of each kind keep the process busy: sockets, timers, … */
  resources: Record<string, number>;
}

/** What a process holds now, its garbage apart. */
export async function readFootprint(server: ServerSlot): Promise<Footprint> {
  const socket = new WebSocket(server.inspectorUrl());
  await once(socket, 'open');
  let id = 0;
  const call = (method: string, params: object = {}): Promise<{ result?: { value?: string } }> =>
    new Promise((settle, fail) => {
      const mine = (id += 1);
      socket.on('message', function read(data: Buffer) {
        const message = JSON.parse(data.toString()) as {
          id?: number;
          error?: object;
          result: { result?: { value?: string } };
        };
        if (message.id !== mine) return;
        socket.off('message', read);
        if (message.error) fail(new Error(JSON.stringify(message.error)));
        else settle(message.result);
      });
      socket.send(JSON.stringify({ id: mine, method, params }));
    });
  try {
    // Twice: what finalizers let go of is collected by the second one.
    for (let round = 0; round < 2; round += 1) await call('HeapProfiler.collectGarbage');
    const expression = `JSON.stringify({ memory: process.memoryUsage(), resources: process.getActiveResourcesInfo() })`;
    const { result } = await call('Runtime.evaluate', { expression, returnByValue: true });
    const { memory, resources } = JSON.parse(result?.value ?? '{}') as {
      memory: NodeJS.MemoryUsage;
      resources: string[];
    };
    const counted: Record<string, number> = {};
    for (const resource of resources) counted[resource] = (counted[resource] ?? 0) + 1;
    return { heapBytes: memory.heapUsed, residentBytes: memory.rss, resources: counted };
  } finally {
    socket.close();
    await once(socket, 'close');
  }
}
