// Judges what the stores hold once all is quiet: no key without a row, no purge left over, no tombstone on a living pad, and
// exactly the rows that were acknowledged. Pure, and it knows the key families by itself.
import type { AcknowledgedLife } from './history.js';

export interface StoredRows {
  users: ReadonlySet<string>;
  /** Thread to owner. */
  threads: ReadonlyMap<string, string>;
  /** Pad to owner. */
  scratchpads: ReadonlyMap<string, string>;
  purgeTasks: number;
}

/** @returns one line for each thing that should not be so */
export function checkLeftovers(keys: readonly string[], rows: StoredRows): string[] {
  const problems = keys.flatMap((key) => {
    const [family, first = '', second = ''] = key.split(':');
    if (family === 'tombstone') return rows.scratchpads.has(first) ? [`${key} blocks a living pad`] : [];
    if (family === 'scratchpad' && second === 'notebook') return rows.threads.has(first) ? [] : [`${key} has no row`];
    if (family === 'scratchpad' || family === 'sequence' || family === 'idempotency') {
      return rows.scratchpads.get(second) === first ? [] : [`${key} has no row`];
    }
    return [];
  });
  if (rows.purgeTasks > 0) problems.push(`${rows.purgeTasks} purges are left over`);
  return problems;
}

/**
 * @param tried deletions that were sent, answered or not: what they name may be gone
 * @returns one line for each thing that was made and is gone, or was deleted and is there
 */
export function checkRows(
  acknowledged: readonly AcknowledgedLife[],
  tried: ReadonlySet<string>,
  rows: StoredRows,
): string[] {
  const isThere = ({ kind, id }: AcknowledgedLife): boolean =>
    kind === 'user' ? rows.users.has(id) : kind === 'thread' ? rows.threads.has(id) : rows.scratchpads.has(id);
  const parents = new Map(acknowledged.map(({ id, parentId }) => [id, parentId]));
  const mayBeGone = (id: string | null): boolean =>
    id !== null && (tried.has(id) || mayBeGone(parents.get(id) ?? null));
  return acknowledged.flatMap((life) => {
    const { operation, kind, id } = life;
    if (operation === 'delete') return isThere(life) ? [`the ${kind} ${id} was deleted and is there`] : [];
    return isThere(life) || mayBeGone(id) ? [] : [`the ${kind} ${id} was created and is gone`];
  });
}
