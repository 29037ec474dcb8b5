// What an agent token may do: with its own scratchpad what its role allows, and with everything else nothing.
import { DomainError, notFound } from '../shared/errors.js';
import { requireTenant, type AgentPrincipal, type AgentRole, type Principal } from './principal.js';

/** READ includes subscribing. MANAGE is all that is the owner's alone: metadata, clearing, deleting, tokens. */
export type PadAction = 'READ' | 'REPLACE' | 'APPEND' | 'MANAGE';

const allowedActions: Record<AgentRole, readonly PadAction[]> = {
  SUPERVISOR: ['READ', 'REPLACE', 'APPEND'],
  WORKER: ['READ', 'APPEND'],
  OBSERVER: ['READ'],
};

const described: Record<PadAction, string> = {
  READ: 'read it',
  REPLACE: 'replace its content',
  APPEND: 'append to it',
  MANAGE: 'manage it',
};

export const roleAllows = (role: AgentRole, action: PadAction): boolean => allowedActions[role].includes(action);

function forbidden({ role }: AgentPrincipal, action: PadAction): DomainError {
  const message =
    action === 'MANAGE'
      ? "Only the scratchpad's owner changes its metadata, clears or deletes it, or makes tokens for it: use a user's API key."
      : `This token's role, ${role}, does not allow to ${described[action]}; it may ${allowedActions[role]
          .map((allowed) => described[allowed])
          .join(', ')}.`;
  return new DomainError('FORBIDDEN', message);
}

/**
 * The owner to look for when the principal wants to do this to a scratchpad; whether that owner has it remains to be seen.
 * @throws DomainError for an agent: NOT_FOUND when it is not its own scratchpad, FORBIDDEN when its role does not allow the action
 */
export function ownerForPad(principal: Principal, scratchpadId: string, action: PadAction): string {
  const tenant = requireTenant(principal);
  if (tenant.kind === 'user') return tenant.userId;
  if (tenant.scratchpadId !== scratchpadId) throw notFound();
  if (!roleAllows(tenant.role, action)) throw forbidden(tenant, action);
  return tenant.ownerId;
}

/** Whether a principal sees what its scratchpad belongs to and hangs on: its owner, its thread, its tokens, the runs that write to it. */
export const seesAroundPad = (principal: Principal): boolean => principal.kind !== 'agent';
