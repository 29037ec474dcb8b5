// A tenant with something of everything: an assistant whose run has ended, and research that goes on for ever, with a worker's private things.
import type { IdKind } from '../../src/shared/ids.js';
import {
  appendEntry,
  createAssistant,
  createScratchpad,
  createThread,
  createToken,
  readLedger,
  setContent,
  startResearch,
} from '../support/operations.js';
import { append, delegate, isSupervisor, until } from '../support/research-runtime.js';
import {
  callsReply,
  chunkOf,
  textReply,
  type ModelRequest,
  type Reply,
  type ScriptedModelServer,
} from '../support/scripted-model-server.js';
import type { Service, Tenant } from '../support/service.js';

type Ids = Partial<Record<IdKind, string[]>>;

export interface World extends Tenant {
  name: string;
  /**
   * At least one thing of each kind that it owns. The first thread has the first scratchpad, the second one nothing, and on the third
   * one research goes on. The first run has ended; the other two are the research and its worker.
   */
  ids: Ids;
  /** What its worker has for itself: nobody finds it. */
  hidden: Ids;
}

export const everyIdOf = ({ ids, hidden }: World): string[] => [...Object.values(ids), ...Object.values(hidden)].flat();

/** Whether an answer shows anything of the tenant's. */
export const shows = (body: string, world: World): boolean =>
  body.includes(`${world.name} `) || everyIdOf(world).some((id) => body.includes(id));

const endless = 'asks for ever';
const noteTaken = (request: ModelRequest): boolean => request.body.messages.some(({ role }) => role === 'tool');
const said = ({ body }: ModelRequest): string => body.messages.map(({ content }) => content ?? '').join('\n');

/** Not silent, or the provider would be taken for broken. */
const thinkingForEver: Reply = {
  chunks: Array.from({ length: 1000 }, () => chunkOf({})),
  pauseMsBetweenChunks: 5000,
  ending: 'hang',
};

/** Whoever can notes one thing and answers then; of endless research the supervisor delegates, and the worker never answers. */
export function answerByTask(request: ModelRequest): Reply {
  const name = /(\w+) asks/.exec(said(request))?.[1] ?? 'nobody';
  const isEndless = said(request).includes(endless);
  if (isEndless && isSupervisor(request)) return callsReply([delegate('delegate', `${name} ${endless}`)]);
  if (!noteTaken(request)) {
    const { chunks = [] } = callsReply([append('append', `${name} noted`)]);
    return { chunks: [chunkOf({ role: 'assistant', reasoning_content: `${name} thought` }), ...chunks] };
  }
  return isEndless ? thinkingForEver : textReply(`${name} answered`);
}

async function createApiKey({ client }: Tenant): Promise<string> {
  const { createApiKey } = await client.run<{ createApiKey: { apiKey: { id: string } } }>(
    'mutation { createApiKey(input: { name: "second" }) { apiKey { id } } }',
  );
  return createApiKey.apiKey.id;
}

/** Each of its texts has its name in it. */
export async function createWorld(service: Service, model: ScriptedModelServer, name: string): Promise<World> {
  const tenant = await service.createTenant(name);
  const { client, userId } = tenant;
  const idsIn = async (sql: string, value: unknown = userId): Promise<string[]> =>
    (await service.psql<{ id: string }>(sql, [value])).map(({ id }) => id);

  const { createThread: first } = await client.run<{ createThread: { thread: { id: string } } }>(
    'mutation ($name: String!) { createThread(input: { metaData: { name: $name } }) { thread { id } } }',
    { name },
  );
  const threads = [first.thread.id, await createThread(client), await createThread(client)];
  const [threadId = '', , busyThreadId = ''] = threads;
  await client.run(
    'mutation ($id: ID!, $c: String!) { createMessage(input: { threadId: $id, content: $c }) { message { id } } }',
    {
      id: threadId,
      c: `${name} said`,
    },
  );
  const scratchpads = [await createScratchpad(client, threadId), await createScratchpad(client, busyThreadId)];
  const [scratchpadId = ''] = scratchpads;
  await setContent(client, scratchpadId, `${name} planned`, { idempotencyKey: 'set' });
  await appendEntry(client, scratchpadId, `${name} found`, 'append');

  const assistantId = await createAssistant(client);
  const { startRun } = await client.run<{ startRun: { run: { id: string } } }>(
    'mutation ($input: StartRunInput!) { startRun(input: $input) { run { id } } }',
    { input: { assistantId, threadId, message: `${name} asks` } },
  );
  const statusOf = async (): Promise<string> =>
    (
      await client.run<{ run: { status: string } }>('query ($id: ID!) { run(id: $id) { status } }', {
        id: startRun.run.id,
      })
    ).run.status;
  await until('the run has ended', async () => (await statusOf()) === 'COMPLETED');
  const researchId = await startResearch(client, busyThreadId, { question: `${name} ${endless}` });
  await until('the worker waits', () =>
    model.requests.some((request) => said(request).includes(`${name} ${endless}`) && noteTaken(request)),
  );

  const entries = await Promise.all(scratchpads.map((id) => readLedger(client, id)));
  const privateMessages = `SELECT m.id FROM messages m JOIN threads t ON t.id = m.thread_id WHERE t.owner_id = $1 AND t.ephemeral`;
  return {
    ...tenant,
    name,
    ids: {
      user: [userId],
      apiKey: [await createApiKey(tenant)],
      thread: threads,
      message: await idsIn('SELECT id FROM messages WHERE thread_id = ANY($1) ORDER BY sequence_no', threads),
      scratchpad: scratchpads,
      agentToken: [(await createToken(client, scratchpadId)).id],
      entry: entries.flat().map(({ id }) => id),
      assistant: [assistantId],
      run: [startRun.run.id, researchId, ...(await idsIn('SELECT id FROM runs WHERE parent_run_id = $1', researchId))],
    },
    hidden: {
      thread: await idsIn('SELECT id FROM threads WHERE owner_id = $1 AND ephemeral'),
      assistant: await idsIn('SELECT id FROM assistants WHERE owner_id = $1 AND ephemeral'),
      message: await idsIn(privateMessages),
    },
  };
}
