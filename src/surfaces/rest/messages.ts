// /v1/messages and /v1/threads/{thread_id}/messages
import { createRoute, z } from '@hono/zod-openapi';
import type { Message } from '../../generated/prisma/client.js';
import { notFound } from '../../shared/errors.js';
import { createCursorCodec, defaultPageSize, parsePageArguments, toPage } from '../../shared/pagination.js';
import type { MessageService } from '../../threads/message-service.js';
import { metaDataOutput, optionalMetaDataInput, toMetaData, toUnixSeconds, unixSeconds } from './fields.js';
import { limitField, linkToNext, listHeaders, listQuery } from './lists.js';
import { bodyProblems, jsonAnswer, jsonBody, pathId, problems, threadParams, type RestRouter } from './router.js';

const tags = ['messages'];
const request = { params: z.object({ message_id: pathId('message_id', 'msg_01KGAZ…') }) };

const message = z
  .strictObject({
    id: z.string(),
    object: z.literal('thread.message'),
    thread_id: z.string(),
    role: z.enum(['system', 'user', 'assistant', 'tool']),
    content: z.string(),
    created_at: unixSeconds,
    completed_at: unixSeconds,
    status: z.literal('completed'),
    meta_data: metaDataOutput,
    assistant_id: z.string().nullable().openapi({ description: 'As the client named it: it refers to nothing.' }),
    tool_call_id: z.string().nullable().openapi({ description: 'The call that a message of role tool answers.' }),
    attachments: z.array(z.strictObject({})).openapi({ description: 'Always empty.' }),
    incomplete_at: z.null(),
    incomplete_details: z.null(),
    run_id: z.null(),
    tool_id: z.null(),
    sender_id: z.null(),
  })
  .openapi('Message');
const messageList = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(message),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .openapi('MessageList');
const messageDeleted = z
  .strictObject({ id: z.string(), object: z.literal('thread.message.deleted'), deleted: z.literal(true) })
  .openapi('MessageDeleted');

const alwaysNull = z.null().optional().openapi({ description: 'The SDK sends it; it has to be null.' });
const newMessage = z
  .strictObject({
    thread_id: z.string(),
    content: z.string().openapi({ pattern: '\\S', description: 'Not blank.' }),
    role: z
      .string()
      .transform((role) => role.toUpperCase())
      .pipe(z.enum(['USER', 'ASSISTANT'], 'must be user or assistant: the other roles are written by runs'))
      .openapi({ type: 'string', enum: ['user', 'assistant'] })
      .default('USER')
      .openapi({ type: 'string', enum: ['user', 'assistant'], default: 'user' }),
    meta_data: optionalMetaDataInput,
    assistant_id: z
      .string()
      .nullish()
      .openapi({ minLength: 1, maxLength: 200, pattern: '\\S', description: 'Kept as a label; it refers to nothing.' }),
    attachments: z.array(z.unknown()).max(0).nullish().openapi({ description: 'There are none yet.' }),
    is_last_chunk: z.literal(false).optional(),
    sender_id: alwaysNull,
    tool_id: alwaysNull,
    tool_call_id: alwaysNull,
  })
  .openapi('MessageCreate');

const present = (row: Message): z.output<typeof message> => ({
  id: row.id,
  object: 'thread.message',
  thread_id: row.threadId,
  role: row.role.toLowerCase() as Lowercase<Message['role']>,
  content: row.content,
  created_at: toUnixSeconds(row.createdAt),
  completed_at: toUnixSeconds(row.createdAt),
  status: 'completed',
  meta_data: toMetaData(row.metaData),
  assistant_id: row.assistantId,
  tool_call_id: row.toolCallId,
  attachments: [],
  incomplete_at: null,
  incomplete_details: null,
  run_id: null,
  tool_id: null,
  sender_id: null,
});

const createMessage = createRoute({
  method: 'post',
  path: '/v1/messages',
  operationId: 'createMessage',
  description: 'CONFLICT while a run is active on the thread.',
  tags,
  request: { body: jsonBody(newMessage) },
  responses: {
    201: jsonAnswer('The new message.', message),
    ...problems('NOT_FOUND', 'CONFLICT', ...bodyProblems),
  },
});

const listMessages = createRoute({
  method: 'get',
  path: '/v1/threads/{thread_id}/messages',
  operationId: 'listMessages',
  description: 'In canonical persistence order, never by timestamp.',
  tags,
  request: {
    params: threadParams,
    query: listQuery.extend({
      limit: limitField.optional().openapi({ type: 'integer', minimum: 1, maximum: 100, default: defaultPageSize }),
      order: z.enum(['asc', 'desc']).default('asc').openapi({ description: 'desc: the newest first.' }),
    }),
  },
  responses: {
    200: { ...jsonAnswer('One page.', messageList), headers: listHeaders },
    ...problems('NOT_FOUND'),
  },
});

const retrieveMessage = createRoute({
  method: 'get',
  path: '/v1/messages/{message_id}',
  operationId: 'retrieveMessage',
  tags,
  request,
  responses: { 200: jsonAnswer('The message.', message), ...problems('NOT_FOUND') },
});

const deleteMessage = createRoute({
  method: 'delete',
  path: '/v1/messages/{message_id}',
  operationId: 'deleteMessage',
  description: 'CONFLICT while a run is active on the thread.',
  tags,
  request,
  responses: { 200: jsonAnswer('It is gone.', messageDeleted), ...problems('NOT_FOUND', 'CONFLICT') },
});

const isSequenceNo = (value: unknown): value is string => typeof value === 'string' && /^\d{1,18}$/.test(value);

export function addMessages(router: RestRouter, messages: MessageService): void {
  router.openapi(createMessage, async (c) => {
    const { thread_id: threadId, content, role, meta_data: metaData, assistant_id: assistantId } = c.req.valid('json');
    const created = await messages.create(c.env.principal, { threadId, content, role, metaData, assistantId });
    return c.json(present(created), 201, { location: `/v1/messages/${created.id}` });
  });

  router.openapi(listMessages, async (c) => {
    const { thread_id: threadId } = c.req.valid('param');
    const { limit, after, order } = c.req.valid('query');
    // The order is part of what a cursor means.
    const codec = createCursorCodec(`messages ${order}`, threadId, isSequenceNo);
    const request = parsePageArguments({ first: limit, after }, codec);
    const behind = order === 'asc' ? 'gt' : 'lt';
    const rows = await messages.list(c.env.principal, threadId, {
      where: request.after === undefined ? {} : { sequenceNo: { [behind]: BigInt(request.after) } },
      orderBy: { sequenceNo: order },
      take: request.size + 1,
    });
    const { edges, pageInfo } = toPage(rows, request, codec, (row) => String(row.sequenceNo));
    const { hasNextPage, endCursor } = pageInfo;
    const list = {
      object: 'list' as const,
      data: edges.map((edge) => present(edge.node)),
      first_id: edges[0]?.node.id ?? null,
      last_id: edges.at(-1)?.node.id ?? null,
      has_more: hasNextPage,
    };
    return c.json(list, 200, linkToNext(c.req.url, hasNextPage && endCursor !== null ? endCursor : undefined));
  });

  router.openapi(retrieveMessage, async (c) => {
    const found = await messages.find(c.env.principal, c.req.valid('param').message_id);
    if (!found) throw notFound();
    return c.json(present(found), 200);
  });

  router.openapi(deleteMessage, async (c) => {
    const id = await messages.delete(c.env.principal, c.req.valid('param').message_id);
    return c.json({ id, object: 'thread.message.deleted' as const, deleted: true as const }, 200);
  });
}
