// Working state in Redis: every write is one script (write, expiry, event), every batch of reads another one.
import { createHash } from 'node:crypto';
import { DomainError, notFound } from '../shared/errors.js';
import { createId } from '../shared/ids.js';
import { byteLength } from '../shared/text.js';
import type { EntryKey } from './ledger-page.js';
import { createPadReader, type PadRead, type PadReading } from './pad-reader.js';
import { askRedis, type RedisAccess } from '../redis/redis-access.js';
import { appendRecord, parseEntry, setRecord, type ContentState, type EntryState } from './schemas.js';
import {
  contentKey,
  entriesKey,
  eventChannel,
  idempotencyIndexKey,
  idempotencyKey,
  sequenceKey,
  tombstoneKey,
  type PadAddress,
} from '../redis/redis-keys.js';
import { appendScript } from './scripts/append.js';
import { clearScript } from './scripts/clear.js';
import { defineScript } from '../redis/run-script.js';
import { setScript } from './scripts/set.js';

export { entryCursorCodec } from './ledger-page.js';
export type { ContentState, EntryKey, EntryState, PadAddress, PadRead, PadReading };

/** Which run and which assistant wrote, for the event; absent for a client of the API. */
export interface WriteOrigin {
  readonly runId?: string | undefined;
  readonly assistantId?: string | undefined;
}

export interface SetContent extends WriteOrigin {
  readonly text: string;
  /** The version that must be current; undefined writes in any case. */
  readonly expectedVersion?: string | undefined;
  /** Not empty. Remembered for 24 hours. */
  readonly idempotencyKey?: string | undefined;
}

export interface AppendEntry extends WriteOrigin {
  readonly content: string;
  /** A label of who appends; undefined for the owner's own API key. */
  readonly author?: string | undefined;
  /** Not empty. Remembered for 24 hours. */
  readonly idempotencyKey?: string | undefined;
}

export type ClearScope = 'CONTENT' | 'ENTRIES' | 'ALL';

/**
 * Knows nothing of rows: the caller has made sure that the pad exists and may be used. Texts are storable. Every method throws
 * DomainError UNAVAILABLE when Redis does not answer; a write may then have been applied, and only a retry with the same
 * idempotency key is sure not to apply it twice.
 */
export interface DataPlane {
  /** @throws DomainError CONFLICT with the current version, LIMIT_EXCEEDED, NOT_FOUND when the pad was deleted meanwhile */
  setContent(pad: PadAddress, change: SetContent): Promise<ContentState>;
  /**
   * Appends at the end of the ledger. `position` is the entry's place, for its cursor.
   * @throws DomainError LIMIT_EXCEEDED, CONFLICT for a reused key, NOT_FOUND when the pad was deleted meanwhile
   */
  appendEntry(pad: PadAddress, entry: AppendEntry): Promise<{ entry: EntryState; position: number }>;
  clear(pad: PadAddress, scope: ClearScope, origin?: WriteOrigin): Promise<void>;
  /** One round trip and one atomic step for all of them. @throws Error for a state that another program has spoiled */
  read(reads: readonly PadRead[]): Promise<PadReading[]>;
  /** The same, with an Error in the place of a state that another program has spoiled: the others are whole. */
  readEach(reads: readonly PadRead[]): Promise<(PadReading | Error)[]>;
}

export interface DataPlaneLimits {
  /** Lifetime of the state after its last write; 0 is for ever. */
  readonly scratchpadTtlSeconds: number;
  readonly maxContentBytes: number;
  readonly maxEntryBytes: number;
  readonly maxEntries: number;
  readonly formattedViewMaxBytes: number;
}

/** A longer content is not put into its event: every process that listens reads it once instead. */
export const largestContentInEventBytes = 65_536;

/** Members at the end of a JSON object whose beginning is a script's: `,"name":value}`, absent ones left out. */
function closingMembers(members: Record<string, string | undefined>): string {
  const json = JSON.stringify(members);
  return json === '{}' ? '}' : `,${json.slice(1)}`;
}

