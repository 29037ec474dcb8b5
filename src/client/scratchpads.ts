// Scratchpads: the resource, its content, its ledger, and what happens to them.
import { ScratchpadError } from './client-error.js';
import type { CallOptions, GraphqlClient } from './graphql-client.js';
import {
  appendEntryOperation,
  clearContentOperation,
  clearEntriesOperation,
  clearOperation,
  contentOperation,
  createScratchpadOperation,
  deleteScratchpadOperation,
  entriesOperation,
  eventCursorOperation,
  followEntriesOperation,
  scratchpadByThreadOperation,
  scratchpadEventsOperation,
  scratchpadOperation,
  scratchpadsOperation,
  scratchpadStateOperation,
  setContentOperation,
  updateScratchpadOperation,
  type ContentFieldsFragment,
  type EntryFieldsFragment,
  type FollowEntriesSubscription,
  type JsonObject,
  type ScratchpadEventsSubscription,
  type ScratchpadFieldsFragment,
  type ScratchpadOperation,
} from './operations.js';
import { boundsOf, toPage, type Page, type PageOptions } from './page.js';
import { performed } from './performed.js';
import { resumed, type FollowOptions } from './resumed.js';

export interface Scratchpad extends Omit<ScratchpadFieldsFragment, 'owner' | 'thread'> {
  /** Null for an agent token, which sees the scratchpad and nothing around it. */
  ownerId: string | null;
  threadId: string | null;
}

/** The replaceable body. Empty text, version "0" and a null updatedAt when nothing was ever set. */
export type Content = ContentFieldsFragment;
/** One finding in the ledger. */
export type Entry = EntryFieldsFragment;

/** All of the working state at one moment. */
export interface ScratchpadState {
  content: Content;
  entryCount: number;
  /** Both in one text, bounded: what an agent reads. */
  formattedView: string;
  /** Given to `events` as `after`, it goes on from exactly here. */
  eventCursor: string;
  /** When the working state expires unless written again; null when it is empty or never expires. */
  expiresAt: string | null;
}

type EventFields = ScratchpadEventsSubscription['scratchpadEvents'];
type Change =
  | { operation: 'APPEND'; entry: Entry; content: null }
  | { operation: 'UPDATE'; entry: null; content: Content }
  | { operation: Exclude<ScratchpadOperation, 'APPEND' | 'UPDATE' | 'READ'>; entry: null; content: null };
/** A change to a scratchpad. `operation` tells which of `entry` and `content` is there. */
export type ScratchpadEvent = Omit<EventFields, keyof Change> & Change;

/** An entry, and the place of its append: given back as `after`, it goes on behind it. */
export type FollowedEntry = Entry & { cursor: string };

export interface EventOptions extends FollowOptions {
  /**
   * Where to begin: behind the cursor of an event or an `eventCursor`; "" with all that is there. Default: what happens from the first
   * `next()` on.
   */
  after?: string | null | undefined;
}

export interface EntryOptions extends FollowOptions {
  /** Only what was appended behind this cursor of an entry or event. Default: from the beginning of the ledger. */
  after?: string | null | undefined;
}

/** @throws ScratchpadError, each of them; NOT_FOUND also for what belongs to somebody else */
export interface Scratchpads {
  /** CONFLICT when the thread has one already. */
  create(input: { threadId: string; metaData?: JsonObject | undefined }, options?: CallOptions): Promise<Scratchpad>;
  retrieve(scratchpadId: string, options?: CallOptions): Promise<Scratchpad>;
  /** NOT_FOUND also when the thread has none. */
  retrieveByThread(threadId: string, options?: CallOptions): Promise<Scratchpad>;
  /** Oldest first. */
  list(options?: PageOptions & CallOptions): Promise<Page<Scratchpad>>;
  /** Replaces the metadata as a whole. */
  update(scratchpadId: string, input: { metaData: JsonObject }, options?: CallOptions): Promise<Scratchpad>;
  /** With all that it holds; its thread stays. */
  delete(scratchpadId: string, options?: CallOptions): Promise<void>;
  getState(scratchpadId: string, options?: CallOptions): Promise<ScratchpadState>;
  getContent(scratchpadId: string, options?: CallOptions): Promise<Content>;
  /**
   * With `expectedVersion` it is refused (CONFLICT with `currentVersion`) when the content has changed since. It is sent again after a
   * fault only with an `idempotencyKey`: somebody else may have written meanwhile.
   */
  setContent(
    scratchpadId: string,
    input: { text: string; expectedVersion?: string | undefined; idempotencyKey?: string | undefined },
    options?: CallOptions,
  ): Promise<Content>;
  /** Empties the content; the entries stay. */
  clearContent(scratchpadId: string, options?: CallOptions): Promise<void>;
  /**
   * Written once, however often it has to be sent: without an `idempotencyKey` it gets one. Your own one makes that true also for a
   * second call, within 24 hours.
   */
  appendEntry(
    scratchpadId: string,
    input: { content: string; idempotencyKey?: string | undefined },
    options?: CallOptions,
  ): Promise<Entry>;
  /** In the order of the appends. */
  listEntries(scratchpadId: string, options?: PageOptions & CallOptions): Promise<Page<Entry>>;
  /** Empties the ledger; the content stays. */
  clearEntries(scratchpadId: string, options?: CallOptions): Promise<void>;
  /** Empties content and ledger; the scratchpad and its id stay. */
  clear(scratchpadId: string, options?: CallOptions): Promise<void>;
  /**
   * Every change, once and in order, for ever: it connects again by itself behind the last event that you took. Ends behind DELETE and
   * when the signal is aborted. What was missed comes with `replayed: true`, as the changes that lead to the state that there is.
   * @throws ScratchpadError for what no new connection mends
   */
  events(scratchpadId: string, options?: EventOptions): AsyncGenerator<ScratchpadEvent, undefined>;
  /**
   * The ledger from its beginning, and then every entry as it is appended, each once; for ever, like `events`. Entries that were cleared
   * before they could be told are left out.
   * @throws ScratchpadError for what no new connection mends
   */
  entries(scratchpadId: string, options?: EntryOptions): AsyncGenerator<FollowedEntry, undefined>;
}

