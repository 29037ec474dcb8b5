// Whether an operation was compiled cannot be told from its answer: everything is sent to two services over the same stores, one of
// which compiles every operation at once and one never, and status, headers, data and errors have to be equal.
import { buildSchema, execute, parse, type DocumentNode } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApp, type App } from '../../src/app.js';
import { readConfig } from '../../src/config.js';
import { DomainError } from '../../src/shared/errors.js';
import { createId } from '../../src/shared/ids.js';
import { createLogger } from '../../src/shared/logger.js';
import type { Services } from '../../src/surfaces/graphql/context.js';
import { createCompiledExecution } from '../../src/surfaces/graphql/compiled-execution.js';
import { appendEntry, createScratchpad, createThread, createToken, setContent } from '../support/operations.js';
import { transports, type Listener } from '../support/raw-subscriber.js';
import { administratorSecret, startService, type Service, type Tenant } from '../support/service.js';

let interpreting: Service;
let compiling: App;
let alice: Tenant;
let bob: Tenant;
let pad: string;
let foreignPad: string;
let tokenSecret: string;

const brokenContent = 'break the service';
const breakServices = (services: Services): Services => ({
  ...services,
  scratchpads: {
    ...services.scratchpads,
    appendEntry(principal, scratchpadId, input, origin) {
      if (input.content === brokenContent) throw new TypeError('at db.internal:5432');
      if (input.content === 'too often') throw new DomainError('RATE_LIMITED', 'Wait.', { retryAfterSeconds: 7 });
      if (input.content === 'no entry') return Promise.resolve({ position: 0 } as never);
      if (input.content === 'found by a run') {
        return services.scratchpads.appendEntry(principal, scratchpadId, input, { runId: createId('run') });
      }
      if (input.content === 'odd') return Promise.resolve({ position: 0, entry: { createdAt: 'never' } } as never);
      return services.scratchpads.appendEntry(principal, scratchpadId, input, origin);
    },
  },
});

beforeAll(async () => {
  interpreting = await startService({ usesBeforeCompilation: Infinity, overrideServices: breakServices });
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: interpreting.databaseUrl,
    REDIS_URL: interpreting.redis.url,
    ADMIN_API_KEY: administratorSecret,
    INTROSPECTION: 'true',
  });
  compiling = await createApp(config, {
    logger: createLogger('silent'),
    usesBeforeCompilation: 0,
    overrideServices: breakServices,
  });
  alice = await interpreting.createTenant('Alice');
  bob = await interpreting.createTenant('Bob');
  pad = await createScratchpad(alice.client);
  await createScratchpad(alice.client);
  await setContent(alice.client, pad, 'what is known');
  for (const content of ['one', 'two', 'three']) await appendEntry(alice.client, pad, content);
  foreignPad = await createScratchpad(bob.client);
  tokenSecret = (await createToken(alice.client, pad, 'OBSERVER')).secret;
});
afterAll(async () => {
  await compiling.close();
  await interpreting.close();
});

interface Sent {
  query: string;
  variables?: unknown;
  operationName?: string;
}

/** What differs between two runs of the same: ids, instants, versions, cursors, secrets. Which of them are equal is kept. */
function normalize(text: string): string {
  const names = new Map<string, string>();
  const nameOf = (kind: string) => (value: string) => {
    const known = names.get(value) ?? `<${kind} ${names.size}>`;
    names.set(value, known);
    return known;
  };
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<instant>')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, nameOf('request'))
    .replaceAll(/\b(?:spk|spa)_[\w-]{6,}/g, nameOf('secret'))
    .replaceAll(/\b[a-z]+_[0-9A-HJKMNP-TV-Z]{26}/g, nameOf('id'))
    .replaceAll(/"[\w-]{40,}"/g, nameOf('cursor'))
    .replaceAll(/"\d{16}"/g, nameOf('version'));
}

async function send(url: string, { query, variables, operationName }: Sent, secret: string, accept: string) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, authorization: `Bearer ${secret}` },
    body: JSON.stringify({ query, variables, operationName }),
  });
  const passing = new Set(['date', 'x-request-id', 'content-length']);
  return {
    status: response.status,
    headers: [...response.headers].filter(([name]) => !passing.has(name)),
    body: normalize(await response.text()),
  };
}

