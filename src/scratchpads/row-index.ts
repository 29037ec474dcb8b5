// Which of many ids have a row: what the doctor asks SQL.
import type { PrismaClient } from '../generated/prisma/client.js';
import type { Rows } from './doctor.js';

export function createRowIndex({ prisma }: { prisma: Pick<PrismaClient, 'scratchpad' | 'thread' | 'run'> }): Rows {
  return {
    async scratchpadsAmong(ids) {
      const rows = await prisma.scratchpad.findMany({
        where: { id: { in: [...ids] } },
        select: { id: true, ownerId: true },
      });
      return new Map(rows.map((row) => [row.id, row.ownerId]));
    },
    async runsAmong(ids) {
      const rows = await prisma.run.findMany({ where: { id: { in: [...ids] } }, select: { id: true, ownerId: true } });
      return new Map(rows.map((row) => [row.id, row.ownerId]));
    },
    async threadsAmong(ids) {
      const rows = await prisma.thread.findMany({ where: { id: { in: [...ids] } }, select: { id: true } });
      return new Set(rows.map((row) => row.id));
    },
  };
}
