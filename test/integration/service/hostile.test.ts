// What a hostile client sends to the real schema is refused within limits of time, and everybody else is served meanwhile.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { slownessBeside } from '../../support/bystander.js';
import { appendEntry, createScratchpad, createThread, readState, setContent } from '../../support/operations.js';
import { startService, type Service, type Tenant } from '../../support/service.js';
import { bearer, wireNames, wires } from '../../support/wire.js';

let service: Service;
let alice: Tenant;
let padId: string;

beforeAll(async () => {
  service = await startService({ environment: { INTROSPECTION: 'false' } });
  alice = await service.createTenant('Alice');
  padId = await createScratchpad(alice.client);
  await setContent(alice.client, padId, 'plan');
});
afterAll(() => service.close());

const repeat = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(' ');

/** `inner` below `count` levels of `open … close`. */
const nest = (count: number, open: string, inner: string, close: string): string =>
  open.repeat(count) + inner + close.repeat(count);

interface Refusal {
  status: number;
  code: unknown;
  message: string;
  headers: Headers;
  data: unknown;
}

async function post(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Promise<Refusal> {
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer(alice.secret), ...headers },
    body,
  });
  const text = await response.text();
  const answer = JSON.parse(text) as { data?: unknown; errors?: { message: string; extensions: { code: string } }[] };
  const [error] = answer.errors ?? [];
  return {
    status: response.status,
    headers: response.headers,
    data: answer.data,
    code: error?.extensions.code,
    message: error?.message ?? '',
  };
}

const beside = (attack: () => Promise<unknown>): Promise<number> =>
  slownessBeside(attack, { client: alice.client, scratchpadId: padId, text: 'plan' });

