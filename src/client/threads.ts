// Threads: the conversations that scratchpads belong to.
import { ScratchpadError } from './client-error.js';
import type { CallOptions, GraphqlClient } from './graphql-client.js';
import {
  createThreadOperation,
  deleteThreadOperation,
  threadOperation,
  threadsOperation,
  updateThreadOperation,
  type JsonObject,
  type ThreadFieldsFragment,
} from './operations.js';
import { boundsOf, emptyPage, toPage, type Page, type PageOptions } from './page.js';
import { performed } from './performed.js';

export interface Thread extends Omit<ThreadFieldsFragment, 'owner'> {
  ownerId: string;
}

const toThread = ({ owner, ...rest }: ThreadFieldsFragment): Thread => ({ ...rest, ownerId: owner.id });

/** @throws ScratchpadError, each of them */
export interface Threads {
  create(input?: { metaData?: JsonObject | undefined }, options?: CallOptions): Promise<Thread>;
  retrieve(threadId: string, options?: CallOptions): Promise<Thread>;
  /** Oldest first. */
  list(options?: PageOptions & CallOptions): Promise<Page<Thread>>;
  /** Replaces the metadata as a whole. */
  update(threadId: string, input: { metaData: JsonObject }, options?: CallOptions): Promise<Thread>;
  /** Takes its messages and its scratchpad along. */
  delete(threadId: string, options?: CallOptions): Promise<void>;
}

export function createThreads(client: GraphqlClient): Threads {
  return {
    async create({ metaData } = {}, options) {
      const { createThread } = await performed(client, createThreadOperation, { metaData }, options);
      return toThread(createThread.thread);
    },
    async retrieve(id, options) {
      const { thread } = await performed(client, threadOperation, { id }, options);
      if (!thread) throw new ScratchpadError('NOT_FOUND', `There is no thread ${id}, or it is not yours.`);
      return toThread(thread);
    },
    async list(options = {}) {
      const { viewer } = await performed(client, threadsOperation, boundsOf(options), options);
      // An agent token sees no thread.
      return viewer ? toPage(viewer.threads, toThread) : emptyPage();
    },
    async update(id, { metaData }, options) {
      const { updateThread } = await performed(client, updateThreadOperation, { id, metaData }, options);
      return toThread(updateThread.thread);
    },
    async delete(id, options) {
      await performed(client, deleteThreadOperation, { id }, options);
    },
  };
}
