// The SQL side of scratchpads: which pad exists, whose it is, what it hangs on.
import DataLoader from 'dataloader';
import type { Prisma, PrismaClient, Scratchpad } from '../generated/prisma/client.js';
import { visibleTo } from '../identity/visible-to.js';
import type { PadAddress } from '../redis/redis-keys.js';
import type { Clock } from '../shared/clock.js';
import { DomainError, notFound } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import type { JsonObject } from '../shared/json.js';
import { isForeignKeyViolation, isUniqueViolation } from '../shared/sql-errors.js';

export interface IdentityPlane {
  /**
   * Null for what is not there, another owner's, or no scratchpad id. A query for nothing but the ids is answered by `exists`: whoever
   * reads working state asks SQL once a second.
   */
  find(ownerId: string, scratchpadId: string, query?: Prisma.ScratchpadDefaultArgs): Promise<Scratchpad | null>;
  findByThread(ownerId: string, threadId: string, query?: Prisma.ScratchpadDefaultArgs): Promise<Scratchpad | null>;
  /** Whether the owner has this pad; true is remembered for at most a second, false never. */
  exists(ownerId: string, scratchpadId: string): Promise<boolean> | boolean;
  /** The same, asked of SQL whatever is remembered. */
  existsNow(ownerId: string, scratchpadId: string): Promise<boolean>;
  /** Forgets which pads of the owner exist: a delete made here holds here at once. */
  forgetOwner(ownerId: string): void;
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
/** With less than this left, SQL is asked ahead: nobody who uses a pad all the time waits for it once a second. */
const renewalMs = 500;
/** For so long pads that want it are gathered: those that are used together are asked for in one statement. */
const renewalDelayMs = 100;
const sweepAbovePads = 10_000;
const mostPadsInStatement = 500;

const asksForIdsOnly = ({ select, ...rest }: Prisma.ScratchpadDefaultArgs): boolean =>
  select != null &&
  Object.keys(rest).length === 0 &&
  Object.keys(select).length > 0 &&
  Object.keys(select).every((name) => name === 'id' || name === 'ownerId');

export function createIdentityPlane({ prisma, now }: Dependencies): IdentityPlane {
  /** By the pad: until when it may be taken for granted that this owner has it. Tombstones in Redis outlive this by far. */
  const known = new Map<string, { readonly ownerId: string; readonly untilMs: number }>();
  /** An answer that was on its way when something was deleted is not remembered: it may be from before. */
  let deletions = 0;

  function remember({ ownerId, scratchpadId }: PadAddress, askedAtMs: number): void {
    if (known.size > sweepAbovePads) {
      for (const [id, { untilMs }] of known) if (untilMs <= askedAtMs) known.delete(id);
    }
    known.set(scratchpadId, { ownerId, untilMs: askedAtMs + cacheMs });
  }
  function forget({ ownerId, scratchpadId }: PadAddress): void {
    if (known.get(scratchpadId)?.ownerId === ownerId) known.delete(scratchpadId);
  }

  async function findRows(pads: readonly PadAddress[]): Promise<boolean[]> {
    const askedAtMs = now().getTime();
    const deletionsBefore = deletions;
    // A condition for each pair would be planned anew for each number of pads: tens of milliseconds for fifty of them.
    const rows = await prisma.scratchpad.findMany({
      where: {
        id: { in: [...new Set(pads.map(({ scratchpadId }) => scratchpadId))] },
        ownerId: { in: [...new Set(pads.map(({ ownerId }) => ownerId))] },
      },
      select: { id: true, ownerId: true },
    });
    const owners = new Map(rows.map(({ id, ownerId }) => [id, ownerId]));
    return pads.map((pad) => {
      const isThere = owners.get(pad.scratchpadId) === pad.ownerId;
      if (isThere && deletions === deletionsBefore) remember(pad, askedAtMs);
      else forget(pad);
      return isThere;
    });
  }

  /** Never rejects. */
  let finding: Promise<unknown> = Promise.resolve();
  /** What is asked while a statement is under way is in the next one: pads that are used together are forgotten together. */
  const rows = new DataLoader<PadAddress, boolean>(
    (pads) => {
      const found = findRows(pads);
      finding = found.catch(() => undefined);
      return found;
    },
    { cache: false, maxBatchSize: mostPadsInStatement, batchScheduleFn: (ask) => void finding.then(ask) },
  );
  const existsNow: IdentityPlane['existsNow'] = (ownerId, scratchpadId) => rows.load({ ownerId, scratchpadId });

  const leftMsOf = ({ ownerId, scratchpadId }: PadAddress): number => {
    const remembered = known.get(scratchpadId);
    return remembered?.ownerId === ownerId ? remembered.untilMs - now().getTime() : 0;
  };

  const renewing = new Map<string, PadAddress>();
  function renewAll(): void {
    const pads = [...renewing.values()];
    renewing.clear();
    for (const pad of pads) {
      // Whoever comes when the second is over would be told why it failed.
      if (leftMsOf(pad) < renewalMs) rows.load(pad).catch(() => undefined);
    }
  }

  const exists: IdentityPlane['exists'] = (ownerId, scratchpadId) => {
    const pad = { ownerId, scratchpadId };
    const leftMs = leftMsOf(pad);
    if (leftMs <= 0) return isId('scratchpad', scratchpadId) && existsNow(ownerId, scratchpadId);
    if (leftMs < renewalMs) {
      if (renewing.size === 0) setTimeout(renewAll, renewalDelayMs).unref();
      renewing.set(scratchpadId, pad);
    }
    return true;
  };

  function forgetOwner(ownerId: string): void {
    deletions += 1;
    for (const [id, pad] of known) if (pad.ownerId === ownerId) known.delete(id);
  }

  return {
    exists,
    existsNow,
    forgetOwner,

    async find(ownerId, scratchpadId, query = {}) {
      if (!isId('scratchpad', scratchpadId)) return null;
      if (asksForIdsOnly(query)) {
        const ids = (await exists(ownerId, scratchpadId)) ? { id: scratchpadId, ownerId } : null;
        return ids as Scratchpad | null; // as of any select: what was not asked for is not there
      }
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
      forgetOwner(ownerId);
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