describe('documents', () => {
  const deep = (levels: number): string =>
    `{ viewer { ${nest(levels, 'threads(first: 1) { edges { node { owner { ', 'id', ' } } } }')} } }`;
  const bombs: [string, string, RegExp][] = [
    ['levels of fields', deep(5), /depth limit of 16/],
    ['a thousand levels of fields', deep(250), /depth limit|tokens/],
    ['braces alone', nest(30_000, '{', 'a', '}'), /nested too deeply|tokens|Syntax Error/],
    [
      'brackets in an argument',
      `{ node(id: ${nest(20_000, '[', '', ']')}) { id } }`,
      /nested too deeply|tokens|Syntax Error/,
    ],
    ['aliases', `{ ${repeat(200, (i) => `a${i}: viewer { id }`)} }`, /Aliases limit of 30/],
    [
      'aliases of mutations',
      `mutation { ${repeat(100, (i) => `a${i}: createThread(input: {}) { thread { id } }`)} }`,
      /Aliases limit/,
    ],
    [
      'fragments that double twenty times',
      `query { viewer { ...F0 } } ${repeat(20, (i) => `fragment F${i} on User { ...F${i + 1} x${i}: threads(first: 1) { edges { node { owner { ...F${i + 1} } } } } }`)} fragment F20 on User { id }`,
      /depth limit|Aliases limit|objects/,
    ],
    [
      'a cycle of fragments',
      'query { viewer { ...A } } fragment A on User { ...B } fragment B on User { ...A }',
      /Cannot spread fragment/,
    ],
    [
      'levels behind inline fragments',
      `{ viewer { ${nest(5, '... on User { threads(first: 1) { ... on ThreadConnection { edges { ... { node { owner { ', 'id', ' } } } } } } }')} } }`,
      /depth limit/,
    ],
    ['directives', `{ viewer { id ${repeat(200, () => '@skip(if: false)')} } }`, /Directives limit of 50/],
    ['unknown directives', `{ viewer { id ${repeat(900, (i) => `@d${i}`)} } }`, /Directives limit|tokens/],
    ['a field a thousand times', `{ viewer { ${repeat(1990, () => 'id')} name } }`, /tokens|Validation aborted/],
    [
      'pages in pages',
      '{ viewer { threads(first: 100) { edges { node { scratchpad { entries(first: 100) { edges { node { id } } } } } } } } }',
      /objects/,
    ],
    [
      'pages in pages by an interface',
      `{ node(id: "x") { ... on User { scratchpads(first: 100) { edges { node { thread { messages(last: 100) { edges { node { id } } } } } } } } } }`,
      /objects/,
    ],
    ['half a megabyte of names', `{ ${repeat(80_000, () => 'viewer')} }`, /tokens/],
    ['a megabyte of comments', `{ viewer { id } } ${'#\n'.repeat(500_000)}`, /comments/],
    ['thousands of variables', `query (${repeat(900, (i) => `$v${i}: ID`)}) { viewer { id } }`, /tokens/],
    ['the schema, which is closed', '{ __schema { types { name fields { name } } } }', /introspection/i],
  ];

  it.each(bombs)('with %s are refused on every transport, and others are served', async (_name, document, message) => {
    const messages = new Set<string>();
    const attack = async (): Promise<void> => {
      for (const wire of wireNames) {
        const answer = await wires[wire]({ url: service.url, credentials: bearer(alice.secret), document });
        expect(answer.results).toHaveLength(1);
        messages.add(answer.results[0]?.errors?.[0]?.message ?? '');
      }
    };
    expect(await beside(attack)).toBeLessThan(1);
    expect([...messages]).toEqual([expect.stringMatching(message)]);
    expect([...messages][0]).not.toMatch(/Did you mean/);
  });

  const pad = `id metaData createdAt updatedAt expiresAt eventCursor formattedView entryCount content { text version updatedAt }`;
  const entry = 'id content author runId createdAt';
  const pageInfo = 'pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount';
  it.each([
    [
      'the page of the overview',
      '{ viewer { threads(first: 50) { edges { node { scratchpad { content { text } entryCount entries(first: 20) { edges { node { content } } } } } } } } }',
    ],
    [
      'the whole of one pad',
      `query { scratchpad(id: "PAD") { ${pad} owner { id name } thread { id metaData messages(first: 100) { edges { cursor node { id sequenceNo role content createdAt } } ${pageInfo} } } entries(first: 100) { edges { cursor node { ${entry} } } ${pageInfo} } } }`,
    ],
    [
      'a hundred entries and a page of messages in twenty threads',
      `{ viewer { id name apiKeys { id name prefix } threads(first: 20) { edges { cursor node { id metaData messages { edges { cursor node { id role content } } ${pageInfo} } scratchpad { ${pad} entries(first: 100) { edges { cursor node { ${entry} } } ${pageInfo} } } } } ${pageInfo} } } }`,
    ],
    [
      'a hundred messages and a hundred entries in twenty threads',
      `{ viewer { threads(last: 20) { edges { node { id messages(last: 100) { edges { node { id role content } } } scratchpad { id entries(last: 100) { edges { node { ${entry} } } } } } } } } }`,
    ],
    [
      'thirty pads at once',
      `{ ${repeat(30, (i) => `pad${i}: scratchpad(id: "PAD") { ...Pad }`)} } fragment Pad on Scratchpad { ${pad} }`,
    ],
    [
      'all pads of a tenant',
      `{ scratchpads(first: 100) { edges { node { ${pad} entries(last: 20) { edges { node { ${entry} } } } } } ${pageInfo} } }`,
    ],
    [
      'thirty appends at once',
      `mutation { ${repeat(30, (i) => `a${i}: appendScratchpadEntry(input: { scratchpadId: "FRESH", content: "finding ${i}" }) { entryEdge { cursor node { ${entry} } } }`)} }`,
    ],
  ])('that ask for %s pass', async (_name, document) => {
    const fresh = document.includes('FRESH') ? await createScratchpad(alice.client) : '';
    const answer = await alice.client.send(document.replaceAll('PAD', padId).replaceAll('FRESH', fresh));
    expect(answer.errors).toEqual([]);
  });
});