const accepts = ['application/json', 'application/graphql-response+json'];

async function expectSameAnswers(sent: Sent, secret: string): Promise<void> {
  for (const accept of accepts) {
    const plain = await send(interpreting.url, sent, secret, accept);
    const compiled = await send(compiling.url, sent, secret, accept);
    expect(compiled).toEqual(plain);
  }
}

const entryFields = 'id content author runId createdAt';
const padFields = `id metaData createdAt updatedAt content { text version updatedAt } entryCount formattedView eventCursor expiresAt
  entries(first: $first, last: $last, after: $after) {
    edges { cursor node { ${entryFields} } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount
  }`;
const readPad = `query Read($id: ID!, $first: Int, $last: Int, $after: String) { scratchpad(id: $id) { ${padFields} thread { id } owner { id name } } }`;
const append = `mutation Append($input: AppendScratchpadEntryInput!) {
  appendScratchpadEntry(input: $input) { entry { ${entryFields} } entryEdge { node { content } } scratchpad { id owner { id } entryCount } }
}`;

const queries: [name: string, sent: () => Sent][] = [
  ['a whole pad', () => ({ query: readPad, variables: { id: pad } })],
  ['its first page', () => ({ query: readPad, variables: { id: pad, first: 2 } })],
  ['its last page', () => ({ query: readPad, variables: { id: pad, last: 1 } })],
  ['no page at all', () => ({ query: readPad, variables: { id: pad, first: 0 } })],
  ['a pad of another tenant', () => ({ query: readPad, variables: { id: foreignPad } })],
  ['a pad that does not exist', () => ({ query: readPad, variables: { id: createId('scratchpad') } })],
  ['an id of another kind', () => ({ query: readPad, variables: { id: alice.userId } })],
  ['a negative page', () => ({ query: readPad, variables: { id: pad, first: -1 } })],
  ['both sizes', () => ({ query: readPad, variables: { id: pad, first: 1, last: 1 } })],
  ['a cursor that is none', () => ({ query: readPad, variables: { id: pad, after: 'none' } })],
  ...[5, true, null, undefined, {}, [], ['x'], 1.5].map((id): [string, () => Sent] => [
    `the id ${JSON.stringify(id)}`,
    () => ({ query: readPad, variables: { id } }),
  ]),
  ...['2', 1.5, 2 ** 31, true, null, [1], {}].map((first): [string, () => Sent] => [
    `a page of ${JSON.stringify(first)}`,
    () => ({ query: readPad, variables: { id: pad, first } }),
  ]),
  ['a variable too much', () => ({ query: readPad, variables: { id: pad, more: 1 } })],
  ['variables that are none', () => ({ query: readPad, variables: 'x' })],
  [
    'the nested page',
    () => ({
      query: `query Page($first: Int, $last: Int, $after: String, $threads: Int = 5) { viewer { id name createdAt
        threads(first: $threads) { totalCount pageInfo { endCursor } edges { cursor node { id metaData scratchpad { ${padFields} } messages { totalCount } runs { totalCount } activeRun { id } } } }
        scratchpads { edges { node { id } } } apiKeys { id name prefix } assistants { edges { node { name } } }
      } }`,
    }),
  ],
  ['anonymous shorthand', () => ({ query: '{ viewer { id } }' })],
  ['an alias twice', () => ({ query: '{ a: viewer { id } b: viewer { name id } }' })],
  [
    'fragments that overlap',
    () => ({
      query: `query ($id: ID!) { scratchpad(id: $id) { ...A ...B content { text } } }
        fragment A on Scratchpad { id content { version } } fragment B on Scratchpad { entryCount content { updatedAt } }`,
      variables: { id: pad },
    }),
  ],
  [
    'the same pages under several names',
    () => ({
      query: `query ($id: ID!) { scratchpad(id: $id) {
        a: entries(first: 1) { edges { node { content } } } b: entries(last: 2) { edges { cursor } totalCount }
        ...Twice entries { pageInfo { hasNextPage } } c: content { text } d: content { version text }
      } } fragment Twice on Scratchpad { entries { edges { node { ...Entry } } } } fragment Entry on ScratchpadEntry { id content }`,
      variables: { id: pad },
    }),
  ],
  [
    'pads on their threads, and what is around them',
    () => ({
      query: `{ viewer { threads { edges { node { id scratchpad { id createdAt } again: scratchpad { ...Around } } } } } }
        fragment Around on Scratchpad { metaData owner { id name } thread { id createdAt scratchpad { updatedAt entryCount } } }`,
    }),
  ],
  [
    'a pad and what is around it',
    () => ({
      query: `query ($id: ID!) { a: scratchpad(id: $id) { id } b: scratchpad(id: $id) { createdAt thread { scratchpad { id } } }
        c: scratchpad(id: $id) { ...Fragment } } fragment Fragment on Scratchpad { metaData content { text } }`,
      variables: { id: pad },
    }),
  ],
  [
    'one of two operations',
    () => ({ query: 'query A { viewer { id } } query B { viewer { name } }', operationName: 'B' }),
  ],
  ['none of two operations', () => ({ query: 'query A { viewer { id } } query B { viewer { name } }' })],
  ['an operation that is not there', () => ({ query: 'query A { viewer { id } }', operationName: 'C' })],
  ['the name of a type', () => ({ query: '{ __typename viewer { __typename id } }' })],
  ['introspection', () => ({ query: '{ __schema { queryType { name } } __type(name: "User") { name } }' })],
  [
    'a node by its id',
    () => ({
      query: `query ($id: ID!) { node(id: $id) { id ... on Scratchpad { entryCount } } }`,
      variables: { id: pad },
    }),
  ],
  ...[true, false].map((yes): [string, () => Sent] => [
    `directives that say ${yes}`,
    () => ({
      query: 'query ($yes: Boolean!) { viewer { id name @include(if: $yes) createdAt @skip(if: $yes) } }',
      variables: { yes },
    }),
  ]),
  ['a field that is not there', () => ({ query: '{ viewer { nothing } }' })],
  ['a document that is none', () => ({ query: '{ viewer {' })],
  [
    'a document that is too deep',
    () => ({ query: `{ viewer ${'{ threads { edges { node '.repeat(8)} ${'}'.repeat(24)} }` }),
  ],
  [
    'an answer that is too large',
    () => ({
      query:
        'query ($n: Int) { viewer { threads(first: $n) { edges { node { scratchpad { entries(first: 100) { edges { node { id } } } } } } } } }',
      variables: { n: 100 },
    }),
  ],
];

