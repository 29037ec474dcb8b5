// Which documents are refused before anything is executed, and that all transports refuse the same.
import { getIntrospectionQuery, type IntrospectionQuery } from 'graphql';
import { createClient } from 'graphql-sse';
import { createClient as createWebSocketClient } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { hasMoreComments } from '../../../src/surfaces/graphql/guard-rails.js';
import { aliceSecret, startToyService, type ToyBody, type ToyService } from './toy-service.js';

let open: ToyService;
let closed: ToyService;
beforeAll(async () => {
  open = await startToyService({ http: { maxBodyBytes: 9_000_000 }, graphql: { maxMessageBytes: 9_000_000 } });
  closed = await startToyService({ graphql: { introspection: false } });
});
afterAll(() => Promise.all([open.close(), closed.close()]));

type Answer = { message: string; code: unknown }[] | undefined;
const summary = (errors: ToyBody['errors']): Answer =>
  errors?.map(({ message, extensions }) => ({ message, code: extensions?.code }));

async function overHttp(service: ToyService, query: string, variables?: Record<string, unknown>): Promise<Answer> {
  return summary((await service.post(query, { variables })).body.errors);
}

async function overSse(service: ToyService, query: string, variables?: Record<string, unknown>): Promise<Answer> {
  const client = createClient({
    url: service.graphqlUrl,
    headers: { authorization: `Bearer ${aliceSecret}` },
    retryAttempts: 0,
  });
  let errors: ToyBody['errors'];
  for await (const result of client.iterate({ query, variables })) errors = result.errors as ToyBody['errors'];
  client.dispose();
  return summary(errors);
}

async function overWebSocket(service: ToyService, query: string, variables?: Record<string, unknown>): Promise<Answer> {
  const client = createWebSocketClient({
    url: service.wsUrl,
    webSocketImpl: WebSocket,
    connectionParams: { Authorization: `Bearer ${aliceSecret}` },
    retryAttempts: 0,
  });
  const errors = await new Promise<ToyBody['errors']>((resolve, reject) => {
    let last: ToyBody['errors'];
    client.subscribe(
      { query, variables },
      {
        next: (result) => (last = result.errors as ToyBody['errors']),
        error: (error) => (Array.isArray(error) ? resolve(error as ToyBody['errors']) : reject(error as Error)),
        complete: () => resolve(last),
      },
    );
  });
  await client.dispose();
  return summary(errors);
}

/** All three transports must say the same. */
async function everywhere(service: ToyService, query: string, variables?: Record<string, unknown>): Promise<Answer> {
  const [http, sse, webSocket] = await Promise.all([
    overHttp(service, query, variables),
    overSse(service, query, variables),
    overWebSocket(service, query, variables),
  ]);
  expect(sse).toEqual(http);
  expect(webSocket).toEqual(http);
  return http;
}

const nestedPage = /* GraphQL */ `
  query Page($threads: Int = 50, $entries: Int = 20) {
    viewer {
      threads(first: $threads) {
        edges {
          node {
            scratchpad {
              content {
                text
              }
              entryCount
              entries(first: $entries) {
                edges {
                  node {
                    content
                  }
                }
              }
            }
          }
        }
      }
    }
  }
`;

const repeat = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(' ');

