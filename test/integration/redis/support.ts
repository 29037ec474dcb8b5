// What every test of the Redis planes needs: a real server, our connections to it, the planes over them.
import { setTimeout as delay } from 'node:timers/promises';
import { openRedis, type RedisConnections } from '../../../src/infra/redis.js';
import {
  createDataPlane,
  type DataPlane,
  type DataPlaneLimits,
  type PadAddress,
} from '../../../src/scratchpads/data-plane.js';
import { createEventPlane, type EventPlane, type ScratchpadChange } from '../../../src/scratchpads/event-plane.js';
import { createId } from '../../../src/shared/ids.js';
import { createLogger } from '../../../src/shared/logger.js';
import type { TestRedis } from '../../support/redis.js';

export const silent = createLogger('silent');

export const defaultLimits: DataPlaneLimits = {
  scratchpadTtlSeconds: 86_400,
  maxContentBytes: 1_048_576,
  maxEntryBytes: 65_536,
  maxEntries: 100_000,
  formattedViewMaxBytes: 65_536,
};

export const newPad = (): PadAddress => ({ ownerId: createId('user'), scratchpadId: createId('scratchpad') });

/** Planes over connections of their own, as one server process has them. */
export interface Planes {
  readonly redis: RedisConnections;
  readonly dataPlane: DataPlane;
  readonly eventPlane: EventPlane;
  close(): Promise<void>;
}

export interface PlaneOptions {
  limits?: Partial<DataPlaneLimits>;
  bufferEvents?: number;
  bufferBytes?: number;
  padExists?: (pad: PadAddress) => Promise<boolean>;
}

export async function openPlanes(server: TestRedis, options: PlaneOptions = {}): Promise<Planes> {
  const redis = await openRedis({ redisUrl: server.url }, silent);
  const dataPlane = createDataPlane({ redis, limits: { ...defaultLimits, ...options.limits } });
  const eventPlane = createEventPlane({
    redis,
    dataPlane,
    padExists: options.padExists ?? (() => Promise.resolve(true)),
    bufferEvents: options.bufferEvents ?? 1000,
    ...(options.bufferBytes !== undefined && { bufferBytes: options.bufferBytes }),
    logger: silent,
  });
  return {
    redis,
    dataPlane,
    eventPlane,
    async close() {
      eventPlane.close();
      await redis.close();
    },
  };
}

/** Polls until `check` holds; fails with `what` after the time. */
export async function until(what: string, check: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await delay(5);
  }
}

/** A consumer that keeps what it was told. */
export interface Listener {
  readonly changes: ScratchpadChange[];
  /** Undefined while it listens; then how it ended. */
  readonly ended: { error?: unknown } | undefined;
  stop(): Promise<void>;
}

export function listen(iterator: AsyncIterableIterator<ScratchpadChange>): Listener {
  const changes: ScratchpadChange[] = [];
  let ended: { error?: unknown } | undefined;
  const run = async (): Promise<void> => {
    try {
      for await (const change of iterator) changes.push(change);
      ended = {};
    } catch (error) {
      ended = { error };
    }
  };
  const running = run();
  return {
    changes,
    get ended() {
      return ended;
    },
    async stop() {
      await iterator.return?.();
      await running;
    },
  };
}

/** What a client that applies changes knows of a pad. */
export interface View {
  text: string;
  version: string;
  entryIds: string[];
}

/** Applies changes as a client would. @throws when an entry comes twice: a client must never need to notice that */
export function applyChanges(
  changes: readonly ScratchpadChange[],
  view: View = { text: '', version: '0', entryIds: [] },
): View {
  for (const change of changes) {
    if (change.operation === 'APPEND') {
      if (view.entryIds.includes(change.entry!.id)) throw new Error(`entry ${change.entry!.id} came twice`);
      view.entryIds.push(change.entry!.id);
    }
    if (change.operation === 'UPDATE')
      Object.assign(view, { text: change.content!.text, version: change.content!.version });
    if (['CLEAR_CONTENT', 'CLEAR', 'EXPIRE', 'DELETE'].includes(change.operation)) {
      Object.assign(view, { text: '', version: '0' });
    }
    if (['CLEAR_ENTRIES', 'CLEAR', 'EXPIRE', 'DELETE'].includes(change.operation)) view.entryIds = [];
  }
  return view;
}

/** The same, read from Redis. */
export async function readView(dataPlane: DataPlane, pad: PadAddress): Promise<View> {
  const entryIds: string[] = [];
  let after: [number, number] | undefined;
  for (;;) {
    const [reading] = await dataPlane.read([
      { pad, content: true, pages: [{ size: 100, fromEnd: false, ...(after && { after }) }] },
    ]);
    const page = reading!.pages![0]!;
    if (page instanceof Error) throw page;
    entryIds.push(...page.edges.map(({ node }) => node.id));
    const last = page.edges.at(-1);
    if (!page.pageInfo.hasNextPage || !last) {
      return { text: reading!.content!.text, version: reading!.content!.version, entryIds };
    }
    after = [entryIds.length - 1, last.node.sequence];
  }
}
