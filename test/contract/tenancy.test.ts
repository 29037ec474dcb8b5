// Nobody reaches what another tenant owns: every field of the schema that takes an id is called with foreign, unknown and wrong ids.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GraphQLSchema } from 'graphql';
import { createId, kindOfId, type IdKind } from '../../src/shared/ids.js';
import { watchRedis, type RedisWatch } from '../support/redis-watch.js';
import { appendEntry, createScratchpad, createThread, setContent } from '../support/operations.js';
import { allFields, disguisedIds, documentsFor, idPaths, readSchema, withValueAt } from '../support/schema-walk.js';
import { administratorSecret, startService, type Service, type Tenant } from '../support/service.js';
import { subscribe, type Subscriber } from '../support/subscriber.js';
import { bearer, wireNames, wires, type WireAnswer, type WireName } from '../support/wire.js';

/** How to call a field that takes an id. */
interface Recipe {
  /** The kinds of things that it is about. */
  kinds: IdKind[];
  /** What else it takes. Several: what must not make a difference for an id that is not one's own. */
  values?: object[];
  /** Not asked on behalf of the administrator: it is what the administrator is for. */
  isAdministrators?: boolean;
  /** A thing that the field answers for, and to whom, when it is not any of the tenant's `kinds` to the tenant. */
  own?: (tenant: World) => Promise<{ id: string; secret?: string }>;
}

const recipes: Record<string, Recipe> = {
  'Query.node': { kinds: ['user', 'apiKey', 'thread', 'message', 'scratchpad'] },
  'Query.thread': { kinds: ['thread'] },
  'Query.scratchpad': { kinds: ['scratchpad'] },
  'Query.scratchpadByThread': { kinds: ['thread'] },
  'Mutation.deleteThread': { kinds: ['thread'], own: async ({ client }) => ({ id: await createThread(client) }) },
  'Mutation.createMessage': {
    kinds: ['thread'],
    values: [{ input: { content: 'an intrusion' } }, { input: { content: ' ' } }],
  },
  'Mutation.createScratchpad': { kinds: ['thread'], own: async ({ client }) => ({ id: await createThread(client) }) },
  'Mutation.updateScratchpad': { kinds: ['scratchpad'], values: [{ input: { metaData: { an: 'intrusion' } } }] },
  'Mutation.setScratchpadContent': {
    kinds: ['scratchpad'],
    values: [
      { input: { text: 'an intrusion' } },
      { input: { text: 'an intrusion', expectedVersion: '1', idempotencyKey: 'set' } },
      { input: { text: 'x'.repeat(2001) } },
    ],
  },
  'Mutation.appendScratchpadEntry': {
    kinds: ['scratchpad'],
    values: [
      { input: { content: 'an intrusion' } },
      // The key that the owner used, with the same input and with another.
      { input: { content: 'alice found', idempotencyKey: 'append' } },
      { input: { content: 'an intrusion', idempotencyKey: 'append' } },
      { input: { content: 'x'.repeat(1001) } },
    ],
  },
  'Mutation.clearScratchpadContent': { kinds: ['scratchpad'] },
  'Mutation.clearScratchpadEntries': { kinds: ['scratchpad'] },
  'Mutation.clearScratchpad': { kinds: ['scratchpad'] },
  'Mutation.deleteScratchpad': {
    kinds: ['scratchpad'],
    own: async ({ client }) => ({ id: await createScratchpad(client) }),
  },
  'Mutation.revokeApiKey': { kinds: ['apiKey'], own: ({ client }) => createKey(client) },
  'Mutation.deleteViewer': {
    kinds: ['user'],
    async own() {
      const { userId, secret } = await service.createTenant('carol');
      return { id: userId, secret };
    },
  },
  'Mutation.deleteUser': {
    kinds: ['user'],
    isAdministrators: true,
    own: async () => ({ id: (await service.createTenant('Nobody')).userId, secret: administratorSecret }),
  },
  'Subscription.scratchpadEvents': {
    kinds: ['scratchpad'],
    values: [{ after: '' }, {}, { after: 'nonsense' }],
    async own({ client }) {
      const id = await createScratchpad(client);
      await appendEntry(client, id, 'a first event');
      return { id };
    },
  },
};

/** How a tenant comes to a connection of its own, with a hole for the arguments. */
const connections: Record<string, (world: World) => string> = {
  'Query.scratchpads': () => 'scratchpads HERE { edges { cursor } }',
  'User.threads': () => 'viewer { threads HERE { edges { cursor } } }',
  'User.scratchpads': () => 'viewer { scratchpads HERE { edges { cursor } } }',
  'Thread.messages': ({ ids }) => `thread(id: "${ids.thread?.[0]}") { messages HERE { edges { cursor } } }`,
  'Scratchpad.entries': ({ ids }) => `scratchpad(id: "${ids.scratchpad?.[0]}") { entries HERE { edges { cursor } } }`,
};

