// Who is asking. Made by authentication alone; every service method takes one first.
import { DomainError } from '../shared/errors.js';

/** A tenant, authenticated with one of its API keys. */
export interface UserPrincipal {
  kind: 'user';
  userId: string;
  /** The key it came with, so that a revocation ends what was opened with it. */
  apiKeyId: string;
}

/** May create and delete users, and nothing else. */
export interface AdministratorPrincipal {
  kind: 'administrator';
}

export type Principal = UserPrincipal | AdministratorPrincipal;

/** The tenant behind a principal. @throws DomainError FORBIDDEN for one that has no data of its own */
export function requireUser(principal: Principal): UserPrincipal {
  if (principal.kind === 'user') return principal;
  throw new DomainError('FORBIDDEN', "The administrator does not act on tenants' data: use a user's API key.");
}

/** @throws DomainError FORBIDDEN for everybody else */
export function requireAdministrator(principal: Principal): AdministratorPrincipal {
  if (principal.kind === 'administrator') return principal;
  throw new DomainError('FORBIDDEN', 'Only the administrator may do this: use the key in ADMIN_API_KEY.');
}
