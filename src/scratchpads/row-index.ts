// Which of many ids have a row: what the doctor asks SQL.
import type { PrismaClient } from '../generated/prisma/client.js';

export interface RowIndex {
  /** Those of `ids` that are scratchpads, with their owners. */
  scratchpadsAmong(ids: readonly string[]): Promise<Map<string, string>>;
  threadsAmong(ids: readonly string[]): Promise<Set<string>>;
}

export function createRowIndex({ prisma }: { prisma: Pick<PrismaClient, 'scratchpad' | 'thread'> }): RowIndex {
  return {
    async scratchpadsAmong(ids) {
      const rows = await prisma.scratchpad.findMany({
        where: { id: { in: [...ids] } },
        select: { id: true, ownerId: true },
      });
      return new Map(rows.map((row) => [row.id, row.ownerId]));
    },
    async threadsAmong(ids) {
      const rows = await prisma.thread.findMany({ where: { id: { in: [...ids] } }, select: { id: true } });
      return new Set(rows.map((row) => row.id));
    },
  };
}
