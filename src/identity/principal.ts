// Who is asking. Made by authentication alone; every service method takes one first.
import { DomainError, notFound } from '../shared/errors.js';

/** A tenant, authenticated with one of its API keys. */
export interface UserPrincipal {
  kind: 'user';
  userId: string;
  /** The key it came with, so that a revocation ends what was opened with it. */
  apiKeyId: string;
}

export const agentRoles = ['SUPERVISOR', 'WORKER', 'OBSERVER'] as const;
/** What an agent may do with its scratchpad; see agent-access.ts. */
export type AgentRole = (typeof agentRoles)[number];

/** An agent, authenticated with a token for one scratchpad: it reaches that scratchpad and nothing else of its owner's. */
export interface AgentPrincipal {
  kind: 'agent';
  tokenId: string;
  /** The token's name: the author of what it appends. */
  name: string;
  role: AgentRole;
  scratchpadId: string;
  /** For addressing the scratchpad; never shown to the agent. */
  ownerId: string;
}

/** May create and delete users, and nothing else. */
export interface AdministratorPrincipal {
  kind: 'administrator';
}

export type Principal = UserPrincipal | AgentPrincipal | AdministratorPrincipal;

/** A user, or an agent of one. @throws DomainError FORBIDDEN for the administrator, who has no data of its own */
export function requireTenant(principal: Principal): UserPrincipal | AgentPrincipal {
  if (principal.kind !== 'administrator') return principal;
  throw new DomainError('FORBIDDEN', "The administrator does not act on tenants' data: use a user's API key.");
}

/** For what is about no particular thing: creating, listing, counting. @throws DomainError FORBIDDEN for everybody but a user */
export function requireUser(principal: Principal): UserPrincipal {
  const tenant = requireTenant(principal);
  if (tenant.kind === 'user') return tenant;
  throw new DomainError(
    'FORBIDDEN',
    "An agent token is for its one scratchpad and nothing else: use a user's API key.",
  );
}

/**
 * For what is done to one thing that is no scratchpad: for an agent there is no such thing, whatever its id.
 * @throws DomainError NOT_FOUND for an agent, FORBIDDEN for the administrator
 */
export function requireOwner(principal: Principal): UserPrincipal {
  const tenant = requireTenant(principal);
  if (tenant.kind === 'user') return tenant;
  throw notFound();
}

/** The same for a look-up: null for an agent, who finds nothing. @throws DomainError FORBIDDEN for the administrator */
export function findOwner(principal: Principal): UserPrincipal | null {
  const tenant = requireTenant(principal);
  return tenant.kind === 'user' ? tenant : null;
}

/** @throws DomainError FORBIDDEN for everybody else */
export function requireAdministrator(principal: Principal): AdministratorPrincipal {
  if (principal.kind === 'administrator') return principal;
  throw new DomainError('FORBIDDEN', 'Only the administrator may do this: use the key in ADMIN_API_KEY.');
}
