// The owner-scoped facade of scratchpads: identity in SQL and state in Redis meet here and nowhere else.
import { z } from 'zod';
import type { Prisma, Scratchpad } from '../generated/prisma/client.js';
import { ownerForPad, roleAllows, type PadAction } from '../identity/agent-access.js';
import { findOwner, requireOwner, requireTenant, type Principal } from '../identity/principal.js';
import { DomainError, notFound, parseInput } from '../shared/errors.js';
import { jsonObject, type JsonObject } from '../shared/json.js';
import type { Logger } from '../shared/logger.js';
import { storableText } from '../shared/text.js';
import { createAgentChanges, entryWithoutRun, readingWithoutRuns } from './agent-view.js';
import {
  unspoiled,
  type ContentState,
  type DataPlane,
  type EntryState,
  type PadAddress,
  type PadRead,
  type PadReading,
} from './data-plane.js';
import type { EventPlane, ScratchpadChange } from './event-plane.js';
import type { IdentityPlane } from './identity-plane.js';
import type { ConvergeNotebook } from './legacy-notebook.js';
import { createWaitingNotebooks } from './waiting-notebooks.js';

const newPad = z.object({ threadId: z.string(), metaData: jsonObject.nullish() });
const metaDataChange = z.object({ metaData: jsonObject });
const idempotencyKey = storableText
  .refine((key) => key.length >= 1 && key.length <= 200, 'must have 1 to 200 characters')
  .nullish();
const contentChange = z.object({ text: storableText, expectedVersion: storableText.nullish(), idempotencyKey });
const newEntry = z.object({
  content: storableText.refine((text) => text.trim() !== '', 'must not be blank'),
  idempotencyKey,
});

/** Who made a change, for the entry and its event; absent for a client of the API. An agent is always the author of what it appends. */
export interface Origin {
  author?: string;
  runId?: string;
  assistantId?: string;
}

export interface ContentInput {
  text: string;
  expectedVersion?: string | null;
  idempotencyKey?: string | null;
}

export interface EntryInput {
  content: string;
  idempotencyKey?: string | null;
}

/** Which working state to clear. The resource, its id and its thread stay. */
export type ClearScope = 'CONTENT' | 'ENTRIES' | 'ALL';

/**
 * Every method takes the principal first and reaches only what is its own: whatever else an id names is NOT_FOUND (or null
 * for a look-up). An agent's own is its one scratchpad, with which its role may do some things; the others are FORBIDDEN. It is told
 * nothing of the runs that write there. Every method may throw DomainError UNAVAILABLE when a store does not answer.
 */
export interface ScratchpadService {
  find(principal: Principal, scratchpadId: string, query?: Prisma.ScratchpadDefaultArgs): Promise<Scratchpad | null>;
  /** Creates nothing. An agent sees no thread, so it finds nothing by one. */
  findByThread(
    principal: Principal,
    threadId: string,
    query?: Prisma.ScratchpadDefaultArgs,
  ): Promise<Scratchpad | null>;
  /** The principal's pads, narrowed and ordered by `query`; an agent has one. */
  list(principal: Principal, query: Prisma.ScratchpadFindManyArgs): Promise<Scratchpad[]>;
  count(principal: Principal): Promise<number>;
  /** @throws DomainError NOT_FOUND for the thread, CONFLICT when it has a scratchpad already */
  create(principal: Principal, input: { threadId: string; metaData?: JsonObject | null }): Promise<Scratchpad>;
  /** The thread's scratchpad, made now if it has none; exactly one, whoever races. For runs and tool routes, never for queries. */
  ensureForThread(principal: Principal, threadId: string): Promise<Scratchpad>;
  /** Replaces the metadata as a whole; null and undefined leave them as they are. */
  updateMetaData(
    principal: Principal,
    scratchpadId: string,
    metaData: JsonObject | null | undefined,
  ): Promise<Scratchpad>;
  /** Cancels the active runs that work on it, then removes the row and everything that Redis holds for it. */
  delete(principal: Principal, scratchpadId: string): Promise<string>;

  /** @throws DomainError CONFLICT with the current version when `expectedVersion` is not current; LIMIT_EXCEEDED */
  setContent(principal: Principal, scratchpadId: string, input: ContentInput, origin?: Origin): Promise<ContentState>;
  /** `position` is the entry's place in the ledger. @throws DomainError INVALID_INPUT when blank; CONFLICT; LIMIT_EXCEEDED */
  appendEntry(
    principal: Principal,
    scratchpadId: string,
    input: EntryInput,
    origin?: Origin,
  ): Promise<{ entry: EntryState; position: number }>;
  clear(principal: Principal, scratchpadId: string, scope: ClearScope, origin?: Origin): Promise<void>;