const nest = (levels: number, field: string, leaf: string): string =>
  `${`${field} { `.repeat(levels)}${leaf}${' }'.repeat(levels)}`;

describe('documents within reason', () => {
  test.each([
    ['the nested page of the overview', nestedPage, {}],
    ['a hundred threads with twenty entries each', nestedPage, { threads: 100 }],
    ['fifty threads with fifty entries each', nestedPage, { threads: 50, entries: 50 }],
    ['twenty aliases', `{ ${repeat(20, (index) => `a${index}: hello`)} }`, {}],
    [
      'one page of the largest size',
      '{ viewer { threads(first: 100) { edges { node { id owner { id } } } totalCount } } }',
      {},
    ],
    [
      'fragments in fragments',
      'query { viewer { ...A } } fragment A on Viewer { id threads(first: 5) { ...B } } fragment B on ThreadConnection { edges { node { id } } }',
      {},
    ],
    [
      'the whole introspection',
      getIntrospectionQuery({
        descriptions: true,
        inputValueDeprecation: true,
        specifiedByUrl: true,
        directiveIsRepeatable: true,
        schemaDescription: true,
      }),
      {},
    ],
    [
      'a page over the maximum, which the field itself refuses',
      '{ viewer { threads(first: 1000000) { edges { node { id } } } } }',
      {},
    ],
  ])('%s passes on every transport', async (_name, query, variables) => {
    expect(await everywhere(open, query, variables)).toBeUndefined();
  });
});

describe('documents over the limits', () => {
  const bombs: [string, string, Record<string, unknown>, RegExp][] = [
    ['a hundred pages of a hundred', nestedPage, { threads: 100, entries: 100 }, /20502 objects/],
    [
      'the same with literals',
      nestedPage
        .replace('$threads)', '100)')
        .replace('$entries)', '100)')
        .replace('($threads: Int = 50, $entries: Int = 20)', ''),
      {},
      /objects/,
    ],
    [
      'the same with last',
      '{ viewer { threads(last: 100) { edges { node { scratchpad { entries(last: 100) { edges { node { id } } } } } } } } }',
      {},
      /objects/,
    ],
    [
      'the same with the default of a variable',
      'query Q($n: Int = 100) { viewer { threads(first: $n) { edges { node { scratchpad { entries(first: $n) { edges { node { id } } } } } } } } }',
      {},
      /objects/,
    ],
    [
      'default pages, nested',
      '{ viewer { threads { edges { node { owner { threads { edges { node { owner { threads { edges { node { id } } } } } } } } } } } } }',
      {},
      /objects/,
    ],
    [
      'pages behind inline fragments',
      '{ viewer { ... on Viewer { ... { threads(first: 100) { ... on ThreadConnection { edges { ... { node { ... on Node { ... on Thread { scratchpad { entries(first: 100) { edges { node { id } } } } } } } } } } } } } } }',
      {},
      /objects/,
    ],
    [
      'pages behind fragments',
      'query { viewer { threads(first: 100) { ...T } } } fragment T on ThreadConnection { edges { node { scratchpad { ...S } } } } fragment S on Scratchpad { entries(first: 100) { edges { node { id } } } }',
      {},
      /objects/,
    ],
    [
      'pages in aliases',
      `{ viewer { ${repeat(25, (index) => `t${index}: threads(first: 100) { edges { node { scratchpad { content { text } } } } }`)} } }`,
      {},
      /objects/,
    ],
    [
      'a list without pages, nested',
      nest(5, 'apiKeys { owner', 'id').replaceAll(/^/g, '{ viewer { ') + ' }'.repeat(5) + ' } }',
      {},
      /objects/,
    ],
    [
      'pages of an interface',
      '{ shape { children(first: 100) { nodes { children(first: 100) { nodes { name } } } } } }',
      {},
      /objects/,
    ],
    ['sixty aliases', `{ ${repeat(60, (index) => `a${index}: hello`)} }`, {}, /Aliases limit of 30/],
    [
      'aliases multiplied by fragments',
      `query { ${repeat(7, (i) => `x${i}: viewer { ...F }`)} } fragment F on Viewer { ${repeat(5, (i) => `a${i}: id`)} }`,
      {},
      /Aliases limit/,
    ],
    [
      'depth',
      `{ viewer { ${nest(20, 'threads(first: 1) { edges { node { owner', 'id')}${' } } }'.repeat(20)} } }`,
      {},
      /depth limit of 16/,
    ],
    [
      'depth inside __schema',
      `{ __schema { ${nest(18, 'types { fields { type', 'name')}${' } }'.repeat(18)} } }`,
      {},
      /depth limit of 16/,
    ],
    [
      'lists in lists inside __schema',
      '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }',
      {},
      /introspection depth|Maximum introspection/i,
    ],
    [
      'depth through fragments',
      `query { viewer { ...F0 } } ${repeat(20, (i) => `fragment F${i} on Viewer { threads(first: 1) { edges { node { owner { ...F${i + 1} } } } } }`)} fragment F20 on Viewer { id }`,
      {},
      /depth limit of 16/,
    ],
    ['directives', `{ hello ${repeat(60, () => '@include(if: true)')} }`, {}, /Directives limit of 50/],
    [
      'a cycle of fragments',
      'query { viewer { ...A } } fragment A on Viewer { threads { edges { node { owner { ...B } } } } } fragment B on Viewer { ...A }',
      {},
      /Cannot spread fragment/,
    ],
  ];
  test.each(bombs)('%s: refused on every transport', async (_name, query, variables, message) => {
    const errors = await everywhere(open, query, variables);
    expect(errors?.[0]).toEqual({
      message: expect.stringMatching(message) as string,
      code: 'GRAPHQL_VALIDATION_FAILED',
    });
    expect(errors?.[0]?.message).not.toMatch(/^Syntax Error/);
  });

  test('a document of 300 KB is refused by its tokens, before validation costs anything', async () => {
    const query = `{ ${repeat(50_000, () => 'hello')} }`;
    expect(query.length).toBeGreaterThan(300_000 - 1);
    const before = process.cpuUsage();
    const errors = await overHttp(open, query);
    const { user, system } = process.cpuUsage(before);
    expect(errors).toEqual([{ message: expect.stringMatching(/2000 tokens/) as string, code: 'GRAPHQL_PARSE_FAILED' }]);
    expect((user + system) / 1000).toBeLessThan(150);
    expect((await everywhere(open, query))?.[0]?.code).toBe('GRAPHQL_PARSE_FAILED');
  });

  test('megabytes of comments are refused too', async () => {
    const errors = await everywhere(open, `{ hello ${'#\n'.repeat(1_000_000)} }`);
    expect(errors).toEqual([{ message: expect.stringMatching(/comments/) as string, code: 'GRAPHQL_PARSE_FAILED' }]);
  });

  test('the worst document within the limits is validated in little time', async () => {
    const worst = [
      `{ viewer { ${repeat(1900, () => 'id')} } }`,
      `{ viewer { ${repeat(330, () => '...F ...G')} } } fragment F on Viewer { id ...G } fragment G on Viewer { id apiKeys { id } }`,
      `query { ${repeat(90, (i) => `...F${i}`)} } ${repeat(90, (i) => `fragment F${i} on Query { hello me ${i < 89 ? `...F${i + 1}` : ''} }`)}`,
    ];
    for (const query of worst) {
      const before = process.cpuUsage();
      await overHttp(open, query);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1000).toBeLessThan(700);
    }
  });
});