const toScratchpad = ({ owner, thread, ...rest }: ScratchpadFieldsFragment): Scratchpad => ({
  ...rest,
  ownerId: owner?.id ?? null,
  threadId: thread?.id ?? null,
});

/** crypto.randomUUID would be missing on pages without TLS. */
const createKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

const isDeletion = ({ operation }: { operation: ScratchpadOperation }): boolean => operation === 'DELETE';

/** So many entries are remembered, to tell none twice when Redis lost its last moments and the ledger is told anew. */
const mostRemembered = 100_000;

export function createScratchpads(client: GraphqlClient): Scratchpads {
  const found = <Thing>(thing: Thing | null | undefined): Thing => {
    if (thing == null) throw new ScratchpadError('NOT_FOUND', 'There is no such scratchpad, or it is not yours.');
    return thing;
  };
  const fetchCursor = async (id: string, options: CallOptions): Promise<string> => {
    const { scratchpad } = await performed(client, eventCursorOperation, { id }, options);
    return found(found(scratchpad).eventCursor);
  };

  return {
    async create({ threadId, metaData }, options) {
      const variables = { threadId, metaData };
      const { createScratchpad } = await performed(client, createScratchpadOperation, variables, options);
      return toScratchpad(createScratchpad.scratchpad);
    },
    async retrieve(id, options) {
      return toScratchpad(found((await performed(client, scratchpadOperation, { id }, options)).scratchpad));
    },
    async retrieveByThread(threadId, options) {
      const { scratchpadByThread } = await performed(client, scratchpadByThreadOperation, { threadId }, options);
      return toScratchpad(found(scratchpadByThread));
    },
    async list(options = {}) {
      const { scratchpads } = await performed(client, scratchpadsOperation, boundsOf(options), options);
      return toPage(scratchpads, toScratchpad);
    },
    async update(id, { metaData }, options) {
      const { updateScratchpad } = await performed(client, updateScratchpadOperation, { id, metaData }, options);
      return toScratchpad(updateScratchpad.scratchpad);
    },
    async delete(id, options) {
      await performed(client, deleteScratchpadOperation, { id }, options);
    },

    async getState(id, options) {
      const state = found((await performed(client, scratchpadStateOperation, { id }, options)).scratchpad);
      return {
        content: found(state.content),
        entryCount: found(state.entryCount),
        formattedView: found(state.formattedView),
        eventCursor: found(state.eventCursor),
        expiresAt: state.expiresAt,
      };
    },
    async getContent(id, options) {
      return found(found((await performed(client, contentOperation, { id }, options)).scratchpad).content);
    },
    async setContent(id, { text, expectedVersion, idempotencyKey }, options) {
      const variables = { id, text, expectedVersion, idempotencyKey };
      const isRepeatable = idempotencyKey !== undefined;
      const result = await performed(client, setContentOperation, variables, { ...options, isRepeatable });
      return result.setScratchpadContent.content;
    },
    async clearContent(id, options) {
      await performed(client, clearContentOperation, { id }, options);
    },
    async appendEntry(id, { content, idempotencyKey = createKey() }, options) {
      const variables = { id, content, idempotencyKey };
      const result = await performed(client, appendEntryOperation, variables, { ...options, isRepeatable: true });
      return result.appendScratchpadEntry.entry;
    },
    async listEntries(id, options = {}) {
      const variables = { id, ...boundsOf(options) };
      const { scratchpad } = await performed(client, entriesOperation, variables, options);
      return toPage(found(found(scratchpad).entries), (entry) => entry);
    },
    async clearEntries(id, options) {
      await performed(client, clearEntriesOperation, { id }, options);
    },
    async clear(id, options) {
      await performed(client, clearOperation, { id }, options);
    },

    events(id, { after, ...options } = {}) {
      return resumed<ScratchpadEvent>(
        {
          // Without a place to come back to, what happens before the first event could be lost with the connection.
          begin: () => after ?? fetchCursor(id, options),
          async *open(cursor, connection) {
            type Data = { scratchpadEvents: ScratchpadEvent };
            const results = client.subscribe<Data>(scratchpadEventsOperation, { id, after: cursor }, connection);
            for await (const { scratchpadEvents } of results) yield scratchpadEvents;
          },
          isLast: isDeletion,
        },
        options,
      );
    },

    async *entries(id, { after, ...options } = {}) {
      const told = new Set<string>();
      const changes = resumed<FollowEntriesSubscription['scratchpadEvents']>(
        {
          begin: () => after ?? '',
          async *open(cursor, connection) {
            const variables = { id, after: cursor };
            const results = client.subscribe<FollowEntriesSubscription>(followEntriesOperation, variables, connection);
            for await (const { scratchpadEvents } of results) yield scratchpadEvents;
          },
          isLast: isDeletion,
        },
        options,
      );
      for await (const { entry, cursor } of changes) {
        if (!entry || told.has(entry.id)) continue;
        told.add(entry.id);
        if (told.size > mostRemembered) told.delete(told.values().next().value!);
        yield { ...entry, cursor };
      }
      return undefined;
    },
  };
}