  /**
   * Reads the working state of pads that were found through this service, all in one round trip and one atomic step.
   * The readings come in the order of the reads. @throws Error for a state that another program has spoiled
   */
  read(principal: Principal, reads: readonly PadRead[]): Promise<PadReading[]>;
  /** The same for one pad by its id, which is looked up now: also a pad that was deleted this moment is NOT_FOUND. */
  readState(principal: Principal, scratchpadId: string, wishes: Omit<PadRead, 'pad'>): Promise<PadReading>;
  /** The same, with an Error in the place of a state that another program has spoiled: the others are whole. */
  readEach(principal: Principal, reads: readonly PadRead[]): Promise<(PadReading | Error)[]>;
  /** Both planes in one bounded text: what an agent reads. */
  formattedView(principal: Principal, scratchpadId: string): Promise<string>;
  /**
   * Every change from now on, or from just behind the cursor `after`. Resolves once nothing can be missed any more. A cursor of a
   * pad that was deleted meanwhile gets DELETE and the end.
   */
  subscribe(
    principal: Principal,
    scratchpadId: string,
    options: { after?: string | null },
  ): Promise<AsyncIterableIterator<ScratchpadChange>>;
}

interface Dependencies {
  identityPlane: IdentityPlane;
  dataPlane: DataPlane;
  eventPlane: Pick<EventPlane, 'subscribe' | 'farewell'>;
  convergeNotebook: ConvergeNotebook;
  /** Called before a scratchpad goes. */
  cancelRuns: (scope: PadAddress) => Promise<void>;
  /** Makes Redis follow the delete that was just committed; never throws. */
  purgeOwner: (ownerId: string) => Promise<void>;
  logger: Logger;
}