describe('requests', () => {
  const mutation = 'mutation { createThread(input: {}) { thread { id } } }';
  const countThreads = async (): Promise<number> => {
    const { viewer } = await alice.client.run<{ viewer: { threads: { totalCount: number } } }>(
      '{ viewer { threads(first: 0) { totalCount } } }',
    );
    return viewer.threads.totalCount;
  };

  it('of ten megabytes are refused, and others are served', async () => {
    const bodies = [
      JSON.stringify({ query: '{ viewer { id } }', variables: { text: 'x'.repeat(10_000_000) } }),
      `{"query":"{ viewer { id } }"}${' '.repeat(10_000_000)}`,
    ];
    const answers: Refusal[] = [];
    const attack = (): Promise<unknown> => Promise.all(bodies.map(async (body) => answers.push(await post(body))));
    expect(await beside(attack)).toBeLessThan(1);
    expect(answers.map(({ status, code }) => [status, code])).toEqual([
      [413, 'LIMIT_EXCEEDED'],
      [413, 'LIMIT_EXCEEDED'],
    ]);
  });

  it('of a foreign page change nothing, whichever disguise they come in', async () => {
    const before = await countThreads();
    const query = encodeURIComponent(mutation);
    const json = JSON.stringify({ query: mutation });
    const refused = await Promise.all([
      fetch(`${service.url}/graphql?query=${query}`, { headers: bearer(alice.secret) }),
      ...(
        [
          ['application/x-www-form-urlencoded', `query=${query}`],
          [
            'multipart/form-data; boundary=x',
            `--x\r\nContent-Disposition: form-data; name="query"\r\n\r\n${mutation}\r\n--x--`,
          ],
          [
            'multipart/form-data; boundary=x',
            `--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n${json}\r\n--x--`,
          ],
          ['text/plain', json],
          ['text/plain; application/json', json],
          ['application/graphql', mutation],
          ['application/json; charset=utf-16', json],
        ] as const
      ).map(([type, body]) =>
        fetch(`${service.url}/graphql`, {
          method: 'POST',
          headers: { ...bearer(alice.secret), 'content-type': type },
          body,
        }),
      ),
      ...['https://evil.example', 'null', `${service.url}.evil.example`].map((origin) =>
        fetch(`${service.url}/graphql`, {
          method: 'POST',
          headers: { ...bearer(alice.secret), 'content-type': 'application/json', origin },
          body: json,
        }),
      ),
    ]);
    expect(refused.map(({ status }) => status)).toEqual([405, ...Array<number>(7).fill(415), 403, 403, 403]);
    expect(refused.every(({ headers }) => !headers.has('access-control-allow-origin'))).toBe(true);
    expect(await countThreads()).toBe(before);
    expect((await post(json)).status).toBe(200);
    expect(await countThreads()).toBe(before + 1);
  });

  it('in batches, of broken JSON, of broken UTF-8 are refused with what to do', async () => {
    const broken = Buffer.concat([
      Buffer.from('{"query":"{ node(id: \\"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('\\") { id } }"}'),
    ]);
    for (const body of [
      `[{"query":"${mutation}"}]`,
      '{"query":',
      '"text"',
      '{}',
      '{"query":1}',
      '{"query":"{ viewer { id } }","variables":[]}',
    ]) {
      expect(await post(body), body).toMatchObject({
        status: 400,
        code: 'BAD_USER_INPUT',
        message: expect.stringMatching(/.{15}/),
      });
    }
    expect(await post(new Uint8Array(broken))).toMatchObject({ status: 400, message: 'The body is not valid UTF-8.' });
    for (const bytes of [
      [0xed, 0xa0, 0x80],
      [0xf5, 0x80, 0x80, 0x80],
      [0xc0, 0x80],
    ]) {
      const body = Buffer.concat([Buffer.from('{"query":"{ viewer { id } } #'), Buffer.from(bytes), Buffer.from('"}')]);
      expect((await post(new Uint8Array(body))).status).toBe(400);
    }
  });

  it('with a JSON key twice, at any depth, are refused and change nothing', async () => {
    const before = await countThreads();
    const set = JSON.stringify(
      'mutation ($input: SetScratchpadContentInput!) { setScratchpadContent(input: $input) { content { text } } }',
    );
    const create = JSON.stringify(
      'mutation ($m: JSONObject) { createThread(input: { metaData: $m }) { thread { id } } }',
    );
    for (const body of [
      `{"query":${JSON.stringify(mutation)},"query":"{ viewer { name } }"}`,
      `{"query":"{ viewer { name } }","qu\\u0065ry":${JSON.stringify(mutation)}}`,
      `{"query":${set},"variables":{"input":{"scratchpadId":"${padId}","text":"a","text":"plan"}}}`,
      `{"query":${create},"variables":{"m":{"a":[{"b":1,"b":2}]}}}`,
      `{"query":${create},"variables":{"m":{}},"extensions":{"a":{"b":1,"b":1}}}`,
    ]) {
      expect(await post(body), body).toMatchObject({
        status: 400,
        code: 'BAD_USER_INPUT',
        message: expect.stringContaining('twice') as string,
      });
    }
    const variables = encodeURIComponent('{"id":"a","id":"b"}');
    const query = encodeURIComponent('query ($id: ID!) { node(id: $id) { id } }');
    const byGet = await fetch(`${service.url}/graphql?query=${query}&variables=${variables}`, {
      headers: bearer(alice.secret),
    });
    expect(byGet.status).toBe(400);
    const literal = await post(
      JSON.stringify({ query: 'mutation { createThread(input: { metaData: { a: 1, a: 2 } }) { thread { id } } }' }),
    );
    expect(literal.code).toBe('GRAPHQL_VALIDATION_FAILED');
    expect(await countThreads()).toBe(before);
    expect((await readState(alice.client, padId)).content.text).toBe('plan');
  });
});