interface World extends Tenant {
  name: string;
  /** At least one thing of each kind that it owns; the first scratchpad hangs on the first thread. */
  ids: Partial<Record<IdKind, string[]>>;
}

let service: Service;
let schema: GraphQLSchema;
let alice: World;
let bob: World;
let redis: RedisWatch | undefined;
let aliceListens: Subscriber | undefined;
let aliceBefore: unknown;

async function createKey(client: Tenant['client']): Promise<{ id: string }> {
  const { createApiKey } = await client.run<{ createApiKey: { apiKey: { id: string } } }>(
    'mutation { createApiKey(input: { name: "second" }) { apiKey { id } } }',
  );
  return createApiKey.apiKey;
}

/** A tenant with something of everything; each of its texts has its name in it. */
async function createWorld(name: string): Promise<World> {
  const tenant = await service.createTenant(name);
  const { client } = tenant;
  const { createThread: first } = await client.run<{ createThread: { thread: { id: string } } }>(
    'mutation ($name: String!) { createThread(input: { metaData: { name: $name } }) { thread { id } } }',
    { name },
  );
  const threads = [first.thread.id, await createThread(client)];
  const { createMessage } = await client.run<{ createMessage: { message: { id: string } } }>(
    'mutation ($id: ID!, $c: String!) { createMessage(input: { threadId: $id, content: $c }) { message { id } } }',
    { id: threads[0], c: `${name} said` },
  );
  const scratchpad = await createScratchpad(client, threads[0]);
  await setContent(client, scratchpad, `${name} planned`, { idempotencyKey: 'set' });
  const { entry } = await appendEntry(client, scratchpad, `${name} found`, 'append');
  return {
    ...tenant,
    name,
    ids: {
      user: [tenant.userId],
      apiKey: [(await createKey(client)).id],
      thread: threads,
      message: [createMessage.message.id],
      scratchpad: [scratchpad],
      entry: [entry.id],
    },
  };
}

const idsOf = (world: World): string[] => Object.values(world.ids).flat();

/** Whether an answer shows anything of the tenant's. */
const shows = (body: string, world: World): boolean =>
  body.includes(`${world.name} `) || idsOf(world).some((id) => body.includes(id));

/** All that the stores hold of a tenant, but when its key was last used. */
async function storedStateOf(world: World): Promise<unknown> {
  const { userId, ids } = world;
  const owned = ['api_keys', 'agent_tokens', 'threads', 'scratchpads'];
  const rows = await Promise.all([
    service.psql(`SELECT * FROM users WHERE id = $1`, [userId]),
    service.psql(`SELECT * FROM purge_tasks WHERE owner_id = $1`, [userId]),
    service.psql(`SELECT * FROM messages WHERE thread_id = ANY($1) ORDER BY sequence_no`, [ids.thread]),
    ...owned.map((table) =>
      service.psql(`SELECT to_jsonb(t) - 'last_used_at' AS row FROM ${table} t WHERE owner_id = $1 ORDER BY id`, [
        userId,
      ]),
    ),
  ]);
  const client = service.redis.client();
  const keys = (await client.keys('*')).filter((key) => idsOf(world).some((id) => key.includes(id))).sort();
  const values = await Promise.all(
    keys.map(async (key) => [key, await client.dumpBuffer(key), await client.pexpiretime(key)]),
  );
  return { rows, values };
}

beforeAll(async () => {
  service = await startService({ environment: { MAX_CONTENT_BYTES: '2000', MAX_ENTRY_BYTES: '1000' } });
  schema = await readSchema((await service.createTenant('Reader')).client);
  [alice, bob] = [await createWorld('alice'), await createWorld('bob')];
  redis = await watchRedis(service.redis);
  const [scratchpadId = ''] = alice.ids.scratchpad ?? [];
  const { url } = service;
  aliceListens = await subscribe({ transport: 'WebSocket', url, secret: alice.secret, scratchpadId, after: '' });
  await aliceListens.received(2);
  aliceBefore = await storedStateOf(alice);
});
afterAll(async () => {
  aliceListens?.close();
  redis?.close();
  await service.close();
});

const wrongKinds = (kinds: readonly IdKind[]): IdKind[] =>
  (['user', 'apiKey', 'agentToken', 'thread', 'message', 'scratchpad', 'entry', 'run'] as const).filter(
    (kind) => !kinds.includes(kind),
  );

