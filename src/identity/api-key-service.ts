// A user's API keys: made once, listed without their secrets, revoked for ever.
import { z } from 'zod';
import type { ApiKey, Prisma, PrismaClient } from '../generated/prisma/client.js';
import { isStorableInstant, type Clock } from '../shared/clock.js';
import { invalidInput, notFound, parseInput, unauthenticated } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import { isForeignKeyViolation } from '../shared/sql-errors.js';
import { nameText } from '../shared/text.js';
import type { Authentication } from './authentication.js';
import { findOwner, requireOwner, requireUser, type Principal } from './principal.js';
import { apiKeyPrefix, createSecret, hashSecret, visiblePrefix } from './secrets.js';

const newKey = z.object({
  name: nameText,
  expiresAt: z.date().refine(isStorableInstant, 'must lie before the year 10000').nullish(),
});

export interface ApiKeyService {
  /** The secret is in this answer and nowhere else. @throws DomainError INVALID_INPUT for an expiry that has passed */
  create(
    principal: Principal,
    input: { name: string; expiresAt?: Date | null },
  ): Promise<{ apiKey: ApiKey; secret: string }>;
  /** Idempotent: a second revocation keeps the time of the first. @throws DomainError NOT_FOUND */
  revoke(principal: Principal, apiKeyId: string): Promise<ApiKey>;
  find(principal: Principal, apiKeyId: string, query?: Prisma.ApiKeyDefaultArgs): Promise<ApiKey | null>;
  /** In the order of their creation. */
  list(principal: Principal): Promise<ApiKey[]>;
}

/** The columns of a new key around a given secret. */
export const apiKeyColumns = (ownerId: string, name: string, secret: string) => ({
  id: createId('apiKey'),
  ownerId,
  name,
  prefix: visiblePrefix(secret),
  secretHash: hashSecret(secret),
});

interface Dependencies {
  prisma: Pick<PrismaClient, 'apiKey'>;
  authentication: Pick<Authentication, 'forgetUser'>;
  now: Clock;
}

export function createApiKeyService({ prisma, authentication, now }: Dependencies): ApiKeyService {
  const find: ApiKeyService['find'] = async (principal, apiKeyId, query = {}) => {
    const owner = findOwner(principal);
    if (!owner || !isId('apiKey', apiKeyId)) return null;
    return await prisma.apiKey.findFirst({ ...query, where: { id: apiKeyId, ownerId: owner.userId } });
  };

  return {
    find,

    async create(principal, input) {
      const { userId } = requireUser(principal);
      const { name, expiresAt } = parseInput(newKey, input);
      if (expiresAt && expiresAt <= now()) throw invalidInput('expiresAt must lie in the future.');
      const secret = createSecret(apiKeyPrefix);
      const data = { ...apiKeyColumns(userId, name, secret), expiresAt: expiresAt ?? null };
      try {
        return { apiKey: await prisma.apiKey.create({ data }), secret };
      } catch (error) {
        // The user was deleted while its key was still cached here.
        if (isForeignKeyViolation(error)) throw unauthenticated();
        throw error;
      }
    },

    async revoke(principal, apiKeyId) {
      const { userId } = requireOwner(principal);
      if (!isId('apiKey', apiKeyId)) throw notFound();
      await prisma.apiKey.updateMany({
        where: { id: apiKeyId, ownerId: userId, revokedAt: null },
        data: { revokedAt: now() },
      });
      authentication.forgetUser(userId);
      const apiKey = await find(principal, apiKeyId);
      if (!apiKey) throw notFound();
      return apiKey;
    },

    async list(principal) {
      const { userId } = requireUser(principal);
      return await prisma.apiKey.findMany({ where: { ownerId: userId }, orderBy: { id: 'asc' } });
    },
  };
}
