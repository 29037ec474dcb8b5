// /v1/tools/scratchpad: what agents called before scratchpads had ids of their own. They name the thread, and its scratchpad is made if
// it has none yet.
import { createRoute, z } from '@hono/zod-openapi';
import type { ScratchpadService } from '../../scratchpads/scratchpad-service.js';
import { text } from './fields.js';
import { bodyProblems, jsonAnswer, jsonBody, problems, type RestRouter } from './router.js';

const tags = ['tools'];
const threadId = z.string();
const view = z
  .strictObject({ content: z.string().openapi({ description: 'Content and newest entries in one text.' }) })
  .openapi('ScratchpadToolView');
const done = z.strictObject({ message: z.string() }).openapi('ScratchpadToolDone');
const toolProblems = problems('NOT_FOUND', ...bodyProblems);

const read = createRoute({
  method: 'post',
  path: '/v1/tools/scratchpad/read',
  operationId: 'readScratchpadTool',
  tags,
  request: { body: jsonBody(z.strictObject({ thread_id: threadId }).openapi('ScratchpadToolRead')) },
  responses: { 200: jsonAnswer('What an agent reads.', view), ...toolProblems },
});

const update = createRoute({
  method: 'post',
  path: '/v1/tools/scratchpad/update',
  operationId: 'updateScratchpadTool',
  tags,
  request: {
    body: jsonBody(z.strictObject({ thread_id: threadId, content: text }).openapi('ScratchpadToolUpdate')),
  },
  responses: { 200: jsonAnswer('The content is replaced.', done), ...toolProblems },
});

const append = createRoute({
  method: 'post',
  path: '/v1/tools/scratchpad/append',
  operationId: 'appendScratchpadTool',
  tags,
  request: {
    body: jsonBody(
      z
        .strictObject({
          thread_id: threadId,
          note: text
            .refine((note) => note.trim() !== '', 'must not be blank')
            .openapi({ pattern: '\\S', description: 'Not blank.' }),
        })
        .openapi('ScratchpadToolAppend'),
    ),
  },
  responses: { 200: jsonAnswer('The note is appended.', done), ...toolProblems },
});

export function addTools(router: RestRouter, scratchpads: ScratchpadService): void {
  router.openapi(read, async (c) => {
    const { principal } = c.env;
    const { id } = await scratchpads.ensureForThread(principal, c.req.valid('json').thread_id);
    return c.json({ content: await scratchpads.formattedView(principal, id) }, 200);
  });

  router.openapi(update, async (c) => {
    const { principal } = c.env;
    const { thread_id, content } = c.req.valid('json');
    const { id } = await scratchpads.ensureForThread(principal, thread_id);
    await scratchpads.setContent(principal, id, { text: content });
    return c.json({ message: 'The content was replaced.' }, 200);
  });

  router.openapi(append, async (c) => {
    const { principal } = c.env;
    const { thread_id, note } = c.req.valid('json');
    const { id } = await scratchpads.ensureForThread(principal, thread_id);
    await scratchpads.appendEntry(principal, id, { content: note });
    return c.json({ message: 'The note was appended.' }, 200);
  });
}
