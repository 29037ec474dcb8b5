// Agent tokens: credentials for one scratchpad each, made and revoked by its owner.
import { z } from 'zod';
import type { AgentToken, Prisma, PrismaClient } from '../generated/prisma/client.js';
import type { Clock } from '../shared/clock.js';
import { invalidInput, notFound, parseInput } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import { isForeignKeyViolation } from '../shared/sql-errors.js';
import { nameText } from '../shared/text.js';
import { ownerForPad } from './agent-access.js';
import type { Authentication } from './authentication.js';
import { agentRoles, findOwner, requireOwner, type AgentRole, type Principal } from './principal.js';
import { agentTokenPrefix, createSecret, hashSecret, visiblePrefix } from './secrets.js';

const newToken = z.object({
  scratchpadId: z.string(),
  name: nameText,
  role: z.enum(agentRoles),
  expiresAt: z.date().nullish(),
});

export interface AgentTokenInput {
  scratchpadId: string;
  /** The author of what is appended with the token. */
  name: string;
  role: AgentRole;
  expiresAt?: Date | null;
}

/** Tokens are their owner's alone: an agent finds none, its own included. */
export interface AgentTokenService {
  /**
   * The secret is in this answer and nowhere else.
   * @throws DomainError NOT_FOUND for a scratchpad that is not the principal's, FORBIDDEN for an agent on its own scratchpad,
   *   INVALID_INPUT for an expiry that has passed
   */
  create(principal: Principal, input: AgentTokenInput): Promise<{ agentToken: AgentToken; secret: string }>;
  /** Idempotent: a second revocation keeps the time of the first. @throws DomainError NOT_FOUND */
  revoke(principal: Principal, agentTokenId: string): Promise<AgentToken>;
  find(principal: Principal, agentTokenId: string, query?: Prisma.AgentTokenDefaultArgs): Promise<AgentToken | null>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'agentToken'>;
  authentication: Pick<Authentication, 'forgetUser'>;
  now: Clock;
}

export function createAgentTokenService({ prisma, authentication, now }: Dependencies): AgentTokenService {
  const find: AgentTokenService['find'] = async (principal, agentTokenId, query = {}) => {
    const owner = findOwner(principal);
    if (!owner || !isId('agentToken', agentTokenId)) return null;
    return await prisma.agentToken.findFirst({ ...query, where: { id: agentTokenId, ownerId: owner.userId } });
  };

  return {
    find,

    async create(principal, input) {
      const ownerId = ownerForPad(principal, input.scratchpadId, 'MANAGE');
      const { scratchpadId, name, role, expiresAt } = parseInput(newToken, input);
      if (expiresAt && expiresAt <= now()) throw invalidInput('expiresAt must lie in the future.');
      if (!isId('scratchpad', scratchpadId)) throw notFound();
      const secret = createSecret(agentTokenPrefix);
      try {
        const agentToken = await prisma.agentToken.create({
          data: {
            id: createId('agentToken'),
            ownerId,
            scratchpadId,
            name,
            role,
            prefix: visiblePrefix(secret),
            secretHash: hashSecret(secret),
            expiresAt: expiresAt ?? null,
          },
        });
        return { agentToken, secret };
      } catch (error) {
        // The foreign key is on scratchpad and owner together: it is the check that the pad is there and the principal's.
        if (isForeignKeyViolation(error)) throw notFound();
        throw error;
      }
    },

    async revoke(principal, agentTokenId) {
      const { userId } = requireOwner(principal);
      if (!isId('agentToken', agentTokenId)) throw notFound();
      await prisma.agentToken.updateMany({
        where: { id: agentTokenId, ownerId: userId, revokedAt: null },
        data: { revokedAt: now() },
      });
      authentication.forgetUser(userId);
      const agentToken = await find(principal, agentTokenId);
      if (!agentToken) throw notFound();
      return agentToken;
    },
  };
}
