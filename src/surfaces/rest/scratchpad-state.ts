// /v1/scratchpads/{scratchpad_id}/content, …/entries and …/clear: the working state.
import { createRoute, z } from '@hono/zod-openapi';
import { entryCursorCodec, type ContentState, type EntryState } from '../../scratchpads/data-plane.js';
import type { ClearScope, ScratchpadService } from '../../scratchpads/scratchpad-service.js';
import { DomainError } from '../../shared/errors.js';
import { hasVersion, readIfMatch, toEntityTag, writeIf } from './conditional.js';
import { instant, text } from './fields.js';
import { linkToNext, listHeaders, listQuery, readList } from './lists.js';
import {
  bodyProblems,
  jsonAnswer,
  jsonBody,
  optionalJsonBody,
  padProblems,
  padParams,
  type RestRouter,
} from './router.js';

const tags = ['scratchpad state'];
const request = { params: padParams };
const etagHeader = {
  ETag: {
    description: 'The version of the content, for If-Match and If-None-Match.',
    required: true,
    schema: { type: 'string' as const },
  },
};

const content = z
  .strictObject({
    scratchpad_id: z.string(),
    content: z.string().openapi({ description: 'Empty when it was never set, was cleared or has expired.' }),
    updated_at: instant.nullable(),
  })
  .openapi('ScratchpadContent');
const contentChange = z
  .strictObject({ content: text.openapi({ description: 'May be empty.' }) })
  .openapi('ScratchpadContentUpdate');

const entry = z
  .strictObject({ scratchpad_id: z.string(), content: z.string(), created_at: instant })
  .openapi('ScratchpadEntry');
const entryList = z.strictObject({ object: z.literal('list'), data: z.array(entry) }).openapi('ScratchpadEntryList');
const newEntry = z
  .strictObject({ content: z.string().openapi({ pattern: '\\S', description: 'Not blank.' }) })
  .openapi('ScratchpadEntryCreate');

const scopes = { content: 'CONTENT', entries: 'ENTRIES', all: 'ALL' } as const satisfies Record<string, ClearScope>;
const cleared = z
  .strictObject({
    id: z.string().openapi({ description: 'The scratchpad, which stays.' }),
    object: z.literal('scratchpad.state.cleared'),
    scope: z.enum(Object.keys(scopes) as (keyof typeof scopes)[]),
    cleared: z.literal(true),
  })
  .openapi('ScratchpadStateCleared');

const getContent = createRoute({
  method: 'get',
  path: '/v1/scratchpads/{scratchpad_id}/content',
  operationId: 'getContent',
  tags,
  request: {
    ...request,
    headers: z.object({
      'if-none-match': z.string().optional().openapi({ description: 'An ETag: 304 when it is still current.' }),
    }),
  },
  responses: {
    200: { ...jsonAnswer('The content.', content), headers: etagHeader },
    304: { description: 'The content is the one that If-None-Match names.', headers: etagHeader },
    ...padProblems('READ'),
  },
});

const setContent = createRoute({
  method: 'put',
  path: '/v1/scratchpads/{scratchpad_id}/content',
  operationId: 'setContent',
  tags,
  request: {
    ...request,
    headers: z.object({
      'if-match': z
        .string()
        .optional()
        .openapi({ description: 'The ETag that must be current: 412 when the content has changed since.' }),
    }),
    body: jsonBody(contentChange),
  },
  responses: {
    200: { ...jsonAnswer('The content as it is now.', content), headers: etagHeader },
    ...padProblems('REPLACE', 412, ...bodyProblems),
  },
});

const appendEntry = createRoute({
  method: 'post',
  path: '/v1/scratchpads/{scratchpad_id}/entries',
  operationId: 'appendEntry',
  tags,
  request: {
    ...request,
    headers: z.object({
      'idempotency-key': z.string().optional().openapi({
        minLength: 1,
        maxLength: 200,
        description:
          'Repeated with the same content within 24 hours it answers with the first entry and writes nothing; with another content it is a CONFLICT.',
      }),
    }),
    body: jsonBody(newEntry),
  },
  responses: {
    201: jsonAnswer('The new entry.', entry),
    ...padProblems('APPEND', 'CONFLICT', ...bodyProblems),
  },
});

const listEntries = createRoute({
  method: 'get',
  path: '/v1/scratchpads/{scratchpad_id}/entries',
  operationId: 'listEntries',
  description: 'In append order.',
  tags,
  request: { ...request, query: listQuery },
  responses: {
    200: { ...jsonAnswer('The ledger.', entryList), headers: listHeaders },
    ...padProblems('READ', 'LIMIT_EXCEEDED'),
  },
});

