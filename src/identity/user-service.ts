// Users: the tenants. Made and deleted by the administrator; a user may delete itself.
import { z } from 'zod';
import type { Prisma, PrismaClient, User } from '../generated/prisma/client.js';
import { invalidInput, notFound, parseInput } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import { nameText } from '../shared/text.js';
import { apiKeyColumns } from './api-key-service.js';
import type { Authentication } from './authentication.js';
import { findOwner, requireAdministrator, requireUser, type Principal } from './principal.js';
import { apiKeyPrefix, createSecret } from './secrets.js';

const newUser = z.object({ name: nameText });
const threadsAtOnce = 1000;

export interface UserService {
  /** The authenticated user; null for an agent and for the administrator, who are none. */
  viewer(principal: Principal, query?: Prisma.UserDefaultArgs): Promise<User | null>;
  /** The user with this id, if it is the principal itself. */
  find(principal: Principal, userId: string, query?: Prisma.UserDefaultArgs): Promise<User | null>;
  /** Administrator only. The secret of the user's first key is in this answer and nowhere else. */
  create(principal: Principal, input: { name: string }): Promise<{ user: User; secret: string }>;
  /** Administrator only. Takes everything that the user owns along, in SQL and in Redis. @throws DomainError NOT_FOUND */
  delete(principal: Principal, userId: string): Promise<string>;
  /** Deletes the authenticated user. @throws DomainError INVALID_INPUT when `confirmUserId` is not its own id */
  deleteViewer(principal: Principal, confirmUserId: string): Promise<string>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'user' | 'thread'>;
  authentication: Pick<Authentication, 'forgetUser'>;
  /** Called before a user goes. */
  cancelRuns: (scope: { ownerId: string }) => Promise<void>;
  /** Makes Redis follow the delete that was just committed; never throws. */
  purgeOwner: (ownerId: string) => Promise<void>;
}

export function createUserService({ prisma, authentication, cancelRuns, purgeOwner }: Dependencies): UserService {
  /** A cascade over everything at once would outlast a statement's time limit when there is much. */
  async function removeThreads(userId: string): Promise<void> {
    for (;;) {
      const threads = await prisma.thread.findMany({
        where: { ownerId: userId },
        select: { id: true },
        take: threadsAtOnce,
      });
      if (threads.length === 0) return;
      await prisma.thread.deleteMany({ where: { id: { in: threads.map(({ id }) => id) } } });
    }
  }

  async function remove(userId: string): Promise<string> {
    await cancelRuns({ ownerId: userId });
    await removeThreads(userId);
    const { count } = await prisma.user.deleteMany({ where: { id: userId } });
    if (count === 0) throw notFound();
    authentication.forgetUser(userId);
    await purgeOwner(userId);
    return userId;
  }

  return {
    async viewer(principal, query = {}) {
      if (principal.kind !== 'user') return null;
      return await prisma.user.findUnique({ ...query, where: { id: principal.userId } });
    },

    async find(principal, userId, query = {}) {
      if (findOwner(principal)?.userId !== userId) return null;
      return await prisma.user.findUnique({ ...query, where: { id: userId } });
    },

    async create(principal, input) {
      requireAdministrator(principal);
      const { name } = parseInput(newUser, input);
      const secret = createSecret(apiKeyPrefix);
      const { ownerId: id, ...firstKey } = apiKeyColumns(createId('user'), 'first key', secret);
      const user = await prisma.user.create({ data: { id, name, apiKeys: { create: firstKey } } });
      return { user, secret };
    },

    async delete(principal, userId) {
      requireAdministrator(principal);
      if (!isId('user', userId)) throw notFound();
      return await remove(userId);
    },

    async deleteViewer(principal, confirmUserId) {
      const { userId } = requireUser(principal);
      if (confirmUserId !== userId) {
        throw invalidInput('confirmUserId must be your own user id: this deletes you and everything you own.');
      }
      return await remove(userId);
    },
  };
}