describe('values', () => {
  const create = 'mutation ($m: JSONObject) { createThread(input: { metaData: $m }) { thread { metaData } } }';
  const withVariable = (json: string): Promise<Refusal> =>
    post(`{"query":${JSON.stringify(create)},"variables":{"m":${json}}}`);
  const withLiteral = (literal: string): Promise<Refusal> =>
    post(
      JSON.stringify({ query: `mutation { createThread(input: { metaData: ${literal} }) { thread { metaData } } }` }),
    );

  it.each([
    ['__proto__ as a variable', () => withVariable('{"__proto__":{"isAdmin":true}}')],
    ['__proto__ deep in a variable', () => withVariable('{"a":[{"b":{"__proto__":1}}]}')],
    ['__proto__ as a literal', () => withLiteral('{ __proto__: { isAdmin: true } }')],
    ['__proto__ deep in a literal', () => withLiteral('{ a: [{ b: { __proto__: 1 } }] }')],
    ['a number that is none', () => withVariable('{"a":1e999}')],
    ['a literal number that is none', () => withLiteral('{ a: 1e999 }')],
    ['a literal integer of four hundred digits', () => withLiteral(`{ a: ${'9'.repeat(400)} }`)],
    ['an integer beyond 2^53', () => withVariable('{"a":9007199254740993}')],
    ['an integer beyond 2^53 deep in a list', () => withVariable('{"a":[[-12345678901234567890]]}')],
    ['a literal integer beyond 2^53', () => withLiteral('{ a: [9007199254740993] }')],
    ['a depth of a thousand', () => withVariable(nest(1000, '{"a":', '1', '}'))],
    ['a depth of a hundred lists', () => withVariable(`{"a":${nest(100, '[', '1', ']')}}`)],
    ['a hundred kilobytes', () => withVariable(JSON.stringify({ a: 'x'.repeat(100_000) }))],
    ['a depth of a million lists', () => withVariable(`{"a":${nest(1_000_000, '[', '', ']')}}`)],
    ['a depth of a million objects', () => withVariable(nest(1_000_000, '{"a":', '1', '}'))],
    ['a literal depth of four hundred objects', () => withLiteral(nest(400, '{ a: ', '1', ' }'))],
    ['a list', () => withVariable('[]')],
    ['a text', () => withVariable('"{}"')],
    ['NUL in a key', () => withVariable('{"a\\u0000":1}')],
    ['half a surrogate pair', () => withVariable('{"a":"\\ud800"}')],
  ])('such as %s in a JSONObject are refused', async (_what, send) => {
    const refused = await send();
    expect([200, 400]).toContain(refused.status);
    expect(['BAD_USER_INPUT', 'GRAPHQL_VALIDATION_FAILED']).toContain(refused.code);
    expect(refused.message.length).toBeGreaterThan(10);
    expect(refused.data ?? null).toBeNull();
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it('such as names of the language’s own are ordinary keys of a JSONObject', async () => {
    const json =
      '{"constructor":{"prototype":{"x":1}},"toString":"a","hasOwnProperty":null,"":0,"$where":"1","é\\n\\"":[[],{}]}';
    expect((await withVariable(json)).data).toEqual({
      createThread: { thread: { metaData: JSON.parse(json) as object } },
    });
    expect((await withLiteral('{ constructor: 1, toString: ["a"] }')).data).toEqual({
      createThread: { thread: { metaData: { constructor: 1, toString: ['a'] } } },
    });
  });

  it('such as variables inside a literal JSONObject are taken, and left out when they are not given', async () => {
    const answer = await alice.client.send<{ createThread: { thread: { metaData: object } } }>(
      `mutation ($a: String, $b: Int, $c: JSONObject, $d: String = "d", $e: String) {
        createThread(input: { metaData: { a: $a, list: [$b, 2, $e], nested: { c: $c, e: $e }, d: $d } }) { thread { metaData } }
      }`,
      { a: 'x', b: 1, c: { deep: [true, null] } },
    );
    expect(answer.errors).toEqual([]);
    expect(answer.data?.createThread.thread.metaData).toEqual({
      a: 'x',
      list: [1, 2, null],
      nested: { c: { deep: [true, null] } },
      d: 'd',
    });
    const proto = await alice.client.fail(
      'mutation ($x: Int) { createThread(input: { metaData: { __proto__: $x } }) { thread { id } } }',
      { x: 1 },
    );
    expect(proto.extensions.code).toMatch(/BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED/);
    const surrogate = await alice.client.fail(
      'mutation ($x: String) { createThread(input: { metaData: { a: $x } }) { thread { id } } }',
      { x: '\ud800' },
    );
    expect(surrogate.extensions.code).toMatch(/BAD_USER_INPUT/);
  });

  it('such as numbers keep the value that JavaScript gives them', async () => {
    const json =
      '{"a":9007199254740991,"b":-0.1,"c":1e21,"d":5e-324,"e":1.7976931348623157e308,"f":123456789012345680000}';
    expect((await withVariable(json)).data).toEqual({
      createThread: { thread: { metaData: JSON.parse(json) as object } },
    });
  });

  it.each(['99999999999', '-1', '2147483648', '1e3', '1.5', '"1"', 'null'])(
    'such as the page size %s are refused or mean the default',
    async (size) => {
      const document = 'query ($n: Int) { viewer { threads(first: $n) { totalCount } } }';
      const { code, data } = await post(`{"query":${JSON.stringify(document)},"variables":{"n":${size}}}`);
      const isDefault = size === 'null';
      expect([code, (data as { viewer?: unknown } | undefined)?.viewer == null]).toEqual(
        isDefault ? [undefined, false] : ['BAD_USER_INPUT', true],
      );
      const literal = await post(JSON.stringify({ query: `{ viewer { threads(first: ${size}) { totalCount } } }` }));
      expect(literal.code === undefined).toBe(isDefault);
    },
  );

  it('of the wrong type are refused with the place of each mistake', async () => {
    const issuesOf = async (document: string, variables: object): Promise<unknown> =>
      (await alice.client.send(document, variables)).errors.map(({ extensions, message }) => {
        expect(extensions.code).toBe('BAD_USER_INPUT');
        expect((extensions['issues'] as { message: string }[])[0]?.message).toBe(message);
        return (extensions['issues'] as { path: unknown }[]).map(({ path }) => path);
      });
    const create = 'mutation ($input: CreateThreadInput!) { createThread(input: $input) { thread { id } } }';
    const assistant =
      'mutation ($input: CreateAssistantInput!) { createAssistant(input: $input) { assistant { id } } }';
    expect(await issuesOf(create, { input: { metaData: [] } })).toEqual([[['input', 'metaData']]]);
    expect(await issuesOf(create, { input: 5 })).toEqual([[['input']]]);
    expect(await issuesOf(create, {})).toEqual([[['input']]]);
    expect(await issuesOf(create, { input: { other: 1 } })).toEqual([[['input']]]);
    expect(
      await issuesOf(assistant, { input: { name: 5, instructions: 'x', tools: [{ type: 'scratchpad' }, 7] } }),
    ).toEqual([[['input', 'name']], [['input', 'tools', 1]]]);
    const refused = await post('[]');
    expect(refused.status).toBe(400);
  });

  it('such as instants that are none are refused', async () => {
    const document = 'mutation ($e: DateTime) { createApiKey(input: { name: "x", expiresAt: $e }) { secret } }';
    for (const instant of [
      '2999-02-30T00:00:00Z',
      '2999-01-01',
      'tomorrow',
      32503680000000,
      '+275760-09-13T00:00:00.001Z',
      '9999-12-31T23:59:60Z',
    ]) {
      expect((await alice.client.fail(document, { e: instant })).extensions.code, String(instant)).toBe(
        'BAD_USER_INPUT',
      );
    }
  });

  it('such as cursors of any bytes are refused', async () => {
    const threadId = await createThread(alice.client);
    await appendEntry(alice.client, padId, 'one');
    const documents = [
      `query ($c: String) { viewer { threads(after: $c) { totalCount } } }`,
      `query ($c: String) { thread(id: "${threadId}") { messages(before: $c) { totalCount } } }`,
      `query ($c: String) { scratchpad(id: "${padId}") { entries(after: $c) { totalCount } } }`,
    ];
    const hostile = (key: unknown): string => Buffer.from(JSON.stringify(key)).toString('base64url');
    for (const c of [
      '',
      '\u0000',
      '💥',
      '../../etc/passwd',
      'A'.repeat(100_000),
      hostile([]),
      hostile({}),
      hostile(['threads', alice.userId, { gt: '' }]),
      hostile(['threads', alice.userId, 'x\u0000']),
      hostile(['messages', threadId, '99999999999999999999']),
      hostile(['messages', threadId, '-1']),
      hostile(['entries', padId, [-1, 1e308]]),
      hostile(['entries', padId, [1e308, 1]]),
    ]) {
      for (const document of documents) {
        const { errors } = await alice.client.send(document, { c });
        expect(
          errors.map((error) => error.extensions.code),
          `${document} ${c.slice(0, 80)}`,
        ).toEqual(['BAD_USER_INPUT']);
      }
    }
  });
});