export function createScratchpadService(dependencies: Dependencies): ScratchpadService {
  const { identityPlane, dataPlane, eventPlane, convergeNotebook, cancelRuns, purgeOwner, logger } = dependencies;
  const agentChanges = createAgentChanges();

  const waitingNotebooks = createWaitingNotebooks(convergeNotebook);

  /** The one check before every use of a pad: it is there, it is the principal's, and the principal may do this with it. */
  function requirePad(principal: Principal, scratchpadId: string, action: PadAction): PadAddress | Promise<PadAddress> {
    const pad = { ownerId: ownerForPad(principal, scratchpadId, action), scratchpadId };
    const isThere = identityPlane.exists(pad.ownerId, scratchpadId);
    const unlessMissing = (found: boolean): PadAddress => {
      if (!found) throw notFound();
      return pad;
    };
    // Mostly it is known, and nothing has to be waited for.
    return isThere instanceof Promise ? isThere.then(unlessMissing) : unlessMissing(isThere);
  }

  async function create(principal: Principal, threadId: string, metaData: JsonObject): Promise<Scratchpad> {
    const pad = await identityPlane.create(requireOwner(principal).userId, threadId, metaData);
    try {
      await convergeNotebook({ ownerId: pad.ownerId, scratchpadId: pad.id }, threadId);
    } catch (error) {
      // The resource exists: with Redis away its legacy notebook waits, and the caller has its pad.
      if (!(error instanceof DomainError && error.code === 'UNAVAILABLE')) throw error;
      waitingNotebooks.wait({ ownerId: pad.ownerId, scratchpadId: pad.id }, threadId);
      logger.warn({ error, threadId }, 'could not look for a legacy notebook');
    }
    return pad;
  }

  const readEach: ScratchpadService['readEach'] = async (principal, reads) => {
    for (const { pad } of reads) {
      if (ownerForPad(principal, pad.scratchpadId, 'READ') !== pad.ownerId) throw notFound();
    }
    const readings = await dataPlane.readEach(reads);
    return principal.kind === 'agent' ? readings.map(readingWithoutRuns) : readings;
  };

  return {
    async find(principal, scratchpadId, query) {
      const tenant = requireTenant(principal);
      if (tenant.kind === 'user') return await identityPlane.find(tenant.userId, scratchpadId, query);
      if (tenant.scratchpadId !== scratchpadId || !roleAllows(tenant.role, 'READ')) return null;
      return await identityPlane.find(tenant.ownerId, scratchpadId, query);
    },

    async findByThread(principal, threadId, query) {
      const owner = findOwner(principal);
      return owner && (await identityPlane.findByThread(owner.userId, threadId, query));
    },

    async list(principal, query) {
      const tenant = requireTenant(principal);
      if (tenant.kind === 'user') return await identityPlane.list(tenant.userId, query);
      const where = { AND: [{ id: tenant.scratchpadId }, query.where ?? {}] };
      return await identityPlane.list(tenant.ownerId, { ...query, where });
    },

    async count(principal) {
      const tenant = requireTenant(principal);
      if (tenant.kind === 'user') return await identityPlane.count(tenant.userId);
      return (await identityPlane.existsNow(tenant.ownerId, tenant.scratchpadId)) ? 1 : 0;
    },

    async create(principal, input) {
      requireOwner(principal);
      const { threadId, metaData } = parseInput(newPad, input);
      return await create(principal, threadId, metaData ?? {});
    },

    async ensureForThread(principal, threadId) {
      const ownerId = requireOwner(principal).userId;
      const existing = await identityPlane.findByThread(ownerId, threadId);
      if (existing) {
        await convergeNotebook({ ownerId, scratchpadId: existing.id }, threadId);
        return existing;
      }
      try {
        return await create(principal, threadId, {});
      } catch (error) {
        if (!(error instanceof DomainError && error.code === 'CONFLICT')) throw error;
        const winner = await identityPlane.findByThread(ownerId, threadId);
        if (!winner) throw notFound();
        return winner;
      }
    },

    async updateMetaData(principal, scratchpadId, metaData) {
      const ownerId = ownerForPad(principal, scratchpadId, 'MANAGE');
      if (metaData == null) {
        const pad = await identityPlane.find(ownerId, scratchpadId);
        if (!pad) throw notFound();
        return pad;
      }
      const change = parseInput(metaDataChange, { metaData });
      return await identityPlane.updateMetaData(ownerId, scratchpadId, change.metaData);
    },

    async delete(principal, scratchpadId) {
      const { ownerId } = await requirePad(principal, scratchpadId, 'MANAGE');
      await cancelRuns({ ownerId, scratchpadId });
      await identityPlane.delete(ownerId, scratchpadId);
      await purgeOwner(ownerId);
      return scratchpadId;
    },

    async setContent(principal, scratchpadId, input, origin = {}) {
      ownerForPad(principal, scratchpadId, 'REPLACE');
      const change = parseInput(contentChange, input);
      const pad = await requirePad(principal, scratchpadId, 'REPLACE');
      await waitingNotebooks.settle(pad);
      return await dataPlane.setContent(pad, {
        text: change.text,
        expectedVersion: change.expectedVersion ?? undefined,
        idempotencyKey: change.idempotencyKey ?? undefined,
        ...origin,
      });
    },

    async appendEntry(principal, scratchpadId, input, origin = {}) {
      ownerForPad(principal, scratchpadId, 'APPEND');
      const { content, idempotencyKey: key } = parseInput(newEntry, input);
      const found = requirePad(principal, scratchpadId, 'APPEND');
      const pad = found instanceof Promise ? await found : found;
      const settling = waitingNotebooks.settle(pad);
      if (settling) await settling;
      const isAgent = principal.kind === 'agent';
      const author = isAgent ? principal.name : origin.author;
      const entry = { content, idempotencyKey: key ?? undefined, ...origin, author };
      const appended = await dataPlane.appendEntry(pad, entry);
      return isAgent ? { ...appended, entry: entryWithoutRun(appended.entry) } : appended;
    },

    async clear(principal, scratchpadId, scope, origin = {}) {
      const pad = await requirePad(principal, scratchpadId, 'MANAGE');
      await waitingNotebooks.settle(pad);
      await dataPlane.clear(pad, scope, origin);
    },

    readEach,
    read: async (principal, reads) => (await readEach(principal, reads)).map(unspoiled),

    async readState(principal, scratchpadId, wishes) {
      const ownerId = ownerForPad(principal, scratchpadId, 'READ');
      if (!(await identityPlane.find(ownerId, scratchpadId))) throw notFound();
      const [reading = {}] = await dataPlane.read([{ ...wishes, pad: { ownerId, scratchpadId } }]);
      return unspoiled(principal.kind === 'agent' ? readingWithoutRuns(reading) : reading);
    },

    async formattedView(principal, scratchpadId) {
      const pad = await requirePad(principal, scratchpadId, 'READ');
      const [reading] = await dataPlane.read([{ pad, formattedView: true }]);
      return reading?.formattedView ?? '';
    },

    async subscribe(principal, scratchpadId, { after }) {
      const ownerId = ownerForPad(principal, scratchpadId, 'READ');
      const pad = { ownerId, scratchpadId };
      if (await identityPlane.exists(ownerId, scratchpadId)) {
        const changes = await eventPlane.subscribe(pad, after == null ? {} : { after });
        return principal.kind === 'agent' ? agentChanges(changes) : changes;
      }
      const farewell = eventPlane.farewell(pad, after ?? undefined);
      if (!farewell) throw notFound();
      return farewell;
    },
  };
}