const hashOf = (...parts: (string | undefined)[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/** Why a script wrote nothing. */
type Refusal = ['GONE'] | ['FULL'] | ['REUSED'] | ['CHANGED', currentVersion: string];

function toError(refusal: Refusal, { maxEntries }: Pick<DataPlaneLimits, 'maxEntries'>): DomainError {
  const [reason, currentVersion] = refusal;
  if (reason === 'GONE') return notFound();
  if (reason === 'FULL') {
    const message = `The ledger holds ${maxEntries} entries, and no more are allowed: clear the entries first.`;
    return new DomainError('LIMIT_EXCEEDED', message);
  }
  if (reason === 'REUSED') {
    const message = 'This idempotency key was used with another input in the last 24 hours: choose a new one.';
    return new DomainError('CONFLICT', message);
  }
  const message =
    'The content has changed since the version that you expected: read it again, merge, and write with its current version.';
  return new DomainError('CONFLICT', message, { currentVersion });
}

function requireWithin(text: string, maxBytes: number, what: string): void {
  const bytes = byteLength(text);
  if (bytes > maxBytes) {
    throw new DomainError('LIMIT_EXCEEDED', `${what} has ${bytes} bytes in UTF-8; at most ${maxBytes} are allowed.`);
  }
}

/**
 * What the first append with this key returned: the entry as the ledger has it, or, when it was cleared or has expired since,
 * the same entry again out of the record and the input, which are known to be equal.
 */
function firstResult(
  recordText: string,
  row: string | null,
  appended: Pick<EntryState, 'content' | 'author' | 'runId'>,
): { entry: EntryState; position: number } {
  const { id, created_at, sequence, position } = appendRecord.parse(JSON.parse(recordText));
  const stored = row === null ? undefined : parseEntry(row);
  if (stored?.sequence === sequence) return { entry: stored, position };
  return { entry: { id, ...appended, createdAt: created_at, sequence }, position };
}

/** @throws the Error that stands in the place of a reading */
export function unspoiled(reading: PadReading | Error): PadReading {
  if (reading instanceof Error) throw reading;
  return reading;
}

export function createDataPlane({ redis, limits }: { redis: RedisAccess; limits: DataPlaneLimits }): DataPlane {
  const append = defineScript(redis.commands, appendScript);
  const set = defineScript(redis.commands, setScript);
  const clear = defineScript(redis.commands, clearScript);
  const readEach = createPadReader({ redis, viewMaxBytes: limits.formattedViewMaxBytes });

  const keysFor = (pad: PadAddress, key?: string): string[] => {
    const keys = [contentKey(pad), entriesKey(pad), sequenceKey(pad), tombstoneKey(pad.scratchpadId)];
    return key === undefined ? keys : [...keys, idempotencyIndexKey(pad), idempotencyKey(pad, key)];
  };
  const ttlSeconds = limits.scratchpadTtlSeconds;
  const eventOrigin = (origin: WriteOrigin): string =>
    closingMembers({ run_id: origin.runId, assistant_id: origin.assistantId });

  return {
    async setContent(pad, change) {
      const { text, expectedVersion } = change;
      requireWithin(text, limits.maxContentBytes, 'The content');
      const head = `{"content":${JSON.stringify(text)}`;
      const reply = (await askRedis(redis, () =>
        set(keysFor(pad, change.idempotencyKey), [
          eventChannel(pad),
          ttlSeconds,
          expectedVersion === undefined ? '' : `=${expectedVersion}`,
          head,
          eventOrigin(change),
          head.length <= largestContentInEventBytes && byteLength(head) <= largestContentInEventBytes ? '1' : '0',
          change.idempotencyKey === undefined ? '' : hashOf('set', text, expectedVersion),
        ]),
      )) as ['OK', string, string] | ['AGAIN', string] | Refusal;
      if (reply[0] === 'OK') return { text, version: reply[1], updatedAt: reply[2] };
      if (reply[0] === 'AGAIN') {
        const first = setRecord.parse(JSON.parse(reply[1]));
        return { text, version: first.version, updatedAt: first.updated_at };
      }
      throw toError(reply, limits);
    },

    async appendEntry(pad, entry) {
      const { content } = entry;
      requireWithin(content, limits.maxEntryBytes, 'The entry');
      const id = createId('entry');
      const appended = { content, author: entry.author ?? null, runId: entry.runId ?? null };
      const values = [
        eventChannel(pad),
        ttlSeconds,
        limits.maxEntries,
        `{"id":"${id}","content":${JSON.stringify(content)}`,
      ];
      const { author, runId, assistantId } = entry;
      if ((author ?? runId ?? assistantId ?? entry.idempotencyKey) !== undefined)
        values.push(closingMembers({ author, run_id: runId }), eventOrigin(entry));
      if (entry.idempotencyKey !== undefined) values.push(id, hashOf('append', content));
      const reply = (await askRedis(redis, () => append(keysFor(pad, entry.idempotencyKey), values))) as
        ['OK', string, string, number] | ['AGAIN', string, string | null] | Refusal;
      if (reply[0] === 'OK') {
        const [, sequence, createdAt, position] = reply;
        return { entry: { id, ...appended, createdAt, sequence: Number(sequence) }, position };
      }
      if (reply[0] === 'AGAIN') return firstResult(reply[1], reply[2], appended);
      throw toError(reply, limits);
    },

    async clear(pad, scope, origin = {}) {
      const reply = (await askRedis(redis, () =>
        clear(keysFor(pad), [eventChannel(pad), ttlSeconds, scope, eventOrigin(origin)]),
      )) as ['OK', string] | Refusal;
      if (reply[0] !== 'OK') throw toError(reply, limits);
    },

    read: async (reads) => (await readEach(reads)).map(unspoiled),
    readEach,
  };
}