const mutations: [name: string, sent: () => Sent | Promise<Sent>][] = [
  ...['found', ' ', 'x'.repeat(70_000), brokenContent, 'too often', 'no entry', 'odd', 'nul \0'].map(
    (content): [string, () => Sent] => [
      `an append of ${content.slice(0, 20)}`,
      () => ({ query: append, variables: { input: { scratchpadId: pad, content } } }),
    ],
  ),
  ['an append elsewhere', () => ({ query: append, variables: { input: { scratchpadId: foreignPad, content: 'x' } } })],
  ...[undefined, null, 'x', {}, { scratchpadId: 'x' }, { scratchpadId: 1, content: 2 }, [{}]].map(
    (input): [string, () => Sent] => [
      `an append of the input ${JSON.stringify(input)}`,
      () => ({ query: append, variables: { input } }),
    ],
  ),
  [
    'a member that the input does not have',
    () => ({ query: append, variables: { input: { scratchpadId: pad, content: 'x', contents: 'y' } } }),
  ],
  [
    'variables inside of an input',
    () => ({
      query: `mutation ($id: ID!, $text: String!) { appendScratchpadEntry(input: { scratchpadId: $id, content: $text }) { entry { content } } }`,
      variables: { id: pad, text: 'inside' },
    }),
  ],
  [
    'an optional variable that is missing',
    () => ({
      query: `mutation ($id: ID!, $text: String = "by default") { appendScratchpadEntry(input: { scratchpadId: $id, content: $text }) { entry { content } } }`,
      variables: { id: pad },
    }),
  ],
  [
    'an optional variable that is null',
    () => ({
      query: `mutation ($id: ID!, $text: String = "by default") { appendScratchpadEntry(input: { scratchpadId: $id, content: $text }) { entry { content } } }`,
      variables: { id: pad, text: null },
    }),
  ],
  [
    'two mutations, the first of which fails',
    () => ({
      query: `mutation ($id: ID!) {
        a: appendScratchpadEntry(input: { scratchpadId: $id, content: " " }) { entry { content } }
        b: appendScratchpadEntry(input: { scratchpadId: $id, content: "second" }) { entry { content } scratchpad { entryCount } }
      }`,
      variables: { id: pad },
    }),
  ],
  [
    'two mutations, the second of which sees the first',
    async () => ({
      query: `mutation ($id: ID!) {
        a: appendScratchpadEntry(input: { scratchpadId: $id, content: "first" }) { scratchpad { entries { edges { node { content } } } } }
        b: setScratchpadContent(input: { scratchpadId: $id, text: "then" }) { content { text } scratchpad { entryCount } }
        c: clearScratchpad(input: { scratchpadId: $id }) { scratchpad { entryCount content { text version } } }
      }`,
      variables: { id: await createScratchpad(alice.client) },
    }),
  ],
  [
    'an object written into the document, with a variable in it',
    async () => ({
      query: `mutation ($id: ID!, $x: String!) { updateScratchpad(input: { scratchpadId: $id, metaData: { a: $x, b: [1, { c: $x }] } }) { scratchpad { metaData } } }`,
      variables: { id: await createScratchpad(alice.client), x: 'value' },
    }),
  ],
  ...['[$tool]', '[$tool, $tool]', '[{ type: "scratchpad" }]', '[{ type: $type }]', '$tools', '$tool'].map(
    (tools): [string, () => Sent] => [
      `the tools ${tools}`,
      () => {
        const declared = [
          ...(tools.includes('$tools') ? ['$tools: [JSONObject!]!'] : []),
          ...(/\$tool\b/.test(tools) ? ['$tool: JSONObject!'] : []),
          ...(tools.includes('$type') ? ['$type: String!'] : []),
        ];
        return {
          query: `mutation ($name: String!, ${declared.join(' ')}) {
            createAssistant(input: { name: $name, instructions: "x", tools: ${tools} }) { assistant { tools hydratedTools } }
          }`,
          variables: {
            name: 'a',
            tools: [{ type: 'scratchpad' }],
            tool: { type: 'scratchpad' },
            type: 'scratchpad',
          },
        };
      },
    ],
  ),
  ...['x', [1], 5, { __proto__x: 1 }, { deep: { er: null } }].map((metaData): [string, () => Sent] => [
    `the metadata ${JSON.stringify(metaData)}`,
    () => ({
      query: 'mutation ($m: JSONObject!) { createThread(input: { metaData: $m }) { thread { metaData } } }',
      variables: { m: metaData },
    }),
  ]),
  ...['2030-01-31T09:30:00.000Z', '2001-01-31T09:30:00.000Z', 'tomorrow', 5].map((expiresAt): [string, () => Sent] => [
    `a key that expires at ${expiresAt}`,
    () => ({
      query: `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret apiKey { id name expiresAt } } }`,
      variables: { input: { name: 'k', expiresAt } },
    }),
  ]),
  ...['WORKER', 'KING', 1].map((role): [string, () => Sent] => [
    `the role ${role}`,
    () => ({
      query: `mutation ($input: CreateAgentTokenInput!) { createAgentToken(input: $input) { agentToken { role name } } }`,
      variables: { input: { scratchpadId: pad, name: 't', role } },
    }),
  ]),
  [
    'a version that is not current',
    () => ({
      query: `mutation ($input: SetScratchpadContentInput!) { setScratchpadContent(input: $input) { content { text } } }`,
      variables: { input: { scratchpadId: pad, text: 'x', expectedVersion: '1' } },
    }),
  ],
  [
    'a pad where there is one',
    async () => {
      const threadId = await createThread(alice.client);
      await createScratchpad(alice.client, threadId);
      return {
        query: `mutation ($input: CreateScratchpadInput!) { createScratchpad(input: $input) { scratchpad { id } } }`,
        variables: { input: { threadId } },
      };
    },
  ],
];

