// Threads: the conversations of a tenant, and the parents of its scratchpads.
import { z } from 'zod';
import type { Prisma, PrismaClient, Thread } from '../generated/prisma/client.js';
import { findOwner, requireOwner, requireUser, type Principal } from '../identity/principal.js';
import { visibleTo } from '../identity/visible-to.js';
import { notFound, parseInput, unauthenticated } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import { isForeignKeyViolation } from '../shared/sql-errors.js';
import { jsonObject, type JsonObject } from '../shared/json.js';

const newThread = z.object({ metaData: jsonObject.nullish() });
const metaDataChange = z.object({ metaData: jsonObject });

export interface ThreadService {
  /** Null for what is not there, not the principal's, or no thread id. */
  find(principal: Principal, threadId: string, query?: Prisma.ThreadDefaultArgs): Promise<Thread | null>;
  create(principal: Principal, input: { metaData?: JsonObject | null }): Promise<Thread>;
  /** Replaces the metadata as a whole. @throws DomainError NOT_FOUND */
  updateMetaData(principal: Principal, threadId: string, metaData: JsonObject): Promise<Thread>;
  /** Cancels its active run, then takes its messages, its scratchpad and its runs along, in SQL and in Redis. @throws DomainError NOT_FOUND */
  delete(principal: Principal, threadId: string): Promise<string>;
  count(principal: Principal): Promise<number>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'thread'>;
  /** Called before a thread goes. */
  cancelRuns: (scope: { ownerId: string; threadId: string }) => Promise<void>;
  /** Makes Redis follow the delete that was just committed; never throws. */
  purgeOwner: (ownerId: string) => Promise<void>;
}

export function createThreadService({ prisma, cancelRuns, purgeOwner }: Dependencies): ThreadService {
  return {
    async find(principal, threadId, query = {}) {
      const owner = findOwner(principal);
      if (!owner || !isId('thread', threadId)) return null;
      return await prisma.thread.findFirst({ ...query, where: { id: threadId, ...visibleTo(owner.userId) } });
    },

    async create(principal, input) {
      const { userId } = requireUser(principal);
      const { metaData } = parseInput(newThread, input);
      try {
        return await prisma.thread.create({
          data: { id: createId('thread'), ownerId: userId, metaData: metaData ?? {} },
        });
      } catch (error) {
        // The user was deleted while its key was still cached here.
        if (isForeignKeyViolation(error)) throw unauthenticated();
        throw error;
      }
    },

    async updateMetaData(principal, threadId, metaData) {
      const { userId } = requireOwner(principal);
      const data = parseInput(metaDataChange, { metaData });
      if (!isId('thread', threadId)) throw notFound();
      const where = { id: threadId, ...visibleTo(userId) };
      const [thread] = await prisma.thread.updateManyAndReturn({ where, data });
      if (!thread) throw notFound();
      return thread;
    },

    async delete(principal, threadId) {
      const { userId } = requireOwner(principal);
      if (!isId('thread', threadId)) throw notFound();
      const where = { id: threadId, ...visibleTo(userId) };
      if (!(await prisma.thread.findFirst({ where, select: { id: true } }))) throw notFound();
      await cancelRuns({ ownerId: userId, threadId });
      const { count } = await prisma.thread.deleteMany({ where });
      if (count === 0) throw notFound();
      await purgeOwner(userId);
      return threadId;
    },

    async count(principal) {
      return await prisma.thread.count({ where: visibleTo(requireUser(principal).userId) });
    },
  };
}
