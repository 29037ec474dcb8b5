// The SQL side of scratchpads: which pad exists, whose it is, what it hangs on.
import type { Prisma, PrismaClient, Scratchpad } from '../generated/prisma/client.js';
import { visibleTo } from '../identity/visible-to.js';
import type { Clock } from '../shared/clock.js';
import { DomainError, notFound } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import type { JsonObject } from '../shared/json.js';
import { isForeignKeyViolation, isUniqueViolation } from '../shared/sql-errors.js';

export interface IdentityPlane {
  /** Null for what is not there, another owner's, or no scratchpad id. */
  find(ownerId: string, scratchpadId: string, query?: Prisma.ScratchpadDefaultArgs): Promise<Scratchpad | null>;
  findByThread(ownerId: string, threadId: string, query?: Prisma.ScratchpadDefaultArgs): Promise<Scratchpad | null>;
  /** Whether the owner has this pad; true is remembered for at most a second, false never. */
  exists(ownerId: string, scratchpadId: string): Promise<boolean>;
  /** The same, asked of SQL whatever is remembered. */
  existsNow(ownerId: string, scratchpadId: string): Promise<boolean>;
  /** @throws DomainError NOT_FOUND for a thread that is not the owner's, CONFLICT when it has a scratchpad already */
  create(ownerId: string, threadId: string, metaData: JsonObject): Promise<Scratchpad>;
  /** @throws DomainError NOT_FOUND */
  updateMetaData(ownerId: string, scratchpadId: string, metaData: JsonObject): Promise<Scratchpad>;
  /** @throws DomainError NOT_FOUND */
  delete(ownerId: string, scratchpadId: string): Promise<void>;
  /** The owner's pads, narrowed and ordered by `query`. */
  list(ownerId: string, query: Prisma.ScratchpadFindManyArgs): Promise<Scratchpad[]>;
  count(ownerId: string): Promise<number>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'scratchpad' | 'thread'>;
  now: Clock;
}

const cacheMs = 1000;
const sweepAbovePads = 10_000;

export function createIdentityPlane({ prisma, now }: Dependencies): IdentityPlane {
  /** `owner:pad` → until when its existence may be taken for granted. Tombstones in Redis outlive this by far. */
  const knownUntilMs = new Map<string, number>();
  const keyOf = (ownerId: string, scratchpadId: string): string => `${ownerId}:${scratchpadId}`;

  function remember(key: string, askedAtMs: number): void {
    if (knownUntilMs.size > sweepAbovePads) {
      for (const [known, untilMs] of knownUntilMs) if (untilMs <= askedAtMs) knownUntilMs.delete(known);
    }
    knownUntilMs.set(key, askedAtMs + cacheMs);
  }

  const existsNow: IdentityPlane['existsNow'] = async (ownerId, scratchpadId) => {
    const askedAtMs = now().getTime();
    const key = keyOf(ownerId, scratchpadId);
    const row = await prisma.scratchpad.findFirst({ where: { id: scratchpadId, ownerId }, select: { id: true } });
    if (row) remember(key, askedAtMs);
    else knownUntilMs.delete(key);
    return row !== null;
  };

  return {
    existsNow,

    async exists(ownerId, scratchpadId) {
      if (!isId('scratchpad', scratchpadId)) return false;
      const untilMs = knownUntilMs.get(keyOf(ownerId, scratchpadId)) ?? 0;
      return untilMs > now().getTime() || (await existsNow(ownerId, scratchpadId));
    },

    async find(ownerId, scratchpadId, query = {}) {
      if (!isId('scratchpad', scratchpadId)) return null;
      return await prisma.scratchpad.findFirst({ ...query, where: { id: scratchpadId, ownerId } });
    },

    async findByThread(ownerId, threadId, query = {}) {
      if (!isId('thread', threadId)) return null;
      return await prisma.scratchpad.findFirst({ ...query, where: { threadId, ownerId } });
    },

    async create(ownerId, threadId, metaData) {
      if (!isId('thread', threadId)) throw notFound();
      // Ownership is asked first: a unique violation would otherwise tell of another tenant's pad.
      const thread = await prisma.thread.findFirst({
        where: { id: threadId, ...visibleTo(ownerId) },
        select: { id: true },
      });
      if (!thread) throw notFound();
      try {
        return await prisma.scratchpad.create({ data: { id: createId('scratchpad'), ownerId, threadId, metaData } });
      } catch (error) {
        if (isUniqueViolation(error)) {
          throw new DomainError('CONFLICT', 'This thread has a scratchpad already: look it up by the thread.');
        }
        if (isForeignKeyViolation(error)) throw notFound();
        throw error;
      }
    },

    async updateMetaData(ownerId, scratchpadId, metaData) {
      if (!isId('scratchpad', scratchpadId)) throw notFound();
      const [row] = await prisma.scratchpad.updateManyAndReturn({
        where: { id: scratchpadId, ownerId },
        data: { metaData },
      });
      if (!row) throw notFound();
      return row;
    },

    async delete(ownerId, scratchpadId) {
      if (!isId('scratchpad', scratchpadId)) throw notFound();
      const { count } = await prisma.scratchpad.deleteMany({ where: { id: scratchpadId, ownerId } });
      knownUntilMs.delete(keyOf(ownerId, scratchpadId));
      if (count === 0) throw notFound();
    },

    async list(ownerId, query) {
      return await prisma.scratchpad.findMany({ ...query, where: { AND: [{ ownerId }, query.where ?? {}] } });
    },

    async count(ownerId) {
      return await prisma.scratchpad.count({ where: { ownerId } });
    },
  };
}