/** What is not one's own, by what it is. Nothing of it may be told from the rest. */
function strangeIds({ kinds }: Recipe, caller: World): Map<string, string> {
  const strange = new Map<string, string>();
  for (const kind of kinds) {
    for (const [index, id] of (alice.ids[kind] ?? []).entries()) strange.set(`foreign ${kind} ${index}`, id);
    strange.set(`unknown ${kind}`, createId(kind));
    const [foreign = ''] = alice.ids[kind] ?? [];
    strange.set(`foreign ${kind} in lower case`, foreign.toLowerCase());
    strange.set(`foreign ${kind} and a space`, `${foreign} `);
    strange.set(`foreign ${kind} and NUL`, `${foreign}\u0000`);
  }
  for (const kind of wrongKinds(kinds)) {
    strange.set(`unknown ${kind}`, createId(kind));
    for (const id of alice.ids[kind] ?? []) strange.set(`foreign ${kind}`, id);
    for (const id of caller.ids[kind] ?? []) strange.set(`own ${kind}`, id);
  }
  for (const text of ['', 'nonsense', '*', "' OR 1=1 --", '__proto__', '💥', '\ud800', 'x'.repeat(5000)]) {
    strange.set(`"${text.slice(0, 20)}"`, text);
  }
  return strange;
}

const everyRecipe = Object.entries(recipes);

describe('the walk', () => {
  it('knows every field that takes an id, and every connection', () => {
    const fields = allFields(schema);
    const takeIds = [...fields].filter(([, field]) => idPaths(field).length > 0).map(([name]) => name);
    expect(takeIds.sort()).toEqual(Object.keys(recipes).sort());
    expect(disguisedIds(fields)).toEqual([]);
    for (const [name, field] of fields) expect(idPaths(field).length, name).toBeLessThanOrEqual(1);
    const paged = [...fields].filter(([, field]) =>
      field.args.some(({ name }) => name === 'after' || name === 'before'),
    );
    const pagedNames = paged.map(([name]) => name).filter((name) => !name.startsWith('Subscription.'));
    expect(pagedNames.sort()).toEqual(Object.keys(connections).sort());
  });

  it('has a foreign thing of every type that node finds', () => {
    const node = schema.getType('Node');
    const types = schema.getPossibleTypes(node as never).map((type) => type.name.toLowerCase());
    expect(types.sort()).toEqual((recipes['Query.node']?.kinds ?? []).map((kind) => kind.toLowerCase()).sort());
    for (const kind of recipes['Query.node']?.kinds ?? []) {
      for (const id of alice.ids[kind] ?? ['none']) expect(kindOfId(id)).toBe(kind);
    }
  });
});

describe.each(everyRecipe)('%s', (fieldName, recipe) => {
  const variablesFor = (values: object, id: string): object => {
    const [path = []] = idPaths(allFields(schema).get(fieldName)!);
    return withValueAt(values, path, id);
  };
  const allValues = recipe.values ?? [{}];
  const ask = (wire: WireName, secret: string, document: string, variables: object, untilFirstResult = false) =>
    wires[wire]({ url: service.url, credentials: bearer(secret), document, variables, untilFirstResult });

  it('answers for one’s own id: what is asked below is a real question', async () => {
    const isSubscription = fieldName.startsWith('Subscription.');
    for (const [index, { document, label }] of documentsFor(schema, fieldName).entries()) {
      const kind = recipe.kinds.find((one) => label.toLowerCase().endsWith(` as ${one.toLowerCase()}`));
      const known: { id: string; secret?: string } = { id: bob.ids[kind ?? recipe.kinds[0] ?? 'user']?.[0] ?? '' };
      const { id, secret = bob.secret } = (await recipe.own?.(bob)) ?? known;
      const wire = isSubscription ? 'SSE' : (wireNames[index % wireNames.length] ?? 'HTTP');
      const answer = await ask(wire, secret, document, variablesFor(allValues[0] ?? {}, id), true);
      const [result] = answer.results;
      expect(result?.errors, `${label} ${answer.body}`).toBeUndefined();
      expect(Object.values(result?.data ?? {})[0], label).not.toBeNull();
      expect(shows(answer.body, alice), label).toBe(false);
    }
  });

  it.each(['another tenant', 'the administrator'])(
    'answers %s the same to the byte for foreign, unknown and wrong ids, on every transport',
    async (who) => {
      if (who === 'the administrator' && recipe.isAdministrators) return;
      const caller = who === 'the administrator' ? { ...bob, secret: administratorSecret } : bob;
      for (const { document, label } of documentsFor(schema, fieldName)) {
        for (const values of allValues) {
          for (const wire of wireNames) {
            if (fieldName.startsWith('Subscription.') && wire.startsWith('HTTP')) continue;
            const answers = new Map<string, string[]>();
            for (const [what, id] of strangeIds(recipe, caller)) {
              const answer = await ask(wire, caller.secret, document, variablesFor(values, id));
              const { status, headers } = answer;
              const body = id === '' ? answer.body : answer.body.replaceAll(id, 'ID');
              expect(shows(body, alice), `${label} ${what}: ${body}`).toBe(false);
              const bytes = JSON.stringify({ status, headers, body });
              answers.set(bytes, [...(answers.get(bytes) ?? []), what]);
            }
            expect(Object.fromEntries(answers), `${label} over ${wire}`).toEqual({
              [[...answers.keys()][0] ?? '']: [...strangeIds(recipe, caller).keys()],
            });
          }
        }
      }
    },
  );

  it('takes the same path through the stores for foreign and for unknown ids, and touches no foreign key', async () => {
    const wire = fieldName.startsWith('Subscription.') ? 'SSE' : 'HTTP';
    for (const { document, label } of documentsFor(schema, fieldName)) {
      for (const values of allValues) {
        for (const kind of recipe.kinds) {
          const paths = new Map<string, string>();
          for (const id of [...(alice.ids[kind] ?? []), createId(kind)]) {
            paths.set(id, await pathOf(() => ask(wire, bob.secret, document, variablesFor(values, id)), id));
          }
          expect(new Set(paths.values()).size, `${label} ${JSON.stringify([...paths])}`).toBe(1);
        }
      }
    }
  });
});

