// Reads what the stores and the servers hold once all is quiet.
import type { GraphqlClient } from '../../support/graphql-client.js';
import { readLedger, readState } from '../../support/operations.js';
import type { TestRedis } from '../../support/redis.js';
import type { Arena } from './arena.js';
import type { StoredRows } from './check-leftovers.js';
import type { LedgerEntry } from './history.js';

export interface FinalPad {
  ledger: LedgerEntry[];
  content: { version: string; text: string };
}

/** As Redis has it. */
export async function readStoredPad(redis: TestRedis, ownerId: string, scratchpadId: string): Promise<FinalPad> {
  const client = redis.client();
  try {
    const rows = await client.lrange(`scratchpad:${ownerId}:${scratchpadId}:entries`, 0, -1);
    const content = await client.get(`scratchpad:${ownerId}:${scratchpadId}:content`);
    const { content: text, version } = JSON.parse(content ?? '{"content":"","version":"0"}') as {
      content: string;
      version: string;
    };
    return { ledger: rows.map((row) => JSON.parse(row) as LedgerEntry), content: { text, version } };
  } finally {
    client.disconnect();
  }
}

/** As a server tells it. */
export async function readToldPad(client: GraphqlClient, scratchpadId: string): Promise<FinalPad> {
  const ledger = await readLedger(client, scratchpadId);
  const { content } = await readState(client, scratchpadId, { first: 1 });
  return {
    ledger: ledger.map(({ id, content }) => ({ id, content })),
    content: { version: content.version, text: content.text },
  };
}

/** @returns what differs */
export function comparePads(stored: FinalPad, told: FinalPad, who: string): string[] {
  const problems: string[] = [];
  const isSame = ({ id, content }: LedgerEntry, index: number): boolean =>
    told.ledger[index]?.id === id && told.ledger[index].content === content;
  if (stored.ledger.length !== told.ledger.length || !stored.ledger.every(isSame)) {
    problems.push(`${who} tells another ledger than Redis has (${told.ledger.length}, ${stored.ledger.length})`);
  }
  if (stored.content.version !== told.content.version || stored.content.text !== told.content.text) {
    problems.push(`${who} tells another content than Redis has`);
  }
  return problems;
}

export async function readStores({ cluster }: Arena): Promise<{ keys: string[]; rows: StoredRows }> {
  const client = cluster.redis.client();
  try {
    // Keys first: what is made meanwhile has its row by then.
    const keys = await client.keys('*');
    const [users, threads, scratchpads, tasks] = await Promise.all([
      cluster.psql<{ id: string }>('SELECT id FROM users'),
      cluster.psql<{ id: string; owner_id: string }>('SELECT id, owner_id FROM threads'),
      cluster.psql<{ id: string; owner_id: string }>('SELECT id, owner_id FROM scratchpads'),
      cluster.psql<{ count: string }>('SELECT count(*) FROM purge_tasks'),
    ]);
    return {
      keys,
      rows: {
        users: new Set(users.map(({ id }) => id)),
        threads: new Map(threads.map(({ id, owner_id }) => [id, owner_id])),
        scratchpads: new Map(scratchpads.map(({ id, owner_id }) => [id, owner_id])),
        purgeTasks: Number(tasks[0]?.count),
      },
    };
  } finally {
    client.disconnect();
  }
}
