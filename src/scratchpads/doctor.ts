// Compares what Redis holds with the rows in SQL: every key of ours must have its row, and no tombstone may block a living pad.
import { askRedis, type RedisAccess } from './redis-access.js';
import { keyOwner, keyPatterns, type KeyOwner } from './scratchpad-keys.js';

/** The SQL side. */
export interface Rows {
  /** Those of `ids` that have a row, with their owners. */
  scratchpadsAmong(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  threadsAmong(ids: readonly string[]): Promise<ReadonlySet<string>>;
}

/** A key that should not be there. */
export interface Finding {
  readonly key: string;
  readonly reason: string;
}

const keysAtOnce = 1000;

/** Why a key should not be there, or undefined. */
function reasonAgainst(
  owner: KeyOwner,
  pads: ReadonlyMap<string, string>,
  threads: ReadonlySet<string>,
): string | undefined {
  if (owner.kind === 'scratchpad') {
    return pads.get(owner.scratchpadId) === owner.ownerId ? undefined : 'its owner has no such scratchpad';
  }
  if (owner.kind === 'tombstone') {
    return pads.has(owner.scratchpadId) ? 'it blocks a scratchpad that exists' : undefined;
  }
  if (owner.kind === 'thread') return threads.has(owner.threadId) ? undefined : 'there is no such thread';
  return undefined; // the rows of runs are not known here
}

/** The keys of one batch that should not be there. Rows are asked for after the keys were seen, and ids are never used again. */
async function examine(keys: readonly string[], rows: Rows): Promise<Finding[]> {
  const owned: { key: string; owner: KeyOwner }[] = [];
  const padIds = new Set<string>();
  const threadIds = new Set<string>();
  for (const key of keys) {
    const owner = keyOwner(key);
    if (!owner) continue;
    owned.push({ key, owner });
    if (owner.kind === 'scratchpad' || owner.kind === 'tombstone') padIds.add(owner.scratchpadId);
    if (owner.kind === 'thread') threadIds.add(owner.threadId);
  }
  const [pads, threads] = await Promise.all([
    padIds.size > 0 ? rows.scratchpadsAmong([...padIds]) : new Map<string, string>(),
    threadIds.size > 0 ? rows.threadsAmong([...threadIds]) : new Set<string>(),
  ]);
  return owned.flatMap(({ key, owner }) => {
    const reason = reasonAgainst(owner, pads, threads);
    return reason === undefined ? [] : [{ key, reason }];
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
  fix,
}: {
  redis: RedisAccess;
  rows: Rows;
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
      for (const finding of found) findings.set(finding.key, finding); // SCAN may name a key twice
      if (fix && found.length > 0) await askRedis(redis, () => redis.commands.unlink(found.map(({ key }) => key)));
    } while (cursor !== '0');
  }
  return [...findings.values()];
}
