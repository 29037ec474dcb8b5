// Both kinds of credentials as authentication sees them: API keys of users, and agent tokens of scratchpads.
import type { PrismaClient } from '../generated/prisma/client.js';
import { isId } from '../shared/ids.js';
import type { AgentPrincipal, Principal, UserPrincipal } from './principal.js';
import { agentTokenPrefix, hashSecret } from './secrets.js';

/** Until when a credential is good. */
export interface CredentialTerm {
  id: string;
  expiresAt: Date | null;
  revokedAt: Date | null;
}

export interface Credential extends CredentialTerm {
  principal: UserPrincipal | AgentPrincipal;
}

export interface CredentialRows {
  /** One SQL statement, whatever kind it is. */
  find(secret: string): Promise<Credential | null>;
  /** Of those among `ids` that are still there. */
  termsOf(ids: readonly string[]): Promise<CredentialTerm[]>;
  noteUse(id: string, lastUsedAt: Date): Promise<void>;
}

/** The credential behind a principal; undefined for the administrator, whose key is no row. */
export function credentialIdOf(principal: Principal): string | undefined {
  if (principal.kind === 'administrator') return undefined;
  return principal.kind === 'user' ? principal.apiKeyId : principal.tokenId;
}

const term = { id: true, expiresAt: true, revokedAt: true } as const;

export function createCredentialRows(prisma: Pick<PrismaClient, 'apiKey' | 'agentToken'>): CredentialRows {
  async function findAgentToken(secretHash: string): Promise<Credential | null> {
    const token = await prisma.agentToken.findUnique({
      where: { secretHash },
      select: { ...term, name: true, role: true, scratchpadId: true, ownerId: true },
    });
    if (!token) return null;
    const { id, expiresAt, revokedAt, ...rest } = token;
    return { id, expiresAt, revokedAt, principal: { kind: 'agent', tokenId: id, ...rest } };
  }

  async function findApiKey(secretHash: string): Promise<Credential | null> {
    const key = await prisma.apiKey.findUnique({ where: { secretHash }, select: { ...term, ownerId: true } });
    if (!key) return null;
    const { ownerId, ...rest } = key;
    return { ...rest, principal: { kind: 'user', userId: ownerId, apiKeyId: key.id } };
  }

  return {
    find(secret) {
      const secretHash = hashSecret(secret);
      return secret.startsWith(agentTokenPrefix) ? findAgentToken(secretHash) : findApiKey(secretHash);
    },

    async termsOf(ids) {
      const tokenIds = ids.filter((id) => isId('agentToken', id));
      const keyIds = ids.filter((id) => !isId('agentToken', id));
      const [keys, tokens] = await Promise.all([
        keyIds.length > 0 ? prisma.apiKey.findMany({ where: { id: { in: keyIds } }, select: term }) : [],
        tokenIds.length > 0 ? prisma.agentToken.findMany({ where: { id: { in: tokenIds } }, select: term }) : [],
      ]);
      return [...keys, ...tokens];
    },

    async noteUse(id, lastUsedAt) {
      const change = { where: { id }, data: { lastUsedAt } };
      if (isId('agentToken', id)) await prisma.agentToken.updateMany(change);
      else await prisma.apiKey.updateMany(change);
    },
  };
}
