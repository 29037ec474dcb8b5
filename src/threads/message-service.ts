// Messages: what was said on a thread, in the order in which the database stored it.
import { z } from 'zod';
import type { Message, Prisma, PrismaClient } from '../generated/prisma/client.js';
import { findOwner, requireOwner, requireUser, type Principal } from '../identity/principal.js';
import { visibleTo } from '../identity/visible-to.js';
import { DomainError, parseInput } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import { byteLength, storableText } from '../shared/text.js';
import { lockIdleThread } from './idle-thread.js';

const newMessage = z.object({
  threadId: z.string(),
  content: storableText.refine((text) => text.trim() !== '', 'must not be blank'),
  role: z.enum(['USER', 'ASSISTANT'], 'must be USER or ASSISTANT: the other roles are written by runs'),
});

export interface MessageService {
  /** Null for what is not there, not the principal's, or no message id. */
  find(principal: Principal, messageId: string, query?: Prisma.MessageDefaultArgs): Promise<Message | null>;
  /**
   * @throws DomainError NOT_FOUND for the thread, CONFLICT while a run is active on it, INVALID_INPUT for another role or blank
   *   content, LIMIT_EXCEEDED
   */
  create(principal: Principal, input: { threadId: string; content: string; role: string }): Promise<Message>;
  /** How many messages each of these threads of the principal has; threads without any are left out. */
  countByThread(principal: Principal, threadIds: readonly string[]): Promise<Map<string, number>>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'message' | '$transaction'>;
  /** Bytes in UTF-8. */
  maxContentBytes: number;
}

export function createMessageService({ prisma, maxContentBytes }: Dependencies): MessageService {
  return {
    async find(principal, messageId, query = {}) {
      const owner = findOwner(principal);
      if (!owner || !isId('message', messageId)) return null;
      return await prisma.message.findFirst({ ...query, where: { id: messageId, thread: visibleTo(owner.userId) } });
    },

    async create(principal, input) {
      const { userId } = requireOwner(principal);
      const { threadId, content, role } = parseInput(newMessage, input);
      if (byteLength(content) > maxContentBytes) {
        throw new DomainError('LIMIT_EXCEEDED', `A message may have at most ${maxContentBytes} bytes in UTF-8.`);
      }
      return await prisma.$transaction(async (transaction) => {
        await lockIdleThread(transaction, userId, threadId);
        return await transaction.message.create({ data: { id: createId('message'), threadId, content, role } });
      });
    },

    async countByThread(principal, threadIds) {
      const { userId } = requireUser(principal);
      const groups = await prisma.message.groupBy({
        by: ['threadId'],
        where: { threadId: { in: [...threadIds] }, thread: visibleTo(userId) },
        _count: true,
      });
      return new Map(groups.map((group) => [group.threadId, group._count]));
    },
  };
}