describe('the answer is the same whether it is compiled or not', () => {
  it.each(queries)('for a query: %s', async (_name, sent) => {
    for (const secret of [alice.secret, tokenSecret, administratorSecret, 'spk_nobody-has-this-one']) {
      await expectSameAnswers(sent(), secret);
    }
  });

  it.each(mutations)('for a mutation: %s', async (_name, sent) => {
    for (const secret of [alice.secret, tokenSecret]) {
      const request = await sent();
      const [plain, compiled] = [
        await send(interpreting.url, request, secret, accepts[0]!),
        await send(compiling.url, request, secret, accepts[0]!),
      ].map((answer) => ({ ...answer, body: answer.body.replaceAll(/"entryCount":\d+/g, '"entryCount":0') }));
      expect(compiled).toEqual(plain);
    }
  });
});

describe('what was told before', () => {
  const withoutPauses = async (listener: Listener): Promise<string> => {
    const [next, complete] = await listener.received(2);
    listener.close();
    return normalize(`${next}\n${complete}`);
  };

  it('is told again as long as it holds, to each reader what is meant for it', async () => {
    const id = await createScratchpad(alice.client);
    const token = (await createToken(alice.client, id, 'OBSERVER')).secret;
    const sent = { query: readPad, variables: { id } };
    const changes = [
      () => Promise.resolve(),
      () => appendEntry(alice.client, id, 'found by a run'),
      () => setContent(alice.client, id, 'a "quoted" \\ 漢字 😀 $& plan'),
      () => appendEntry(alice.client, id, 'second'),
      () =>
        alice.client.run(
          'mutation ($input: ClearScratchpadInput!) { clearScratchpad(input: $input) { scratchpad { id } } }',
          { input: { scratchpadId: id } },
        ),
    ];
    for (const change of changes) {
      // By the other process.
      await change();
      for (const secret of [alice.secret, token, alice.secret, token]) {
        await expectSameAnswers(sent, secret);
        for (const listen of Object.values(transports)) {
          const [plain, compiled] = [
            await withoutPauses(await listen(interpreting.url, secret, sent)),
            await withoutPauses(await listen(compiling.url, secret, sent)),
          ];
          expect(compiled).toEqual(plain);
        }
      }
    }
  });
});

