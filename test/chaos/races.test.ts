// Twenty at once: one scratchpad for a thread, one successor for a version, one entry for an idempotency key, through two servers.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createScratchpad, createThread, readLedger, readState, setContentDocument } from '../support/operations.js';
import { startArena, type Arena } from './support/arena.js';
import { checkHistory } from './support/check-history.js';
import { readStoredPad } from './support/final-state.js';
import type { AcknowledgedSet } from './support/history.js';
import { markText } from './support/marked-text.js';
import { createRequests, type Answer, type Requests } from './support/requests.js';
import { appendDocument } from './support/writers.js';

const racers = 20;
const rounds = 25;

let folder: string;
let arena: Arena;
let tenant: Awaited<ReturnType<Arena['createTenant']>>;
let requests: Requests;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scratchpad-chaos-'));
  arena = await startArena({ folder });
  tenant = await arena.createTenant('racer');
  requests = createRequests(arena.servers, () => performance.now());
});
afterAll(async () => {
  await arena.close();
  await rm(folder, { recursive: true, force: true });
});

/** The same operation from each racer, half of them through each server. */
const start = <Data>(document: string, variables: (racer: number) => object): Promise<Answer<Data>[]> =>
  Promise.all(
    Array.from({ length: racers }, (_, racer) =>
      requests.send<Data>(racer % arena.servers.length, tenant.secret, document, variables(racer)),
    ),
  );

const hasAnswer = (answer: Answer<unknown>): boolean =>
  answer.kind === 'success' || (answer.kind === 'refused' && answer.code !== 'UNAVAILABLE');

/**
 * A machine that is too busy to answer everybody has seen no race: then there is another one.
 * @param prepare makes what the race is about, and returns each racer's variables
 */
async function race<Data>(
  document: string,
  prepare: () => Promise<(racer: number) => object>,
): Promise<Answer<Data>[]> {
  for (let attempt = 1; ; attempt += 1) {
    const answers = await start<Data>(document, await prepare());
    if (answers.every(hasAnswer) || attempt === 5) return answers;
  }
}

it('gives a thread one scratchpad, and nineteen others a conflict', async () => {
  const document = 'mutation ($id: ID!) { createScratchpad(input: { threadId: $id }) { scratchpad { id } } }';
  for (let round = 0; round < rounds; round += 1) {
    let threadId = '';
    const answers = await race<{ createScratchpad: { scratchpad: { id: string } } }>(document, async () => {
      threadId = await createThread(tenant.client);
      return () => ({ id: threadId });
    });
    const winners = answers.flatMap((answer) =>
      answer.kind === 'success' ? answer.data.createScratchpad.scratchpad.id : [],
    );
    const codes = answers.flatMap((answer) => (answer.kind === 'refused' ? answer.code : []));
    expect(winners).toHaveLength(1);
    expect(codes).toEqual(Array.from({ length: racers - 1 }, () => 'CONFLICT'));
    const rows = await arena.cluster.psql<{ id: string }>('SELECT id FROM scratchpads WHERE thread_id = $1', [
      threadId,
    ]);
    expect(rows.map(({ id }) => id)).toEqual(winners);
  }
});

it('gives each version one successor, and every loser a conflict with the current version', async () => {
  const scratchpadId = await createScratchpad(tenant.client);
  const sets: AcknowledgedSet[] = [];
  let version = '';
  for (let round = 0; round < rounds; round += 1) {
    const names = Array.from({ length: racers }, (_, racer) => `r${round}-${racer}`);
    const answers = await race<{ setScratchpadContent: { content: { version: string } } }>(
      setContentDocument,
      async () => {
        ({ version } = (await readState(tenant.client, scratchpadId)).content);
        return (racer) => ({ input: { scratchpadId, text: markText(names[racer]!, 300), expectedVersion: version } });
      },
    );
    const winners = answers.flatMap((answer, racer) =>
      answer.kind === 'success'
        ? { name: names[racer]!, version: answer.data.setScratchpadContent.content.version }
        : [],
    );
    expect(winners).toHaveLength(1);
    const [winner] = winners;
    const losers = answers.flatMap((answer) => (answer.kind === 'refused' ? answer.failure.extensions : []));
    expect(losers).toHaveLength(racers - 1);
    for (const loser of losers) expect(loser).toMatchObject({ code: 'CONFLICT', currentVersion: winner!.version });
    const write = { client: 'racer', attempts: 1, scratchpadId, startedAtMs: round, answeredAtMs: round };
    sets.push({ ...write, ...winner!, operation: 'set', idempotencyKey: null, expectedVersion: version });
    version = winner!.version;
  }
  const stored = await readStoredPad(arena.cluster.redis, tenant.userId, scratchpadId);
  expect(stored.content.version).toBe(version);
  expect(checkHistory({ appends: [], sets, ...stored, subscribers: new Map() })).toEqual([]);
});

it('gives twenty racing appends with one idempotency key one entry and one answer', async () => {
  const scratchpadId = await createScratchpad(tenant.client);
  for (let round = 0; round < rounds; round += 1) {
    const input = { scratchpadId, content: `once ${round}`, idempotencyKey: `key ${round}` };
    const answers = await race<{ appendScratchpadEntry: object }>(appendDocument, async () => () => ({ input }));
    const told = answers.map((answer) => (answer.kind === 'success' ? JSON.stringify(answer.data) : answer.kind));
    expect(new Set(told).size).toBe(1);
    expect(answers[0]?.kind).toBe('success');
  }
  const ledger = await readLedger(tenant.client, scratchpadId);
  expect(ledger.map(({ content }) => content)).toEqual(Array.from({ length: rounds }, (_, round) => `once ${round}`));
});

it('gives racing rewrites with one idempotency key one version, and another text under that key a conflict', async () => {
  const scratchpadId = await createScratchpad(tenant.client);
  for (let round = 0; round < rounds; round += 1) {
    const input = { scratchpadId, text: `body ${round}`, idempotencyKey: `key ${round}` };
    const answers = await race<{ setScratchpadContent: { content: { version: string } } }>(
      setContentDocument,
      async () => () => ({ input }),
    );
    const versions = answers.map((answer) =>
      answer.kind === 'success' ? answer.data.setScratchpadContent.content.version : JSON.stringify(answer),
    );
    expect(new Set(versions).size).toBe(1);
    expect((await readState(tenant.client, scratchpadId)).content).toMatchObject({
      text: `body ${round}`,
      version: versions[0],
    });
    const others = await race(setContentDocument, async () => (racer) => ({
      input: { ...input, text: `other ${racer}` },
    }));
    expect(others.map((answer) => (answer.kind === 'refused' ? answer.code : answer.kind))).toEqual(
      Array.from({ length: racers }, () => 'CONFLICT'),
    );
  }
});

it('has had servers that ended when they were told to, and logged no error', async () => {
  expect(await arena.stopServers()).toEqual([]);
});
