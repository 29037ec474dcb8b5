// An agent token against everything that its owner has, over REST and MCP: every operation of the OpenAPI document, every tool.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentRoles, type AgentRole } from '../../src/identity/principal.js';
import { createId } from '../../src/shared/ids.js';
import { createAssistant, createToken, startResearch } from '../support/operations.js';
import { watchRedis, type RedisWatch } from '../support/redis-watch.js';
import { createRestClient, newPad, newThread, type RestAnswer, type RestClient } from '../support/rest-client.js';
import { createRecordingRunRuntime } from '../support/run-runtime.js';
import { startService, type Service, type Tenant } from '../support/service.js';
import { createPathMeter, emptyPath, type PathMeter } from './path-meter.js';
import {
  bytesOf,
  callOperation,
  environment,
  readOperations,
  recipesFor,
  takingNone,
  type RestOperation,
  type Saying,
} from './rest-operations.js';

// Nothing of the owner's has its name in it.
const recipes = recipesFor('nobody');

/** Who may do what with its own pad; to the others it is forbidden. Of everything that is no scratchpad there is nothing to an agent. */
const permitted: Record<string, readonly AgentRole[]> = {
  retrieveScratchpad: agentRoles,
  getContent: agentRoles,
  listEntries: agentRoles,
  appendEntry: ['SUPERVISOR', 'WORKER'],
  setContent: ['SUPERVISOR'],
  updateScratchpad: [],
  deleteScratchpad: [],
  clearContent: [],
  clearEntries: [],
  clearScratchpad: [],
};

/** Who may do what names nothing. */
const permittedWithoutId: Record<string, readonly AgentRole[]> = { createThread: [], listScratchpads: agentRoles };

let service: Service;
let alice: Tenant;
let mallory: Tenant;
let owner: RestClient;
let operations: Map<string, RestOperation>;
let redis: RedisWatch;
let padId: string;
/** Everything of the owner's, by what it is, but for the pad. */
let owned: Record<string, string>;
let foreign: Record<string, string>;
const tokens = {} as Record<AgentRole, string>;

beforeAll(async () => {
  service = await startService({
    runRuntime: createRecordingRunRuntime(),
    environment: { ...environment, LLM_BASE_URL: 'http://127.0.0.1:9/v1', LLM_MODEL: 'house-model' },
  });
  [alice, mallory] = [await service.createTenant('Alice'), await service.createTenant('Mallory')];
  owner = createRestClient(service.url, alice.secret);
  operations = await readOperations(owner);
  const thread = await newThread(owner);
  padId = await newPad(owner, thread);
  const otherPad = await newPad(owner);
  for (const [id, what] of [
    [padId, 'the plan'],
    [otherPad, 'alice planned'],
  ] as const) {
    await owner.take('PUT', `/v1/scratchpads/${id}/content`, { content: what });
  }
  await owner.take('POST', `/v1/scratchpads/${otherPad}/entries`, { content: 'alice found' });
  const message = { thread_id: thread, content: 'alice said' };
  owned = {
    user: alice.userId,
    'the thread of its pad': thread,
    'another thread': await newThread(owner),
    message: (await owner.take<{ id: string }>('POST', '/v1/messages', message)).id,
    'another pad': otherPad,
    'another token': (await createToken(alice.client, otherPad)).id,
    assistant: await createAssistant(alice.client),
    run: await startResearch(alice.client, await newThread(owner)),
  };
  const other = createRestClient(service.url, mallory.secret);
  const foreignThread = await newThread(other);
  foreign = {
    'a foreign user': mallory.userId,
    'a foreign thread': foreignThread,
    'a foreign pad': await newPad(other, foreignThread),
  };
  for (const role of agentRoles) {
    const token = await createToken(alice.client, padId, role);
    tokens[role] = token.secret;
    owned[`the token that is ${role}`] = token.id;
  }
  redis = await watchRedis(service.redis);
});
afterAll(async () => {
  redis?.close();
  await service.close();
});

const strange = (): [string, string][] => [
  ...Object.entries(owned),
  ...Object.entries(foreign),
  ...(['user', 'thread', 'message', 'scratchpad', 'run'] as const).map((kind): [string, string] => [
    `an unknown ${kind}`,
    createId(kind),
  ]),
  ['its own pad in lower case', padId.toLowerCase()],
  ['nonsense', 'nonsense'],
];

/** What an answer shows of the owner's that is none of the agent's business. */
const shown = (text: string): string[] =>
  Object.entries({ ...owned, ...foreign })
    .filter(([, id]) => text.includes(id))
    .map(([what]) => what)
    .concat(/alice (planned|found|said)/.test(text) ? ['a text'] : []);

it('knows every operation, and what each role may do with its own pad', () => {
  expect([...operations.keys()].sort()).toEqual([...Object.keys(recipes), ...takingNone].sort());
  const aboutPads = Object.entries(recipes).filter(([, { kind }]) => kind === 'scratchpad');
  expect(aboutPads.map(([name]) => name).sort()).toEqual(Object.keys(permitted).sort());
  expect(Object.keys(permittedWithoutId).sort()).toEqual(takingNone.toSorted());
});

it('reads in the document which roles an operation is forbidden to', () => {
  for (const [name, { responses }] of operations) {
    const named = /agent tokens \(([^)]+)\)/.exec(responses['403']?.description ?? '')?.[1]?.split(', ') ?? [];
    const may = permitted[name] ?? permittedWithoutId[name] ?? agentRoles;
    expect(named, name).toEqual(agentRoles.filter((role) => !may.includes(role)));
    expect('404' in responses, name).toBe(name in recipes);
  }
});