const events: [name: string, selection: string][] = [
  [
    'what the event says',
    `cursor operation state replayed expiresAt runId assistantId entry { ${entryFields} } content { text version updatedAt }`,
  ],
  ['the pad, which depends on who asks', 'operation scratchpad { id entryCount owner { id } content { text } }'],
  [
    'the same under several names',
    'a: operation b: entry { content } ...Rest } } fragment Rest on ScratchpadEvent { entry { id } ...on RunEvent { occurredAt',
  ],
  ['what a directive leaves', 'operation cursor @skip(if: true) entry @include(if: true) { content }'],
];

describe('an event is told the same whether it is compiled or not', () => {
  it.each(events)('%s', async (_name, selection) => {
    const id = await createScratchpad(alice.client);
    const token = (await createToken(alice.client, id, 'OBSERVER')).secret;
    const payload = {
      query: `subscription ($id: ID!) { scratchpadEvents(scratchpadId: $id, after: "") { ${selection} } }`,
      variables: { id },
    };
    await appendEntry(alice.client, id, 'found by a run');
    const listeners = await Promise.all(
      [alice.secret, token].flatMap((secret) =>
        Object.values(transports).flatMap((listen) =>
          [interpreting.url, compiling.url].map((url) => listen(url, secret, payload)),
        ),
      ),
    );
    await Promise.all(listeners.map((listener) => listener.received(1)));
    await setContent(alice.client, id, 'a "quoted" 漢字 plan');
    for (let count = 3; count < 6; count += 1) {
      await Promise.all(listeners.map((listener) => listener.received(count - 1)));
      await appendEntry(alice.client, id, `finding ${count}`);
    }
    const told = await Promise.all(
      listeners.map(async (listener) => normalize((await listener.received(5)).join('\n'))),
    );
    for (const listener of listeners) listener.close();
    for (let index = 0; index < told.length; index += 2) expect(told[index + 1]).toEqual(told[index]);
  });
});