describe('comments are counted where they are comments', () => {
  test.each([
    ['comments on lines of their own', '#a\n'.repeat(11), true],
    ['as many as allowed', '#a\n'.repeat(10), false],
    ['one long comment with many marks', '#'.repeat(100), false],
    ['marks in a string', `{ f(a: "${'#'.repeat(50)}") }`, false],
    ['marks in a string with an escaped quote', String.raw`{ f(a: "\"${'#\\n'.repeat(50)}") }`, false],
    ['lines of a block string', `{ f(a: """${'# heading\n'.repeat(50)}""") }`, false],
    ['lines of a block string with an escaped end', `{ f(a: """\\"""${'# heading\n'.repeat(50)}""") }`, false],
    ['comments after a block string', `{ f(a: """ "x """) } ${'#a\r'.repeat(11)}`, true],
    ['comments after a string that is not closed', `{ f(a: "x\n${'#a\n'.repeat(11)}`, true],
  ])('%s', (_name, text, expected) => {
    expect(hasMoreComments(text + ' '.repeat(40), 10)).toBe(expected);
  });
});

describe('errors in a document', () => {
  test('a syntax error says where, with GRAPHQL_PARSE_FAILED', async () => {
    const { body } = await open.post('{ hello( }');
    expect(body.errors?.[0]).toMatchObject({
      locations: [{ line: 1, column: 10 }],
      extensions: { code: 'GRAPHQL_PARSE_FAILED' },
    });
    expect((await everywhere(open, '{ hello( }'))?.[0]?.code).toBe('GRAPHQL_PARSE_FAILED');
  });

  test('an unknown or ambiguous operation is GRAPHQL_VALIDATION_FAILED', async () => {
    expect((await everywhere(open, 'query A { hello } query B { hello }'))?.[0]?.code).toBe(
      'GRAPHQL_VALIDATION_FAILED',
    );
    expect((await everywhere(open, 'fragment F on Query { hello }'))?.[0]?.code).toBe('GRAPHQL_VALIDATION_FAILED');
  });

  test('a variable of the wrong type is BAD_USER_INPUT', async () => {
    const errors = await everywhere(open, 'query Q($n: Int!) { slow(milliseconds: $n) }', { n: 'x' });
    expect(errors?.[0]?.code).toBe('BAD_USER_INPUT');
  });

  test('the same text is answered the same when it comes from the cache', async () => {
    const first = await open.post('{ nothingHere }');
    const second = await open.post('{ nothingHere }');
    expect(second.body).toEqual(first.body);
  });
});

