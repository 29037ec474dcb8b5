// One writer at a time: while a run is active on a thread, its conversation is the run's alone.
import type { Prisma } from '../generated/prisma/client.js';
import { DomainError, notFound } from '../shared/errors.js';
import { isId } from '../shared/ids.js';

/** The states that a run can still leave. */
export const activeRun = { status: { in: ['QUEUED', 'IN_PROGRESS'] } } satisfies Prisma.RunWhereInput;

export const threadIsBusy = (): DomainError =>
  new DomainError('CONFLICT', 'A run is active on this thread: wait for its end, or cancel it.');

/**
 * Locks a thread of the owner for the rest of the transaction: until then no run starts on it and no client's message lands in it.
 * @throws DomainError NOT_FOUND (also for a worker's private thread), CONFLICT while a run is active on it
 */
export async function lockIdleThread(
  transaction: Pick<Prisma.TransactionClient, '$queryRaw' | 'run'>,
  ownerId: string,
  threadId: string,
): Promise<void> {
  if (!isId('thread', threadId)) throw notFound();
  // Not FOR UPDATE: what refers to the thread may still be inserted. The filter is that of visibleTo().
  const rows = await transaction.$queryRaw<unknown[]>`
    SELECT 1 FROM threads WHERE id = ${threadId} AND owner_id = ${ownerId} AND NOT ephemeral FOR NO KEY UPDATE`;
  if (rows.length === 0) throw notFound();
  const active = await transaction.run.findFirst({ where: { threadId, ...activeRun }, select: { id: true } });
  if (active) throw threadIsBusy();
}
