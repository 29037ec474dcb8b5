// An agent token against everything that its owner has: every root field of the schema is called with it, and only its own scratchpad answers.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GraphQLSchema } from 'graphql';
import { createId } from '../../src/shared/ids.js';
import {
  appendEntry,
  createAssistant,
  createScratchpad,
  createThread,
  createToken,
  setContent,
  startResearch,
  type AgentRole,
} from '../support/operations.js';
import { createRecordingRunRuntime } from '../support/run-runtime.js';
import { allFields, documentsFor, idPaths, readSchema, withValueAt } from '../support/schema-walk.js';
import { startService, type Service, type Tenant } from '../support/service.js';
import { bearer, wires, wireNames, type WireName } from '../support/wire.js';

/** What each root field takes beside ids. */
const values: Record<string, object> = {
  'Mutation.createMessage': { input: { content: 'an intrusion' } },
  'Mutation.updateThread': { input: { metaData: { an: 'intrusion' } } },
  'Mutation.updateScratchpad': { input: { metaData: { an: 'intrusion' } } },
  'Mutation.setScratchpadContent': { input: { text: 'an intrusion' } },
  'Mutation.appendScratchpadEntry': { input: { content: 'an intrusion' } },
  'Mutation.createAgentToken': { input: { name: 'an intruder', role: 'SUPERVISOR' } },
  'Mutation.startRun': { input: { message: 'an intrusion' } },
  'Mutation.startResearch': { input: { question: 'an intrusion' } },
  'Subscription.scratchpadEvents': { after: '' },
  'Subscription.researchStatus': { after: '' },
  'Subscription.runEvents': { after: '' },
};

/** What makes something out of nothing. */
const creations: Record<string, { input: object }> = {
  'Mutation.createThread': { input: {} },
  'Mutation.createApiKey': { input: { name: 'an intruder' } },
  'Mutation.createUser': { input: { name: 'an intruder' } },
  'Mutation.createAssistant': { input: { name: 'an intruder', instructions: 'x', tools: [] } },
};
const withoutIds = ['Query.viewer', 'Query.scratchpads', ...Object.keys(creations)];

/** What is the administrator's alone, or is about the caller itself, is FORBIDDEN whatever the id. */
const forbiddenWhateverId = new Set(['Mutation.deleteUser', 'Mutation.deleteViewer']);

/** What a role may do with its own pad, beside what queries and subscriptions tell. */
const permitted: Record<AgentRole, string[]> = {
  SUPERVISOR: ['Mutation.setScratchpadContent', 'Mutation.appendScratchpadEntry'],
  WORKER: ['Mutation.appendScratchpadEntry'],
  OBSERVER: [],
};
const ownPadQueries = ['Query.node', 'Query.scratchpad', 'Subscription.scratchpadEvents'];
const ownPadMutations = [
  'Mutation.updateScratchpad',
  'Mutation.setScratchpadContent',
  'Mutation.appendScratchpadEntry',
  'Mutation.clearScratchpadContent',
  'Mutation.clearScratchpadEntries',
  'Mutation.clearScratchpad',
  'Mutation.deleteScratchpad',
  'Mutation.createAgentToken',
];

let service: Service;
let schema: GraphQLSchema;
let alice: Tenant;
let padId: string;
/** Everything of the owner's, by what it is, but for the pad. */
let owned: Record<string, string>;
const tokens = {} as Record<AgentRole, { id: string; secret: string }>;
const roles = Object.keys(permitted) as AgentRole[];

beforeAll(async () => {
  service = await startService({
    runRuntime: createRecordingRunRuntime(),
    environment: { LLM_BASE_URL: 'http://127.0.0.1:9/v1', LLM_MODEL: 'house-model' },
  });
  alice = await service.createTenant('alice');
  const { client } = alice;
  schema = await readSchema(client);
  const thread = await createThread(client);
  padId = await createScratchpad(client, thread);
  const otherPad = await createScratchpad(client);
  await setContent(client, padId, 'the plan');
  await appendEntry(client, padId, 'a finding');
  await setContent(client, otherPad, 'alice planned something else');
  const { entry } = await appendEntry(client, otherPad, 'alice found something else');
  for (const role of roles) tokens[role] = await createToken(client, padId, role);
  const { createMessage } = await client.run<{ createMessage: { message: { id: string } } }>(
    'mutation ($id: ID!) { createMessage(input: { threadId: $id, content: "alice said" }) { message { id } } }',
    { id: thread },
  );
  const { viewer } = await client.run<{ viewer: { apiKeys: { id: string }[] } }>('{ viewer { apiKeys { id } } }');
  owned = {
    user: alice.userId,
    'API key': viewer.apiKeys[0]?.id ?? '',
    'its own token': tokens.SUPERVISOR.id,
    'another token': (await createToken(client, otherPad)).id,
    'the thread of its pad': thread,
    'another thread': await createThread(client),
    message: createMessage.message.id,
    'another pad': otherPad,
    'an entry of another pad': entry.id,
    assistant: await createAssistant(client),
    run: await startResearch(client, thread),
  };
});
afterAll(() => service.close());

const rootFields = (): string[] =>
  [...allFields(schema).keys()].filter((name) => /^(Query|Mutation|Subscription)\./.test(name));
const takingIds = (): string[] => rootFields().filter((name) => idPaths(allFields(schema).get(name)!).length > 0);
const wiresFor = (fieldName: string): WireName[] =>
  fieldName.startsWith('Subscription.') ? ['SSE', 'WebSocket'] : wireNames;

const variablesFor = (fieldName: string, id: string): object =>
  idPaths(allFields(schema).get(fieldName)!).reduce((all, path) => withValueAt(all, path, id), values[fieldName] ?? {});