const clearAnswers = { 200: jsonAnswer('It is empty; the scratchpad stays.', cleared), ...padProblems('MANAGE') };

const clearContent = createRoute({
  method: 'delete',
  path: '/v1/scratchpads/{scratchpad_id}/content',
  operationId: 'clearContent',
  tags,
  request,
  responses: clearAnswers,
});

const clearEntries = createRoute({
  method: 'delete',
  path: '/v1/scratchpads/{scratchpad_id}/entries',
  operationId: 'clearEntries',
  tags,
  request,
  responses: clearAnswers,
});

const clearAll = createRoute({
  method: 'post',
  path: '/v1/scratchpads/{scratchpad_id}/clear',
  operationId: 'clearScratchpad',
  description: 'Content and entries.',
  tags,
  request: { ...request, body: optionalJsonBody(z.strictObject({})) },
  responses: { ...clearAnswers, ...padProblems('MANAGE', ...bodyProblems) },
});

const presentContent = (scratchpadId: string, state: ContentState): z.output<typeof content> => ({
  scratchpad_id: scratchpadId,
  content: state.text,
  updated_at: state.updatedAt,
});

const presentEntry = (scratchpadId: string, state: EntryState): z.output<typeof entry> => ({
  scratchpad_id: scratchpadId,
  content: state.content,
  created_at: state.createdAt,
});

const presentCleared = (id: string, scope: keyof typeof scopes): z.output<typeof cleared> => ({
  id,
  object: 'scratchpad.state.cleared',
  scope,
  cleared: true,
});

export function addScratchpadState(router: RestRouter, scratchpads: ScratchpadService): void {
  router.openapi(getContent, async (c) => {
    const { scratchpad_id: id } = c.req.valid('param');
    const reading = await scratchpads.readState(c.env.principal, id, { content: true });
    const state = reading.content!;
    if (hasVersion(c.req.valid('header')['if-none-match'], state.version)) {
      return c.body(null, 304, { etag: toEntityTag(state.version) });
    }
    return c.json(presentContent(id, state), 200, { etag: toEntityTag(state.version) });
  });

  router.openapi(setContent, async (c) => {
    const { scratchpad_id: id } = c.req.valid('param');
    const { content: newText } = c.req.valid('json');
    const versions = readIfMatch(c.req.valid('header')['if-match']);
    const state = await writeIf(versions, (expectedVersion) =>
      scratchpads.setContent(c.env.principal, id, { text: newText, expectedVersion }),
    );
    return c.json(presentContent(id, state), 200, { etag: toEntityTag(state.version) });
  });

  router.openapi(appendEntry, async (c) => {
    const { scratchpad_id: id } = c.req.valid('param');
    const idempotencyKey = c.req.valid('header')['idempotency-key'];
    const input = { content: c.req.valid('json').content, idempotencyKey };
    const appended = await scratchpads.appendEntry(c.env.principal, id, input);
    return c.json(presentEntry(id, appended.entry), 201);
  });

  router.openapi(listEntries, async (c) => {
    const { scratchpad_id: id } = c.req.valid('param');
    const { data, next } = await readList(c.req.valid('query'), {
      codec: entryCursorCodec(id),
      async readPage(page) {
        const { pages = [] } = await scratchpads.readState(c.env.principal, id, { pages: [page] });
        if (pages[0] instanceof DomainError) throw pages[0];
        return pages[0]!;
      },
      present: (row) => presentEntry(id, row),
    });
    return c.json({ object: 'list' as const, data }, 200, linkToNext(c.req.url, next));
  });

  router.openapi(clearContent, async (c) => {
    const { scratchpad_id: id } = c.req.valid('param');
    await scratchpads.clear(c.env.principal, id, scopes.content);
    return c.json(presentCleared(id, 'content'), 200);
  });

  router.openapi(clearEntries, async (c) => {
    const { scratchpad_id: id } = c.req.valid('param');
    await scratchpads.clear(c.env.principal, id, scopes.entries);
    return c.json(presentCleared(id, 'entries'), 200);
  });

  router.openapi(clearAll, async (c) => {
    const { scratchpad_id: id } = c.req.valid('param');
    await scratchpads.clear(c.env.principal, id, scopes.all);
    return c.json(presentCleared(id, 'all'), 200);
  });
}
