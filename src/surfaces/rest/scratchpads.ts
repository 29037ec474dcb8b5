// /v1/scratchpads: the resources, and how a thread's one is found.
import { createRoute, z } from '@hono/zod-openapi';
import type { Scratchpad } from '../../generated/prisma/client.js';
import { seesAroundPad } from '../../identity/agent-access.js';
import type { Principal } from '../../identity/principal.js';
import { notFound } from '../../shared/errors.js';
import type { ScratchpadService } from '../../scratchpads/scratchpad-service.js';
import { instant, metaDataOutput, optionalMetaDataInput, toMetaData } from './fields.js';
import { linkToNext, listHeaders, listQuery, readList, rowsById } from './lists.js';
import {
  bodyProblems,
  jsonAnswer,
  jsonBody,
  optionalJsonBody,
  padProblems,
  padParams,
  threadParams,
  problems,
  type RestRouter,
} from './router.js';

const tags = ['scratchpads'];
const request = { params: padParams };

/** Empty rather than null: the SDK wants a text. */
const aroundPad = z.string().openapi({ description: 'Empty for an agent token, which does not see it.' });

const scratchpad = z
  .strictObject({
    id: z.string(),
    owner_id: aroundPad,
    thread_id: aroundPad,
    created_at: instant,
    updated_at: instant.openapi({ description: 'Follows the metadata, not the working state.' }),
    meta_data: metaDataOutput,
  })
  .openapi('Scratchpad');
const scratchpadList = z
  .strictObject({ object: z.literal('list'), data: z.array(scratchpad) })
  .openapi('ScratchpadList');
const scratchpadDeleted = z
  .strictObject({ id: z.string(), object: z.literal('scratchpad.deleted'), deleted: z.literal(true) })
  .openapi('ScratchpadDeleted');

const newScratchpad = z
  .strictObject({ thread_id: z.string(), meta_data: optionalMetaDataInput })
  .openapi('ScratchpadCreate');
const scratchpadChange = z
  .strictObject({
    meta_data: optionalMetaDataInput,
  })
  .openapi('ScratchpadUpdate');

const present = (row: Scratchpad, principal: Principal): z.output<typeof scratchpad> => ({
  id: row.id,
  owner_id: seesAroundPad(principal) ? row.ownerId : '',
  thread_id: seesAroundPad(principal) ? row.threadId : '',
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
  meta_data: toMetaData(row.metaData),
});

const createScratchpad = createRoute({
  method: 'post',
  path: '/v1/scratchpads',
  operationId: 'createScratchpad',
  description: 'A thread has at most one: CONFLICT for a second. The owner is whoever the key belongs to.',
  tags,
  request: { body: jsonBody(newScratchpad) },
  responses: {
    201: jsonAnswer('The new scratchpad.', scratchpad),
    ...problems('NOT_FOUND', 'CONFLICT', ...bodyProblems),
  },
});

const listScratchpads = createRoute({
  method: 'get',
  path: '/v1/scratchpads',
  operationId: 'listScratchpads',
  description: 'Oldest first.',
  tags,
  request: { query: listQuery },
  responses: {
    200: {
      ...jsonAnswer('The caller’s own scratchpads; for an agent token its one.', scratchpadList),
      headers: listHeaders,
    },
    ...problems('LIMIT_EXCEEDED'),
  },
});

const retrieveScratchpad = createRoute({
  method: 'get',
  path: '/v1/scratchpads/{scratchpad_id}',
  operationId: 'retrieveScratchpad',
  tags,
  request,
  responses: { 200: jsonAnswer('The scratchpad.', scratchpad), ...padProblems('READ') },
});

const retrieveByThread = createRoute({
  method: 'get',
  path: '/v1/threads/{thread_id}/scratchpad',
  operationId: 'retrieveScratchpadByThread',
  description: 'Creates nothing: a thread without a scratchpad is not found.',
  tags,
  request: { params: threadParams },
  responses: { 200: jsonAnswer('The thread’s scratchpad.', scratchpad), ...problems('NOT_FOUND') },
});

const updateScratchpad = createRoute({
  method: 'patch',
  path: '/v1/scratchpads/{scratchpad_id}',
  operationId: 'updateScratchpad',
  tags,
  request: { ...request, body: optionalJsonBody(scratchpadChange) },
  responses: {
    200: jsonAnswer('The scratchpad as it is now.', scratchpad),
    ...padProblems('MANAGE', ...bodyProblems),
  },
});

const deleteScratchpad = createRoute({
  method: 'delete',
  path: '/v1/scratchpads/{scratchpad_id}',
  operationId: 'deleteScratchpad',
  description: 'Takes its working state along. The thread stays.',
  tags,
  request,
  responses: { 200: jsonAnswer('It is gone.', scratchpadDeleted), ...padProblems('MANAGE') },
});

export function addScratchpads(router: RestRouter, scratchpads: ScratchpadService): void {
  router.openapi(createScratchpad, async (c) => {
    const { principal } = c.env;
    const { thread_id: threadId, meta_data: metaData } = c.req.valid('json');
    const created = await scratchpads.create(principal, { threadId, metaData });
    return c.json(present(created, principal), 201, { location: `/v1/scratchpads/${created.id}` });
  });

  router.openapi(listScratchpads, async (c) => {
    const { principal } = c.env;
    const source = rowsById(
      'scratchpad',
      (query) => scratchpads.list(principal, query),
      (row) => present(row, principal),
    );
    const { data, next } = await readList(c.req.valid('query'), source);
    return c.json({ object: 'list' as const, data }, 200, linkToNext(c.req.url, next));
  });

  router.openapi(retrieveScratchpad, async (c) => {
    const found = await scratchpads.find(c.env.principal, c.req.valid('param').scratchpad_id);
    if (!found) throw notFound();
    return c.json(present(found, c.env.principal), 200);
  });

  router.openapi(retrieveByThread, async (c) => {
    const found = await scratchpads.findByThread(c.env.principal, c.req.valid('param').thread_id);
    if (!found) throw notFound();
    return c.json(present(found, c.env.principal), 200);
  });

  router.openapi(updateScratchpad, async (c) => {
    const { principal } = c.env;
    const { scratchpad_id: id } = c.req.valid('param');
    const { meta_data: metaData } = c.req.valid('json');
    return c.json(present(await scratchpads.updateMetaData(principal, id, metaData), principal), 200);
  });

  router.openapi(deleteScratchpad, async (c) => {
    const id = await scratchpads.delete(c.env.principal, c.req.valid('param').scratchpad_id);
    return c.json({ id, object: 'scratchpad.deleted' as const, deleted: true as const }, 200);
  });
}
