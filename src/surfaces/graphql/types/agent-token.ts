// Agent tokens as GraphQL sees them: made and listed by a scratchpad's owner, and never their secret, but for the one answer that makes it.
import { seesAroundPad } from '../../../identity/agent-access.js';
import type { Builder } from '../builder.js';
import { found } from '../found.js';
import type { NodeRef } from './node.js';
import type { ScratchpadRef } from './scratchpad.js';

export function addAgentToken(builder: Builder, node: NodeRef, scratchpad: ScratchpadRef): void {
  const role = builder.enumType('AgentRole', {
    description: 'What an agent holding a token may do with its one scratchpad.',
    values: {
      SUPERVISOR: { description: 'read, replace the content, append' },
      WORKER: { description: 'read, append' },
      OBSERVER: { description: 'read' },
    },
  });
  const agentToken = builder.prismaObject('AgentToken', {
    description: "A credential for one agent and one scratchpad: it reaches nothing else of its owner's.",
    interfaces: [node],
    select: { id: true },
    fields: (t) => ({
      id: t.exposeID('id'),
      name: t.exposeString('name', { description: 'The author of the entries that are appended with it.' }),
      role: t.expose('role', { type: role }),
      prefix: t.exposeString('prefix'),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
      expiresAt: t.expose('expiresAt', { type: 'DateTime', nullable: true }),
      lastUsedAt: t.expose('lastUsedAt', { type: 'DateTime', nullable: true }),
      revokedAt: t.expose('revokedAt', { type: 'DateTime', nullable: true }),
    }),
  });

  builder.prismaObjectField(scratchpad, 'agentTokens', (t) =>
    t.field({
      type: [agentToken],
      description:
        'In the order of their creation, revoked and expired ones included. Empty for an agent token, which sees the pad and nothing around it.',
      select: (_args, _context, nestedSelection) => ({ agentTokens: nestedSelection({ orderBy: { id: 'asc' } }) }),
      resolve: ({ agentTokens }, _args, { principal }) => (seesAroundPad(principal) ? agentTokens : []),
    }),
  );

  const createPayload = builder
    .objectRef<{ agentToken: { id: string }; secret: string }>('CreateAgentTokenPayload')
    .implement({
      description: 'secret is shown this once and stored only as a hash.',
      fields: (t) => ({
        agentToken: t.prismaField({
          type: agentToken,
          resolve: (query, payload, _args, { services, principal }) =>
            found(services.agentTokens.find(principal, payload.agentToken.id, query)),
        }),
        secret: t.exposeString('secret'),
      }),
    });
  const createInput = builder.inputType('CreateAgentTokenInput', {
    fields: (t) => ({
      scratchpadId: t.id({ required: true }),
      name: t.string({ required: true }),
      role: t.field({ type: role, required: true }),
      expiresAt: t.field({ type: 'DateTime' }),
    }),
  });
  builder.mutationField('createAgentToken', (t) =>
    t.field({
      type: createPayload,
      args: { input: t.arg({ type: createInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) => services.agentTokens.create(principal, input),
    }),
  );

  const revokePayload = builder.objectRef<{ id: string }>('RevokeAgentTokenPayload').implement({
    fields: (t) => ({
      agentToken: t.prismaField({
        type: agentToken,
        resolve: (query, { id }, _args, { services, principal }) =>
          found(services.agentTokens.find(principal, id, query)),
      }),
    }),
  });
  const revokeInput = builder.inputType('RevokeAgentTokenInput', {
    fields: (t) => ({ agentTokenId: t.id({ required: true }) }),
  });
  builder.mutationField('revokeAgentToken', (t) =>
    t.field({
      type: revokePayload,
      description: 'Takes effect within 2 s everywhere and ends the subscriptions that were opened with the token.',
      args: { input: t.arg({ type: revokeInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) =>
        services.agentTokens.revoke(principal, input.agentTokenId),
    }),
  );
}
