// What all routes have in common: who asks, how a mistake in a request is reported, which problems an operation documents.
import { OpenAPIHono, z } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import { roleAllows, type PadAction } from '../../identity/agent-access.js';
import { agentRoles, type AgentRole, type Principal } from '../../identity/principal.js';
import { invalidInput, invalidInputFrom, type ErrorCode } from '../../shared/errors.js';
import { errorTable } from '../error-table.js';

/** `c.env` of every handler. */
export interface RestEnvironment {
  Bindings: { principal: Principal };
}

export type RestRouter = OpenAPIHono<RestEnvironment>;

/** Errors are thrown through the router: whoever calls `fetch` answers them. */
export function createRouter(): RestRouter {
  const router: RestRouter = new OpenAPIHono<RestEnvironment>({
    defaultHook(result) {
      if (!result.success) throw invalidInputFrom(result.error);
    },
  });
  router.onError((error) => {
    throw error;
  });
  return router;
}

const problem = z
  .strictObject({
    type: z.string().openapi({ description: 'A URN of this kind of problem.' }),
    title: z.string(),
    status: z.int(),
    detail: z.string().openapi({ description: 'What to do about it.' }),
    code: z.string().openapi({ description: 'The same code as in every other surface.' }),
    request_id: z.string().openapi({ description: 'Also in the header x-request-id.' }),
    issues: z
      .array(z.strictObject({ path: z.array(z.union([z.string(), z.int()])), message: z.string() }))
      .optional()
      .openapi({ description: 'INVALID_INPUT: every mistake that was found.' }),
    current_version: z
      .string()
      .optional()
      .openapi({ description: 'CONFLICT of a conditional write: the version that is current now.' }),
    retry_after_seconds: z.number().optional().openapi({ description: 'RATE_LIMITED: when to come back.' }),
  })
  .openapi('Problem');

const problemBody = { 'application/problem+json': { schema: problem } };

/** Statuses that only the wire knows, with the codes behind them. */
const wireStatuses = {
  412: 'If-Match names another version than the current one (CONFLICT).',
  415: 'The body is not application/json (INVALID_INPUT).',
} as const;

type WireStatus = keyof typeof wireStatuses;
type Responses = Record<number, { description: string; content: typeof problemBody }>;

const anyOperation: ErrorCode[] = [
  'INVALID_INPUT',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'RATE_LIMITED',
  'UNAVAILABLE',
  'INTERNAL',
];

/** The problems that an operation can answer with, beside those that every one can. */
export function problems(...more: (ErrorCode | WireStatus)[]): Responses {
  const responses: Responses = {};
  for (const reason of [...anyOperation, ...more]) {
    if (typeof reason === 'number') responses[reason] = { description: wireStatuses[reason], content: problemBody };
    else {
      const { status, title } = errorTable[reason];
      responses[status] = { description: `${title} (${reason}).`, content: problemBody };
    }
  }
  return responses;
}

/** Says that agent tokens of these roles are refused; the administrator always is, and a page of an unknown origin. */
export const forbiddenTo = (roles: readonly AgentRole[]): Responses => {
  const { status, title } = errorTable.FORBIDDEN;
  return {
    [status]: {
      description: `${title} (FORBIDDEN): also to agent tokens (${roles.join(', ')}).`,
      content: problemBody,
    },
  };
};

/** The problems of doing this to a scratchpad; for an agent token it has to be its own, and is not found otherwise. */
export function padProblems(action: PadAction, ...more: Parameters<typeof problems>): Responses {
  const refused = agentRoles.filter((role) => !roleAllows(role, action));
  return { ...problems('NOT_FOUND', ...more), ...(refused.length > 0 && forbiddenTo(refused)) };
}

/** What every operation with a JSON body can answer with. */
export const bodyProblems = ['LIMIT_EXCEEDED', 415] as const;

export const jsonBody = <Schema extends z.ZodType>(schema: Schema) => ({
  required: true as const,
  content: { 'application/json': { schema } },
});

/** For an operation to which an empty object says something else than no body at all. */
export const requireBody: MiddlewareHandler<RestEnvironment> = async (c, next) => {
  if (c.req.raw.body === null) throw invalidInput('Send a JSON object as the body.');
  await next();
};

/** The same where an absent body is an empty object. */
export const optionalJsonBody = <Schema extends z.ZodType>(schema: Schema) => ({
  content: { 'application/json': { schema } },
});

export const jsonAnswer = <Schema extends z.ZodType>(description: string, schema: Schema) => ({
  description,
  content: { 'application/json': { schema } },
});

/** Any text: an id of another kind is NOT_FOUND like any other id that is not the caller's. */
export const pathId = (name: string, example: string) => z.string().openapi({ param: { name, in: 'path' }, example });

export const threadParams = z.object({ thread_id: pathId('thread_id', 'thread_01KGAZ…') });
export const padParams = z.object({ scratchpad_id: pathId('scratchpad_id', 'sp_01KGAZ…') });
