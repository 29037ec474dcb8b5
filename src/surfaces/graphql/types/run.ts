// Runs as GraphQL sees them. What is private to a delegated worker (its conversation, its assistant) is never among it.
import { requireUser } from '../../../identity/principal.js';
import type { JsonObject } from '../../../shared/json.js';
import { activeRun } from '../../../threads/idle-thread.js';
import type { Builder } from '../builder.js';
import { addConnection, newestFirstById, pageArguments, planPage, toConnection } from '../connections.js';
import type { AssistantRef } from './assistant.js';
import type { NodeRef } from './node.js';
import type { PageInfoRef } from './page-info.js';
import type { ThreadRef } from './thread.js';
import type { UserRef } from './user.js';

const ownRuns = newestFirstById('runs', 'run');
const threadRuns = newestFirstById('threadRuns', 'run');

interface References {
  node: NodeRef;
  pageInfo: PageInfoRef;
  user: UserRef;
  thread: ThreadRef;
  assistant: AssistantRef;
}

/** Null for what is a worker's own. */
const unlessPrivate = <Row extends { ephemeral: boolean }>(row: Row | null): Row | null =>
  row === null || row.ephemeral ? null : row;

export function addRun(builder: Builder, references: References) {
  const { node, pageInfo, user, thread, assistant } = references;
  const status = builder.enumType('RunStatus', {
    values: ['QUEUED', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'] as const,
  });
  const kind = builder.enumType('RunKind', { values: ['ASSISTANT', 'RESEARCH', 'RESEARCH_WORKER'] as const });
  const runError = builder.objectRef<{ code: string; message: string }>('RunError').implement({
    description:
      'Why a run is FAILED: PROVIDER_ERROR, PROVIDER_PROTOCOL, MAX_TURNS_EXCEEDED, EMPTY_RESULT, NO_EVIDENCE, CONTEXT_OVERFLOW, WORKER_LOST or INTERNAL.',
    fields: (t) => ({ code: t.exposeString('code'), message: t.exposeString('message') }),
  });

  const run = builder.prismaObject('Run', {
    description: 'One execution of a model on a conversation, with a scratchpad. Terminal states never change.',
    interfaces: [node],
    select: { id: true },
    fields: (t) => ({
      id: t.exposeID('id'),
      kind: t.expose('kind', { type: kind }),
      status: t.expose('status', { type: status }),
      assistant: t.field({
        type: assistant,
        nullable: true,
        description: 'Null for research, for a delegated worker, and once it was deleted.',
        select: (_args, _context, nestedSelection) => ({
          assistant: nestedSelection({ select: { id: true, ephemeral: true } }),
        }),
        resolve: (row) => unlessPrivate(row.assistant),
      }),
      task: t.exposeString('task', { description: 'The question, or the delegated task.' }),
      thread: t.field({
        type: thread,
        nullable: true,
        description: 'The conversation it runs on; always null for a delegated worker: its conversation is private.',
        select: (_args, _context, nestedSelection) => ({
          thread: nestedSelection({ select: { id: true, ephemeral: true } }),
        }),
        resolve: (row) => unlessPrivate(row.thread),
      }),
      scratchpad: t.relation('scratchpad', {
        nullable: true,
        description: 'The shared working memory of this run, whichever thread it converses on.',
      }),
      output: t.exposeString('output', {
        nullable: true,
        description: 'The final answer; null unless status is COMPLETED.',
      }),
      unverifiedCitations: t.exposeStringList('unverifiedCitations', {
        description: 'URLs in output that no worker of this run fetched.',
      }),
      lastError: t.field({
        type: runError,
        nullable: true,
        select: { lastErrorCode: true, lastErrorMessage: true },
        resolve: ({ lastErrorCode, lastErrorMessage }) =>
          lastErrorCode === null ? null : { code: lastErrorCode, message: lastErrorMessage ?? '' },
      }),
      turnCount: t.exposeInt('turnCount'),
      maxTurns: t.exposeInt('maxTurns'),
      // Only ever written by the runtime, as an object of texts.
      metaData: t.field({
        type: 'JSONObject',
        select: { metaData: true },
        resolve: ({ metaData }) => metaData as JsonObject,
      }),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
      startedAt: t.expose('startedAt', { type: 'DateTime', nullable: true }),
      finishedAt: t.expose('finishedAt', { type: 'DateTime', nullable: true }),
    }),
  });
  builder.prismaObjectFields(run, (t) => ({
    parentRun: t.relation('parentRun', { nullable: true, description: 'The run that delegated it.' }),
    childRuns: t.relation('childRuns', {
      query: { orderBy: { id: 'asc' } },
      description: 'What it delegated, oldest first.',
    }),
  }));

  const { connection } = addConnection(builder, { name: 'Run', node: run, pageInfo });
  builder.prismaObjectField(user, 'runs', (t) =>
    t.field({
      type: connection,
      description: 'Every run, those of delegated workers too, newest first.',
      args: pageArguments(t.arg),
      select: (args, _context, nestedSelection) => ({
        runs: nestedSelection({ ...planPage(ownRuns, args), select: { id: true } }, ['edges', 'node']),
      }),
      resolve: ({ id, runs }, args, { services, principal }) => {
        requireUser(principal);
        return toConnection(ownRuns, id, args, runs, () => services.runs.count(principal));
      },
    }),
  );
  builder.prismaObjectField(thread, 'runs', (t) =>
    t.field({
      type: connection,
      description: 'Newest first.',
      args: pageArguments(t.arg),
      select: (args, _context, nestedSelection) => ({
        runs: nestedSelection({ ...planPage(threadRuns, args), select: { id: true } }, ['edges', 'node']),
      }),
      resolve: ({ id, runs }, args, { loaders }) =>
        toConnection(threadRuns, id, args, runs, () => loaders.countRuns(id)),
    }),
  );
  builder.prismaObjectField(thread, 'activeRun', (t) =>
    t.field({
      type: run,
      nullable: true,
      description: 'The run that has not ended yet. While there is one, no message can be created on the thread.',
      select: (_args, _context, nestedSelection) => ({
        runs: nestedSelection({ where: activeRun, orderBy: { id: 'desc' }, take: 1 }),
      }),
      resolve: ({ runs }) => runs[0] ?? null,
    }),
  );

  builder.queryField('run', (t) =>
    t.prismaField({
      type: run,
      nullable: true,
      args: { id: t.arg.id({ required: true }) },
      resolve: (query, _root, { id }, { services, principal }) => services.runs.find(principal, id, query),
    }),
  );
  return run;
}

export type RunRef = ReturnType<typeof addRun>;