describe.each(agentRoles)('%s over REST', (role) => {
  let agent: RestClient;
  let pathOf: PathMeter;
  const ask = (name: string, saying: Saying, id: string): Promise<RestAnswer> =>
    callOperation(agent, operations.get(name)!, recipes[name]!, saying, id);

  beforeAll(() => {
    agent = createRestClient(service.url, tokens[role]);
    pathOf = createPathMeter({
      service,
      redis,
      // The token is in the cache.
      warm: () => service.clientFor(tokens[role]).run('{ __typename }'),
      untouchable: Object.values(owned),
    });
  });

  it.each(Object.keys(recipes))(
    'is answered by %s for what is not its own as for what does not exist, without a store being asked',
    async (name) => {
      for (const [index, saying] of recipes[name]!.sayings.entries()) {
        const answers = new Map<string, string[]>();
        for (const [what, id] of strange()) {
          const answer = await ask(name, saying, id);
          expect(shown(answer.text), `${what}: ${answer.text}`).toEqual([]);
          const bytes = bytesOf(answer);
          answers.set(bytes, [...(answers.get(bytes) ?? []), what]);
        }
        const [first = ''] = answers.keys();
        expect(Object.fromEntries(answers), JSON.stringify(saying)).toEqual({
          [first]: strange().map(([what]) => what),
        });
        expect(first).toMatch(index === 0 ? /^\[404,/ : /^\[4/);
      }
      for (const id of [owned['another pad']!, owned['the thread of its pad']!, createId('scratchpad')]) {
        expect(await pathOf(() => ask(name, recipes[name]!.sayings[0]!, id), id)).toBe(emptyPath);
      }
    },
  );

  it.each(Object.entries(permitted))('is answered by %s for its own pad as its role allows', async (name, may) => {
    for (const [index, saying] of recipes[name]!.sayings.entries()) {
      const answer = await ask(name, saying, padId);
      expect(shown(answer.text), answer.text).toEqual([]);
      // What is no request at all is refused before anybody asks whose pad it is about.
      const isMalformed = answer.status === 422 && saying.headers?.['if-match'] === 'nonsense';
      const isForbidden = answer.status === 403;
      const what = `${JSON.stringify(saying)} ${answer.text}`;
      expect(isForbidden || isMalformed, what).toBe(!may.includes(role) || isMalformed);
      const isDone = answer.status < 300;
      expect(index > 0 || isDone === may.includes(role), what).toBe(true);
    }
    expect((await owner.send('GET', `/v1/scratchpads/${padId}`)).body.meta_data).toEqual({});
  });

  it('sees its one pad, and nothing around it', async () => {
    const listed = await agent.send<{ data: object[] }>('GET', '/v1/scratchpads');
    const found = await agent.send('GET', `/v1/scratchpads/${padId}`);
    expect(listed.body.data).toEqual([found.body]);
    expect(found.body).toMatchObject({ id: padId, owner_id: '', thread_id: '', meta_data: {} });
    const page = await agent.send<{ data: object[] }>('GET', '/v1/scratchpads?limit=1');
    expect([page.body.data, page.headers.get('link')]).toEqual([[found.body], null]);
    const own = await owner.send('GET', `/v1/scratchpads/${padId}`);
    expect(own.body).toMatchObject({ owner_id: alice.userId, thread_id: owned['the thread of its pad'] });
    const made = await agent.send('POST', '/v1/threads', { body: {} });
    expect([made.status, made.body.code]).toEqual([403, 'FORBIDDEN']);
  });
});

describe.each(agentRoles)('%s over MCP', (role) => {
  const headers = { accept: 'application/json, text/event-stream' };
  const rpc = async (method: string, params?: object): Promise<string> => {
    const client = createRestClient(service.url, tokens[role]);
    const { text } = await client.send('POST', '/mcp', { headers, body: { jsonrpc: '2.0', id: 1, method, params } });
    return text;
  };
  const fields = ['scratchpad_id', 'scratchpadId', 'thread_id', 'owner_id', 'user_id', 'run_id', 'id'];
  const calls = [
    ['read_scratchpad', {}],
    ['update_scratchpad', { content: 'an intrusion' }],
    ['append_scratchpad', { note: 'an intrusion' }],
  ] as const;

  it('finds no tool that takes a name of anything, and is told so whatever the name stands for', async () => {
    expect(shown(await rpc('tools/list'))).toEqual([]);
    const before = await owner.send('GET', `/v1/scratchpads/${padId}/entries`);
    for (const [name, known] of calls) {
      for (const field of fields) {
        const answers = new Set<string>();
        for (const [, id] of [...strange(), ['its own pad', padId]]) {
          answers.add(await rpc('tools/call', { name, arguments: { ...known, [field]: id } }));
        }
        const [answer = ''] = answers;
        expect(answers.size, `${name} ${field}`).toBe(1);
        const { result } = JSON.parse(answer) as { result: { isError: boolean; content: { text: string }[] } };
        expect(result.isError).toBe(true);
        expect(JSON.parse(result.content[0]?.text ?? '')).toMatchObject({
          is_error: true,
          code: 'INVALID_INPUT',
          error: `Unrecognized key: "${field}"`,
        });
      }
    }
    expect((await owner.send('GET', `/v1/scratchpads/${padId}/entries`)).text).toBe(before.text);
  });

  it('reads its own pad, and nothing around it', async () => {
    const text = await rpc('tools/call', { name: 'read_scratchpad', arguments: {} });
    expect(text).toContain('SCRATCHPAD');
    expect(shown(text)).toEqual([]);
  });
});
