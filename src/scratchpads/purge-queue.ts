// The SQL side of purging: the tasks that triggers wrote in the transactions that deleted the rows.
import type { PrismaClient } from '../generated/prisma/client.js';
import type { PurgeQueue } from './purge.js';

export function createPurgeQueue({ prisma }: { prisma: Pick<PrismaClient, 'purgeTask'> }): PurgeQueue {
  return {
    async list({ ownerId, limit }) {
      return await prisma.purgeTask.findMany({
        ...(ownerId !== undefined && { where: { ownerId } }),
        orderBy: { id: 'asc' },
        take: limit,
        select: { id: true, kind: true, ownerId: true, resourceId: true },
      });
    },
    async remove(ids) {
      await prisma.purgeTask.deleteMany({ where: { id: { in: [...ids] } } });
    },
    async count() {
      return await prisma.purgeTask.count();
    },
  };
}
