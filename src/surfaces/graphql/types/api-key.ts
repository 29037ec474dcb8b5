// API keys as GraphQL sees them: never the secret, but for the one answer that makes it.
import { requireUser } from '../../../identity/principal.js';
import type { Builder } from '../builder.js';
import { found } from '../found.js';
import type { NodeRef } from './node.js';
import type { UserRef } from './user.js';

export function addApiKey(builder: Builder, node: NodeRef, user: UserRef): void {
  const apiKey = builder.prismaObject('ApiKey', {
    description: 'An API key as it is shown after its creation: never the secret, only its recognisable prefix.',
    interfaces: [node],
    select: { id: true },
    fields: (t) => ({
      id: t.exposeID('id'),
      name: t.exposeString('name'),
      prefix: t.exposeString('prefix'),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
      expiresAt: t.expose('expiresAt', { type: 'DateTime', nullable: true }),
      lastUsedAt: t.expose('lastUsedAt', { type: 'DateTime', nullable: true }),
      revokedAt: t.expose('revokedAt', { type: 'DateTime', nullable: true }),
    }),
  });

  builder.prismaObjectField(user, 'apiKeys', (t) =>
    t.field({
      type: [apiKey],
      description: 'In the order of their creation, revoked and expired ones included.',
      select: (_args, _context, nestedSelection) => ({ apiKeys: nestedSelection({ orderBy: { id: 'asc' } }) }),
      resolve: ({ apiKeys }, _args, { principal }) => {
        requireUser(principal);
        return apiKeys;
      },
    }),
  );

  const payloadWithSecret = builder
    .objectRef<{ apiKey: { id: string }; secret: string }>('CreateApiKeyPayload')
    .implement({
      description: 'secret is shown this once and stored only as a hash.',
      fields: (t) => ({
        apiKey: t.prismaField({
          type: apiKey,
          resolve: (query, payload, _args, { services, principal }) =>
            found(services.apiKeys.find(principal, payload.apiKey.id, query)),
        }),
        secret: t.exposeString('secret'),
      }),
    });
  const createApiKeyInput = builder.inputType('CreateApiKeyInput', {
    fields: (t) => ({ name: t.string({ required: true }), expiresAt: t.field({ type: 'DateTime' }) }),
  });
  builder.mutationField('createApiKey', (t) =>
    t.field({
      type: payloadWithSecret,
      args: { input: t.arg({ type: createApiKeyInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) => services.apiKeys.create(principal, input),
    }),
  );

  const revokePayload = builder.objectRef<{ id: string }>('RevokeApiKeyPayload').implement({
    fields: (t) => ({
      apiKey: t.prismaField({
        type: apiKey,
        resolve: (query, { id }, _args, { services, principal }) => found(services.apiKeys.find(principal, id, query)),
      }),
    }),
  });
  const revokeApiKeyInput = builder.inputType('RevokeApiKeyInput', {
    fields: (t) => ({ apiKeyId: t.id({ required: true }) }),
  });
  builder.mutationField('revokeApiKey', (t) =>
    t.field({
      type: revokePayload,
      description: 'Takes effect within 2 s everywhere and ends the subscriptions that were opened with the key.',
      args: { input: t.arg({ type: revokeApiKeyInput, required: true }) },
      resolve: (_root, { input }, { services, principal }) => services.apiKeys.revoke(principal, input.apiKeyId),
    }),
  );
}
