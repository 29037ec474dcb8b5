// Compares what Redis holds with the rows in SQL: every key of ours must have its row, and no tombstone may block a living pad.
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import { keyOwner, keyPatterns, type KeyOwner } from '../redis/redis-keys.js';

/** The SQL side. */
export interface Rows {
  /** Those of `ids` that have a row, with their owners. */
  scratchpadsAmong(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  threadsAmong(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /** As for scratchpads. */
  runsAmong(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** A key that should not be there. */
export interface Finding {
  readonly key: string;
  readonly reason: string;
}

const keysAtOnce = 1000;

interface KnownRows {
  pads: ReadonlyMap<string, string>;
  threads: ReadonlySet<string>;
  runs: ReadonlyMap<string, string>;
}

/** Why a key should not be there, or undefined. */
function reasonAgainst(owner: KeyOwner, { pads, threads, runs }: KnownRows): string | undefined {
  switch (owner.kind) {
    case 'scratchpad':
      return pads.get(owner.scratchpadId) === owner.ownerId ? undefined : 'its owner has no such scratchpad';
    case 'tombstone':
      if (runs.has(owner.id)) return 'it blocks a run that exists';
      return pads.has(owner.id) ? 'it blocks a scratchpad that exists' : undefined;
    case 'thread':
      return threads.has(owner.threadId) ? undefined : 'there is no such thread';
    case 'run':
      return runs.get(owner.runId) === owner.ownerId ? undefined : 'its owner has no such run';
    default:
      return runs.has(owner.runId) ? undefined : 'there is no such run';
  }
}

const unlessEmpty = async <Found>(
  ids: ReadonlySet<string>,
  ask: (ids: readonly string[]) => Promise<Found>,
  none: Found,
): Promise<Found> => (ids.size > 0 ? await ask([...ids]) : none);

/** The keys of one batch that should not be there. Rows are asked for after the keys were seen, and ids are never used again. */
async function examine(keys: readonly string[], rows: Rows): Promise<(Finding & { owner: KeyOwner })[]> {
  const owned: { key: string; owner: KeyOwner }[] = [];
  const padIds = new Set<string>();
  const threadIds = new Set<string>();
  const runIds = new Set<string>();
  for (const key of keys) {
    const owner = keyOwner(key);
    if (!owner) continue;
    owned.push({ key, owner });
    if (owner.kind === 'scratchpad') padIds.add(owner.scratchpadId);
    if (owner.kind === 'thread') threadIds.add(owner.threadId);
    if (owner.kind === 'run' || owner.kind === 'job') runIds.add(owner.runId);
    if (owner.kind === 'tombstone') (owner.id.startsWith('run_') ? runIds : padIds).add(owner.id);
  }
  const [pads, threads, runs] = await Promise.all([
    unlessEmpty(padIds, (ids) => rows.scratchpadsAmong(ids), new Map<string, string>()),
    unlessEmpty(threadIds, (ids) => rows.threadsAmong(ids), new Set<string>()),
    unlessEmpty(runIds, (ids) => rows.runsAmong(ids), new Map<string, string>()),
  ]);
  return owned.flatMap(({ key, owner }) => {
    const reason = reasonAgainst(owner, { pads, threads, runs });
    return reason === undefined ? [] : [{ key, reason, owner }];
  });
}

/**
 * Walks all keys of our families without blocking Redis; with `fix`, what is found is removed. What a delete leaves until its
 * purge is done is found, too.
 * @throws DomainError UNAVAILABLE
 */
export async function inspect({
  redis,
  rows,
  removeJob,
  fix,
}: {
  redis: RedisAccess;
  rows: Rows;
  /** A job is more than its key. */
  removeJob: (runId: string) => Promise<void>;
  fix: boolean;
}): Promise<Finding[]> {
  const findings = new Map<string, Finding>();
  for (const pattern of keyPatterns) {
    let cursor = '0';
    do {
      const [next, keys] = await askRedis(redis, () =>
        redis.commands.scan(cursor, 'MATCH', pattern, 'COUNT', keysAtOnce),
      );
      cursor = next;
      const found = await examine(keys, rows);
      for (const { key, reason } of found) findings.set(key, { key, reason }); // SCAN may name a key twice
      if (!fix) continue;
      const orphans = found.filter(({ owner }) => owner.kind !== 'job').map(({ key }) => key);
      if (orphans.length > 0) await askRedis(redis, () => redis.commands.unlink(orphans));
      for (const { owner } of found) if (owner.kind === 'job') await removeJob(owner.runId);
    } while (cursor !== '0');
  }
  return [...findings.values()];
}