interface Ask {
  fieldName: string;
  role: AgentRole;
  variables: object;
  wire?: WireName;
}

async function ask({ fieldName, role, variables, wire = fieldName.startsWith('Subscription.') ? 'SSE' : 'HTTP' }: Ask) {
  const answers = [];
  for (const { document, label } of documentsFor(schema, fieldName)) {
    const credentials = bearer(tokens[role].secret);
    const answer = await wires[wire]({ url: service.url, credentials, document, variables, untilFirstResult: true });
    answers.push({ ...answer, label });
  }
  return answers;
}

/** What an answer shows of the owner's that is none of the agent's business. */
const shown = (body: string): string[] =>
  Object.entries(owned)
    .filter(([, id]) => body.includes(id))
    .map(([what]) => what)
    .concat(/alice (planned|found|said)/.test(body) ? ['a text'] : []);

it('knows every root field', () => {
  expect(
    rootFields()
      .filter((name) => !takingIds().includes(name))
      .sort(),
  ).toEqual(withoutIds.toSorted());
  const known = [...takingIds(), ...withoutIds];
  for (const name of [...Object.keys(values), ...ownPadQueries, ...ownPadMutations]) expect(known).toContain(name);
});

describe.each(roles)('%s', (role) => {
  it('is answered for everything of its owner’s as for what does not exist, on every transport', async () => {
    for (const fieldName of takingIds()) {
      const strange = Object.entries(owned).concat([
        ['an unknown pad', createId('scratchpad')],
        ['an unknown thread', createId('thread')],
        ['an unknown run', createId('run')],
        ['its own pad in lower case', padId.toLowerCase()],
        ['nonsense', 'nonsense'],
      ]);
      for (const wire of wiresFor(fieldName)) {
        const answers = new Map<string, string[]>();
        for (const [what, id] of strange) {
          for (const { label, status, body, results } of await ask({
            fieldName,
            role,
            variables: variablesFor(fieldName, id),
            wire,
          })) {
            expect(shown(body.replaceAll(id, 'ID')), `${label} for ${what}: ${body}`).toEqual([]);
            const bytes = JSON.stringify({ label, status, body: body.replaceAll(id, 'ID') });
            answers.set(bytes, [...(answers.get(bytes) ?? []), what]);
            const code = results[0]?.errors?.[0]?.extensions?.code;
            const expected = fieldName.startsWith('Query.')
              ? undefined
              : forbiddenWhateverId.has(fieldName)
                ? 'FORBIDDEN'
                : 'NOT_FOUND';
            expect(code, `${label} for ${what}: ${body}`).toBe(expected);
          }
        }
        for (const [bytes, whats] of answers) expect(whats, bytes).toEqual(strange.map(([what]) => what));
      }
    }
  });

  it('may not do what names nothing', async () => {
    for (const [fieldName, { input }] of Object.entries(creations)) {
      for (const { body, results } of await ask({ fieldName, role, variables: { input } })) {
        expect(shown(body), body).toEqual([]);
        expect(results[0]?.errors?.[0]?.extensions?.code, body).toBe('FORBIDDEN');
      }
    }
  });

  it('is nobody, and has one scratchpad', async () => {
    const client = service.clientFor(tokens[role].secret);
    expect(await client.run('{ viewer { id } }')).toEqual({ viewer: null });
    const [{ body, results } = { body: '', results: [] }] = await ask({
      fieldName: 'Query.scratchpads',
      role,
      variables: { first: 5 },
    });
    expect(results).toMatchObject([{ data: { scratchpads: { totalCount: 1, edges: [{ node: { id: padId } }] } } }]);
    const [, cursor = ''] = /"cursor":"([^"]+)"/.exec(body) ?? [];
    const named = Buffer.from(cursor, 'base64url').toString('utf8');
    expect(shown(body + named.replaceAll(tokens[role].id, ''))).toEqual([]);
  });

  it('sees its own pad whole, and nothing around it', async () => {
    for (const fieldName of ownPadQueries) {
      const answers = await ask({ fieldName, role, variables: variablesFor(fieldName, padId) });
      for (const { label, body, results } of answers) {
        if (fieldName === 'Query.node' && !label.endsWith(' Scratchpad')) continue;
        expect(results[0]?.errors, body).toBeUndefined();
        expect(body).toContain('the plan');
        expect(shown(body), label).toEqual([]);
      }
    }
    const { scratchpad } = await service
      .clientFor(tokens[role].secret)
      .run<{ scratchpad: object }>(
        'query ($id: ID!) { scratchpad(id: $id) { owner { id } thread { id } agentTokens { id } entryCount formattedView } }',
        { id: padId },
      );
    expect(scratchpad).toMatchObject({ owner: null, thread: null, agentTokens: [] });
  });

  it('does with its own pad what its role allows, and is told that the rest is forbidden', async () => {
    for (const fieldName of ownPadMutations) {
      for (const { body, results } of await ask({ fieldName, role, variables: variablesFor(fieldName, padId) })) {
        expect(shown(body)).toEqual([]);
        const code = results[0]?.errors?.[0]?.extensions?.code;
        expect(code, `${fieldName} ${body}`).toBe(permitted[role].includes(fieldName) ? undefined : 'FORBIDDEN');
      }
    }
    const client = service.clientFor(tokens[role].secret);
    const { node } = await client.run<{ node: object }>('query ($id: ID!) { node(id: $id) { __typename id } }', {
      id: padId,
    });
    expect(node).toEqual({ __typename: 'Scratchpad', id: padId });
    await setContent(alice.client, padId, 'the plan');
  });
});