describe('a schema that is closed to readers', () => {
  test.each([
    ['__schema', '{ __schema { queryType { name } } }'],
    ['__type', '{ __type(name: "Query") { name } }'],
    ['an alias', '{ harmless: __schema { types { name } } }'],
    ['an inline fragment', '{ ... on Query { ... { __schema { types { name } } } } }'],
    [
      'a fragment',
      'query { ...F } fragment F on Query { __schema { ...G } } fragment G on __Schema { types { name } }',
    ],
    ['a directive', 'query Q($yes: Boolean = true) { __schema @include(if: $yes) { types { name } } }'],
    ['a second operation', 'query A { hello } query B { __schema { types { name } } }'],
    ['the whole introspection', getIntrospectionQuery()],
  ])('does not answer %s on any transport', async (_name, query) => {
    const errors = await everywhere(closed, query);
    expect(errors?.[0]?.code).toBe('GRAPHQL_VALIDATION_FAILED');
  });

  test('still knows __typename', async () => {
    expect((await closed.post('{ __typename }')).body).toEqual({ data: { __typename: 'Query' } });
  });

  test.each([
    ['a field', '{ helo }', {}],
    ['an argument', '{ hello(nam: "x") }', {}],
    ['a type', 'query { ... on Querry { hello } }', {}],
    ['an enum value', '{ shape { ... on Circle { color(of: GREN) } } }', {}],
    ['an enum value in a variable', 'query Q($c: Color) { shape { ... on Circle { color(of: $c) } } }', { c: 'GREN' }],
    ['a subfield that is missing', '{ viewer }', {}],
  ])('suggests no name for %s', async (_name, query, variables) => {
    const errors = await everywhere(closed, query, variables);
    expect(errors).toHaveLength(1);
    expect(errors?.[0]?.message).not.toMatch(/did you mean (?!"viewer)/i);
  });

  test('an open one is whole', async () => {
    const { body } = await open.post(getIntrospectionQuery());
    const { types } = (body.data as unknown as IntrospectionQuery).__schema;
    expect(types.map(({ name }) => name)).toContain('Subscription');
    expect((await open.post('{ helo }')).body.errors?.[0]?.message).toContain('Did you mean "hello"');
  });
});
