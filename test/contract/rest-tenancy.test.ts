// Nobody reaches what another tenant owns: every REST operation is called with foreign, unknown and wrong ids in each place that takes one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createId, type IdKind } from '../../src/shared/ids.js';
import { watchRedis, type RedisWatch } from '../support/redis-watch.js';
import { createRestClient, newPad, type RestAnswer, type RestClient } from '../support/rest-client.js';
import { administratorSecret, startService, type Service, type Tenant } from '../support/service.js';
import { createPathMeter, type PathMeter } from './path-meter.js';
import {
  bytesOf,
  callOperation,
  environment,
  readOperations,
  recipesFor,
  takingNone,
  usedKey,
  type RestKind,
  type RestOperation,
  type Saying,
} from './rest-operations.js';

interface World extends Tenant {
  rest: RestClient;
  ids: Record<RestKind | 'apiKey', string>;
}

const recipes = recipesFor('alice');

let service: Service;
let alice: World;
let bob: World;
let operations: Map<string, RestOperation>;
let redis: RedisWatch;
let pathOf: PathMeter;
let aliceBefore: unknown;

async function createWorld(name: string): Promise<World> {
  const tenant = await service.createTenant(name);
  const rest = createRestClient(service.url, tenant.secret);
  const thread = (await rest.take<{ id: string }>('POST', '/v1/threads', { meta_data: { name: `${name} ` } })).id;
  const body = { thread_id: thread, content: `${name} said` };
  const message = (await rest.take<{ id: string }>('POST', '/v1/messages', body)).id;
  const scratchpad = await newPad(rest, thread);
  await rest.take('PUT', `/v1/scratchpads/${scratchpad}/content`, { content: `${name} planned` });
  await rest.send('POST', `/v1/scratchpads/${scratchpad}/entries`, {
    body: { content: `${name} found` },
    headers: usedKey,
  });
  return {
    ...tenant,
    rest,
    ids: { user: tenant.userId, thread, message, scratchpad, apiKey: createId('apiKey') },
  };
}

/** All that the stores hold of alice, but when her key was last used. */
async function storedState(): Promise<unknown> {
  const { ids, userId } = alice;
  const client = service.redis.client();
  const keys = (await client.keys('*')).filter((key) => Object.values(ids).some((id) => key.includes(id))).sort();
  return {
    threads: await service.psql('SELECT * FROM threads WHERE owner_id = $1', [userId]),
    pads: await service.psql('SELECT * FROM scratchpads WHERE owner_id = $1', [userId]),
    messages: await service.psql('SELECT * FROM messages WHERE thread_id = $1', [ids.thread]),
    values: await Promise.all(
      keys.map(async (key) => [key, await client.dumpBuffer(key), await client.pexpiretime(key)]),
    ),
  };
}

beforeAll(async () => {
  service = await startService({ environment });
  [alice, bob] = [await createWorld('alice'), await createWorld('bob')];
  operations = await readOperations(bob.rest);
  redis = await watchRedis(service.redis);
  pathOf = createPathMeter({
    service,
    redis,
    // The caller's key is in the cache.
    warm: () => bob.client.run('{ __typename }'),
    untouchable: Object.values(alice.ids),
  });
  aliceBefore = await storedState();
});
afterAll(async () => {
  redis?.close();
  await service.close();
});

function strangeIds(kind: RestKind, own: World): Map<string, string> {
  const foreign = alice.ids[kind];
  const strange = new Map([
    ['foreign', foreign],
    ['unknown', createId(kind)],
    ['lower case', foreign.toLowerCase()],
    ['and a space', `${foreign} `],
    ['and NUL', `${foreign}\u0000`],
    ['nonsense', 'nonsense'],
    ['SQL', "' OR 1=1 --"],
    ['__proto__', '__proto__'],
    ['emoji', '💥'],
    ['long', 'x'.repeat(5000)],
    ['slash', `${foreign}/x`],
  ]);
  for (const other of ['user', 'apiKey', 'thread', 'message', 'scratchpad'] as const satisfies IdKind[]) {
    if (other === kind) continue;
    strange.set(`foreign ${other}`, alice.ids[other]);
    strange.set(`own ${other}`, own.ids[other]);
  }
  return strange;
}

it('knows every operation', () => {
  expect([...operations.keys()].sort()).toEqual([...Object.keys(recipes), ...takingNone].sort());
});

describe.each(Object.entries(recipes))('%s', (name, recipe) => {
  const ask = (caller: RestClient, saying: Saying, id: string): Promise<RestAnswer> =>
    callOperation(caller, operations.get(name)!, recipe, saying, id);

  it('answers for one’s own id: what is asked below is a real question', async () => {
    const id = (await recipe.fresh?.(bob.rest)) ?? bob.ids[recipe.kind];
    const answer = await ask(bob.rest, recipe.sayings[0]!, id);
    expect(answer.status, answer.text).toBeLessThan(300);
    for (const foreign of Object.values(alice.ids)) expect(answer.text).not.toContain(foreign);
  });

  it.each(['another tenant', 'the administrator'])(
    'answers %s the same to the byte for every other id',
    async (who) => {
      const secret = who === 'the administrator' ? administratorSecret : bob.secret;
      const caller = createRestClient(service.url, secret);
      for (const [index, saying] of recipe.sayings.entries()) {
        const answers = new Map<string, string[]>();
        for (const [what, id] of strangeIds(recipe.kind, bob)) {
          const bytes = bytesOf(await ask(caller, saying, id));
          answers.set(bytes, [...(answers.get(bytes) ?? []), what]);
        }
        const [first = ''] = answers.keys();
        expect(Object.fromEntries(answers), JSON.stringify(saying)).toEqual({
          [first]: [...strangeIds(recipe.kind, bob).keys()],
        });
        const status = who === 'the administrator' ? 403 : 404;
        expect(first).toMatch(index === 0 ? new RegExp(`^\\[${status},`) : /^\[4/);
      }
    },
  );

  it('takes the same path through the stores for a foreign and an unknown id, and touches no foreign key', async () => {
    for (const saying of recipe.sayings) {
      const paths = new Set<string>();
      for (const id of [alice.ids[recipe.kind], createId(recipe.kind)]) {
        paths.add(await pathOf(() => ask(bob.rest, saying, id), id));
      }
      expect([...paths], JSON.stringify(saying)).toHaveLength(1);
    }
  });
});

it('leaves everything of the other tenant as it was, and shows nothing of it in lists', async () => {
  expect(await storedState()).toEqual(aliceBefore);
  for (const path of ['/v1/scratchpads', `/v1/threads/user/${bob.userId}`, `/v1/threads/user/${bob.userId}/records`]) {
    const { text } = await bob.rest.send('GET', path);
    for (const id of Object.values(alice.ids)) expect(text).not.toContain(id);
  }
});
