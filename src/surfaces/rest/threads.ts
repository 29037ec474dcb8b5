// /v1/threads
import { createRoute, z } from '@hono/zod-openapi';
import type { Thread } from '../../generated/prisma/client.js';
import { agentRoles, requireOwner } from '../../identity/principal.js';
import { notFound } from '../../shared/errors.js';
import type { ThreadService } from '../../threads/thread-service.js';
import {
  metaDataInput,
  optionalMetaDataInput,
  metaDataOutput,
  toMetaData,
  toUnixSeconds,
  unixSeconds,
} from './fields.js';
import { linkToNext, listHeaders, listQuery, readList, rowsById } from './lists.js';
import {
  bodyProblems,
  forbiddenTo,
  jsonAnswer,
  jsonBody,
  optionalJsonBody,
  pathId,
  threadParams,
  problems,
  requireBody,
  type RestRouter,
} from './router.js';

const tags = ['threads'];
const request = { params: threadParams };
const userParams = z.object({ user_id: pathId('user_id', 'user_01KGAZ…') });

const threadFields = {
  id: z.string(),
  object: z.literal('thread'),
  created_at: unixSeconds,
  owner_id: z.string(),
  meta_data: metaDataOutput,
  tool_resources: z.strictObject({}).openapi({ description: 'Always empty.' }),
};
const thread = z.strictObject(threadFields).openapi('Thread');
const threadInDetail = z
  .strictObject({ ...threadFields, participants: z.array(z.strictObject({ id: z.string() })) })
  .openapi('ThreadInDetail');
const threadDeleted = z
  .strictObject({ id: z.string(), object: z.literal('thread.deleted'), deleted: z.literal(true) })
  .openapi('ThreadDeleted');

const newThread = z.strictObject({ meta_data: optionalMetaDataInput }).openapi('ThreadCreate');
const threadChange = z
  .strictObject({
    meta_data: optionalMetaDataInput,
    participant_ids: z.null().optional().openapi({ description: 'A thread belongs to one user, for ever.' }),
    tool_resources: z.strictObject({}).nullish().openapi({ description: 'Threads have none.' }),
  })
  .openapi('ThreadUpdate');

const present = (row: Thread): z.output<typeof thread> => ({
  id: row.id,
  object: 'thread',
  created_at: toUnixSeconds(row.createdAt),
  owner_id: row.ownerId,
  meta_data: toMetaData(row.metaData),
  tool_resources: {},
});

const presentInDetail = (row: Thread): z.output<typeof threadInDetail> => ({
  ...present(row),
  participants: [{ id: row.ownerId }],
});

const createThread = createRoute({
  method: 'post',
  path: '/v1/threads',
  operationId: 'createThread',
  tags,
  request: { body: optionalJsonBody(newThread) },
  responses: { 201: jsonAnswer('The new thread.', thread), ...problems(...bodyProblems), ...forbiddenTo(agentRoles) },
});

const retrieveThread = createRoute({
  method: 'get',
  path: '/v1/threads/{thread_id}',
  operationId: 'retrieveThread',
  tags,
  request,
  responses: { 200: jsonAnswer('The thread.', thread), ...problems('NOT_FOUND') },
});

const updateThread = createRoute({
  method: 'put',
  path: '/v1/threads/{thread_id}',
  operationId: 'updateThread',
  tags,
  request: { ...request, body: optionalJsonBody(threadChange) },
  responses: {
    200: jsonAnswer('The thread as it is now.', threadInDetail),
    ...problems('NOT_FOUND', ...bodyProblems),
  },
});

const replaceMetaData = createRoute({
  method: 'put',
  path: '/v1/threads/{thread_id}/metadata',
  operationId: 'replaceThreadMetaData',
  middleware: requireBody,
  tags,
  request: { ...request, body: jsonBody(metaDataInput) },
  responses: { 200: jsonAnswer('The thread as it is now.', thread), ...problems('NOT_FOUND', ...bodyProblems) },
});

const deleteThread = createRoute({
  method: 'delete',
  path: '/v1/threads/{thread_id}',
  operationId: 'deleteThread',
  description: 'Takes its messages and its scratchpad along.',
  tags,
  request,
  responses: { 200: jsonAnswer('It is gone.', threadDeleted), ...problems('NOT_FOUND') },
});

const listRequest = { params: userParams, query: listQuery };
const listProblems = problems('NOT_FOUND', 'LIMIT_EXCEEDED');

const listThreadIds = createRoute({
  method: 'get',
  path: '/v1/threads/user/{user_id}',
  operationId: 'listThreadIds',
  description: 'The ids of the caller’s own threads, oldest first. Another user’s id is not found.',
  tags,
  request: listRequest,
  responses: { 200: { ...jsonAnswer('Ids.', z.array(z.string())), headers: listHeaders }, ...listProblems },
});

const listThreads = createRoute({
  method: 'get',
  path: '/v1/threads/user/{user_id}/records',
  operationId: 'listThreads',
  description: 'The caller’s own threads, oldest first. Another user’s id is not found.',
  tags,
  request: listRequest,
  responses: { 200: { ...jsonAnswer('Threads.', z.array(thread)), headers: listHeaders }, ...listProblems },
});

export function addThreads(router: RestRouter, threads: ThreadService): void {
  router.openapi(createThread, async (c) => {
    const { meta_data: metaData } = c.req.valid('json');
    const created = await threads.create(c.env.principal, { metaData });
    return c.json(present(created), 201, { location: `/v1/threads/${created.id}` });
  });

  router.openapi(retrieveThread, async (c) => {
    const found = await threads.find(c.env.principal, c.req.valid('param').thread_id);
    if (!found) throw notFound();
    return c.json(present(found), 200);
  });

  router.openapi(updateThread, async (c) => {
    const { principal } = c.env;
    const { thread_id: id } = c.req.valid('param');
    const { meta_data: metaData } = c.req.valid('json');
    const updated = metaData
      ? await threads.updateMetaData(principal, id, metaData)
      : await threads.find(principal, id);
    if (!updated) throw notFound();
    return c.json(presentInDetail(updated), 200);
  });

  router.openapi(replaceMetaData, async (c) => {
    const { thread_id: id } = c.req.valid('param');
    return c.json(present(await threads.updateMetaData(c.env.principal, id, c.req.valid('json'))), 200);
  });

  router.openapi(deleteThread, async (c) => {
    const id = await threads.delete(c.env.principal, c.req.valid('param').thread_id);
    return c.json({ id, object: 'thread.deleted' as const, deleted: true as const }, 200);
  });

  router.openapi(listThreadIds, async (c) => {
    const { principal } = c.env;
    if (requireOwner(principal).userId !== c.req.valid('param').user_id) throw notFound();
    const source = rowsById(
      'thread',
      (query) => threads.list(principal, query),
      (row) => row.id,
    );
    const { data, next } = await readList(c.req.valid('query'), source);
    return c.json(data, 200, linkToNext(c.req.url, next));
  });

  router.openapi(listThreads, async (c) => {
    const { principal } = c.env;
    if (requireOwner(principal).userId !== c.req.valid('param').user_id) throw notFound();
    const source = rowsById('thread', (query) => threads.list(principal, query), present);
    const { data, next } = await readList(c.req.valid('query'), source);
    return c.json(data, 200, linkToNext(c.req.url, next));
  });
}