describe('compiling', () => {
  const schema = buildSchema('type Query { where(of: String): String }');
  const runner = (uses?: number) => {
    const resolve = (): string => (new Error('where am I').stack ?? '').replaceAll('\\', '/');
    schema.getQueryType()!.getFields()['where']!.resolve = resolve;
    const run = createCompiledExecution({ schema, usesBeforeCompilation: uses });
    const document = parse('query ($of: String) { where(of: $of) }');
    return async (variableValues: Record<string, unknown> = {}) => {
      const { data } = await run({ schema, document, variableValues });
      return String(data?.['where']).includes('graphql-jit') ? 'compiled' : 'interpreted';
    };
  };

  it('begins when an operation has come often enough', async () => {
    const run = runner(2);
    expect([await run(), await run(), await run(), await run()]).toEqual([
      'interpreted',
      'interpreted',
      'compiled',
      'compiled',
    ]);
  });

  it('is forgotten for what comes seldom, where much else is compiled', async () => {
    const resolve = (): string => (new Error('where am I').stack ?? '').replaceAll('\\', '/');
    schema.getQueryType()!.getFields()['where']!.resolve = resolve;
    const run = createCompiledExecution({ schema, usesBeforeCompilation: 1 });
    const wayOf = async (document: DocumentNode): Promise<string> =>
      JSON.stringify(await run({ schema, document })).includes('graphql-jit') ? 'compiled' : 'interpreted';
    const [first, ...others] = Array.from({ length: 100 }, (_, index) =>
      parse(`query Q${index} { ${Array.from({ length: 290 }, (_where, place) => `a${place}: where`).join(' ')} }`),
    );
    expect([await wayOf(first!), await wayOf(first!)]).toEqual(['interpreted', 'compiled']);
    for (const document of [...others, ...others]) await run({ schema, document });
    expect([await wayOf(first!), await wayOf(first!)]).toEqual(['interpreted', 'compiled']);
    expect(await wayOf(others.at(-1)!)).toBe('compiled');
  });

  it('is not done for what fragments make out of little', async () => {
    const nesting = buildSchema('type Query { where: String! node: Node } type Node { where: String! node: Node }');
    nesting.getQueryType()!.getFields()['where']!.resolve = () => new Error('where am I').stack?.replaceAll('\\', '/');
    const wayOf = async (depth: number): Promise<string> => {
      const fragments = Array.from(
        { length: depth },
        (_, index) => `fragment f${index} on Node { a: node { ...f${index + 1} } b: node { ...f${index + 1} } }`,
      );
      const document = parse(`{ where node { ...f0 } } ${fragments.join(' ')} fragment f${depth} on Node { where }`);
      const run = createCompiledExecution({ schema: nesting, usesBeforeCompilation: 0 });
      const told = JSON.stringify(await run({ schema: nesting, document, rootValue: { node: null } }));
      return told.includes('graphql-jit') ? 'compiled' : 'interpreted';
    };
    expect([await wayOf(4), await wayOf(9)]).toEqual(['compiled', 'interpreted']);
  });

  it('is not done for a name that plain objects do not take', async () => {
    const nested = buildSchema('type Query { a: A } type A { x: Int, y: Int }');
    const args = { schema: nested, document: parse('{ a { __proto__: x y } }'), rootValue: { a: { x: 1, y: 2 } } };
    const run = createCompiledExecution({ schema: nested, usesBeforeCompilation: 0 });
    expect(JSON.stringify(await run(args))).toBe('{"data":{"a":{"__proto__":1,"y":2}}}');
  });

  it('leaves an event that breaks the schema to GraphQL.js', async () => {
    const withEvents = buildSchema(
      'type Query { a: Int } type Subscription { told: Told } type Told { must: String!, may: [Int!] }',
    );
    const document = parse('subscription { told { must may } }');
    const rootValue = { told: { must: null, may: [1, null] } };
    const compiled = createCompiledExecution({ schema: withEvents, usesBeforeCompilation: 0 });
    const told = await compiled({ schema: withEvents, document, rootValue });
    expect(JSON.stringify(told)).toBe(JSON.stringify(await execute({ schema: withEvents, document, rootValue })));
    expect(told.errors?.[0]?.message).toContain('Cannot return null');
  });

  it('is not worth it for what is seldom asked', async () => {
    const run = runner();
    expect([await run(), await run(), await run()]).toEqual(['interpreted', 'interpreted', 'interpreted']);
  });
});
