// Every REST operation that takes an id, and how to call it: what the walks over the OpenAPI document know beside it.
import type { RestAnswer, RestClient } from '../support/rest-client.js';
import { newPad, newThread } from '../support/rest-client.js';

export type RestKind = 'user' | 'thread' | 'message' | 'scratchpad';

/** What a request says beside its id. */
export interface Saying {
  body?: object;
  headers?: Record<string, string>;
  query?: string;
}

export interface Recipe {
  kind: RestKind;
  /** The first one works for an id of one's own; the others must not make a difference for an id that is not. */
  sayings: Saying[];
  /** Where the id is, if it is not in the path. */
  bodyId?: 'thread_id';
  /** A fresh thing of the caller's own, for operations that work once. */
  fresh?: (rest: RestClient) => Promise<string>;
}

const plain: Saying[] = [{}];
const intrusion = 'an intrusion';
const tooLong = 'x'.repeat(3000);

/** The owner of what is asked for has appended it with this key. */
export const usedKey = { 'idempotency-key': 'append' };

/** Limits that the sayings go beyond. */
export const environment = { MAX_CONTENT_BYTES: '2000', MAX_ENTRY_BYTES: '1000' };

/** `owner` is the name of the tenant whose things are asked for. */
export const recipesFor = (owner: string): Record<string, Recipe> => ({
  retrieveThread: { kind: 'thread', sayings: plain },
  updateThread: { kind: 'thread', sayings: [{ body: { meta_data: { an: 'intrusion' } } }, {}, { body: {} }] },
  replaceThreadMetaData: { kind: 'thread', sayings: [{ body: { an: 'intrusion' } }] },
  deleteThread: { kind: 'thread', sayings: plain, fresh: newThread },
  listThreadIds: { kind: 'user', sayings: [{}, { query: '?limit=1' }, { query: '?after=x' }] },
  listThreads: { kind: 'user', sayings: [{}, { query: '?limit=1' }, { query: '?after=x' }] },
  createMessage: {
    kind: 'thread',
    sayings: [{ body: { content: intrusion } }, { body: { content: ' ' } }, { body: { content: tooLong } }],
    bodyId: 'thread_id',
  },
  listMessages: { kind: 'thread', sayings: [{}, { query: '?limit=1&order=desc' }, { query: '?after=x' }] },
  retrieveMessage: { kind: 'message', sayings: plain },
  deleteMessage: {
    kind: 'message',
    sayings: plain,
    fresh: async (rest) =>
      (await rest.take<{ id: string }>('POST', '/v1/messages', { thread_id: await newThread(rest), content: 'x' })).id,
  },
  createScratchpad: { kind: 'thread', sayings: [{ body: {} }], bodyId: 'thread_id', fresh: newThread },
  retrieveScratchpad: { kind: 'scratchpad', sayings: plain },
  retrieveScratchpadByThread: { kind: 'thread', sayings: plain },
  updateScratchpad: { kind: 'scratchpad', sayings: [{ body: { meta_data: { an: 'intrusion' } } }, {}, { body: {} }] },
  deleteScratchpad: { kind: 'scratchpad', sayings: plain, fresh: (rest) => newPad(rest) },
  getContent: { kind: 'scratchpad', sayings: [{}, { headers: { 'if-none-match': '*' } }] },
  setContent: {
    kind: 'scratchpad',
    sayings: [
      { body: { content: intrusion }, headers: { 'if-match': '*' } },
      { body: { content: intrusion }, headers: { 'if-match': '"0", "1"' } },
      { body: { content: intrusion }, headers: { 'if-match': 'nonsense' } },
      { body: { content: tooLong } },
    ],
  },
  clearContent: { kind: 'scratchpad', sayings: plain },
  appendEntry: {
    kind: 'scratchpad',
    sayings: [
      { body: { content: `${owner} found` }, headers: usedKey },
      { body: { content: intrusion }, headers: usedKey },
      { body: { content: ' ' } },
      { body: { content: tooLong } },
    ],
    fresh: (rest) => newPad(rest),
  },
  listEntries: { kind: 'scratchpad', sayings: [{}, { query: '?limit=1' }, { query: '?after=x' }] },
  clearEntries: { kind: 'scratchpad', sayings: plain },
  clearScratchpad: { kind: 'scratchpad', sayings: [{ body: {} }, {}] },
  readScratchpadTool: { kind: 'thread', sayings: [{ body: {} }], bodyId: 'thread_id' },
  updateScratchpadTool: {
    kind: 'thread',
    sayings: [{ body: { content: intrusion } }, { body: { content: tooLong } }],
    bodyId: 'thread_id',
  },
  appendScratchpadTool: {
    kind: 'thread',
    sayings: [{ body: { note: intrusion } }, { body: { note: tooLong } }, { body: { note: ' ' } }],
    bodyId: 'thread_id',
  },
});

/** They take no id at all. */
export const takingNone = ['createThread', 'listScratchpads'];

export interface RestOperation {
  method: string;
  path: string;
  responses: Record<string, { description: string }>;
}

/** What the OpenAPI document has, by operationId. */
export async function readOperations(rest: RestClient): Promise<Map<string, RestOperation>> {
  type Documented = { operationId: string; responses: RestOperation['responses'] };
  const { paths } = await rest.take<{ paths: Record<string, Record<string, Documented>> }>('GET', '/v1/openapi.json');
  return new Map(
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId, responses }]) => [
        operationId,
        { method: method.toUpperCase(), path, responses },
      ]),
    ),
  );
}

export function callOperation(
  rest: RestClient,
  { method, path }: RestOperation,
  { bodyId }: Pick<Recipe, 'bodyId'>,
  { body, headers, query = '' }: Saying,
  id: string,
): Promise<RestAnswer> {
  const target = path.replaceAll(/\{\w+\}/g, encodeURIComponent(id)) + query;
  return rest.send(method, target, { body: bodyId === undefined ? body : { ...body, [bodyId]: id }, headers });
}

/** All that two answers to the same question have in common, if they are the same. */
export function bytesOf({ status, headers, text }: RestAnswer): string {
  const requestId = headers.get('x-request-id') ?? '';
  const shown = [...headers].filter(([header]) => !['date', 'x-request-id'].includes(header));
  return JSON.stringify([status, shown, text.replace(requestId, 'REQUEST')]);
}