/**
 * What a request costs: the number of SQL statements, and the commands that Redis got. Background work only ever adds to it,
 * so the least of three is the request's own.
 */
async function pathOf(request: () => Promise<unknown>, id: string): Promise<string> {
  const attempts: { statements: number; commands: string[] }[] = [];
  for (let attempt = 0; attempt < 3; attempt += 1) {
    // The caller's key is in the cache.
    await bob.client.run('{ __typename }');
    service.takeStatementCount();
    await redis?.take();
    await request();
    const statements = service.takeStatementCount();
    const commands = (await redis?.take()) ?? [];
    for (const owned of idsOf(alice)) expect(commands.join('\n')).not.toContain(`:${owned}`);
    attempts.push({ statements, commands: commands.map((command) => command.replaceAll(id, 'ID')) });
  }
  const fewest = attempts.toSorted((a, b) => a.statements - b.statements || a.commands.length - b.commands.length)[0];
  return JSON.stringify(fewest);
}

describe('what a tenant reaches from what it owns', () => {
  const roots = ['Query.viewer', 'Query.scratchpads', 'Query.node', 'Query.thread', 'Query.scratchpad'];

  it('shows everything of its own, and nothing of anybody else’s', async () => {
    for (const fieldName of roots) {
      for (const { document, label } of documentsFor(schema, fieldName)) {
        const kind = recipes[fieldName]?.kinds.find((one) => label.toLowerCase().endsWith(one.toLowerCase()));
        for (const [asker, other] of [
          [alice, bob],
          [bob, alice],
        ] as const) {
          const id = asker.ids[kind ?? 'thread']?.[0];
          const credentials = bearer(asker.secret);
          const answer = await wires.HTTP({ url: service.url, credentials, document, variables: { id, first: 5 } });
          expect(answer.results[0]?.errors, label).toBeUndefined();
          expect([shows(answer.body, asker), shows(answer.body, other)], `${label} ${answer.body}`).toEqual([
            true,
            false,
          ]);
        }
      }
    }
  });

  it.each(Object.keys(connections))('pages through %s with cursors of its own only', async (name) => {
    const read = async (asker: World, page: object): Promise<WireAnswer> => {
      const path = connections[name]?.(asker).replace('HERE', '(after: $after, before: $before)');
      const document = `query ($after: String, $before: String) { ${path} }`;
      return wires.HTTP({ url: service.url, credentials: bearer(asker.secret), document, variables: page });
    };
    const cursors = (answer: WireAnswer): string[] =>
      [...answer.body.matchAll(/"cursor":"([^"]+)"/g)].map((match) => match[1] ?? '');
    const [foreign] = cursors(await read(alice, {}));
    const [own] = cursors(await read(bob, {}));
    expect(cursors(await read(bob, { before: own })).concat(cursors(await read(bob, { after: own })))).not.toContain(
      own,
    );
    for (const argument of ['after', 'before']) {
      const answers = [
        await read(bob, { [argument]: foreign }),
        await read(bob, { [argument]: 'nonsense' }),
        await read(bob, { [argument]: Buffer.from('["x","y","z"]').toString('base64url') }),
      ];
      expect(new Set(answers.map((answer) => answer.body)).size).toBe(1);
      expect(answers[0]?.results[0]?.errors?.[0]?.extensions?.code).toBe('BAD_USER_INPUT');
    }
  });
});

it('has changed nothing of the other tenant’s, and told it nothing', async () => {
  expect(await storedStateOf(alice)).toEqual(aliceBefore);
  expect(aliceListens?.events).toHaveLength(2);
  expect(aliceListens?.isOver).toBe(false);
});
