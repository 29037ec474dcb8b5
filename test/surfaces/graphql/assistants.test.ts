// Assistants over HTTP: kept exactly, hydrated for a look, invisible to everybody else.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createAssistant, createThread } from '../../support/operations.js';
import { createRecordingRunRuntime } from '../../support/run-runtime.js';
import { startService, type Service, type Tenant } from '../../support/service.js';

const runtime = createRecordingRunRuntime();
let service: Service;
let alice: Tenant;
let bob: Tenant;

beforeAll(async () => {
  service = await startService({
    runRuntime: runtime,
    environment: { LLM_BASE_URL: 'http://127.0.0.1:9/v1', MAX_CONTENT_BYTES: '1000' },
  });
  alice = await service.createTenant('Alice');
  bob = await service.createTenant('Bob');
});
afterAll(() => service.close());

const createDocument =
  'mutation ($input: CreateAssistantInput!) { createAssistant(input: $input) { assistant { id name instructions model tools createdAt } } }';

interface HydratedTool {
  type: string;
  function: { name: string; description: string; parameters: { properties: object; additionalProperties: boolean } };
}

it('keeps what it was given exactly', async () => {
  const input = {
    name: 'Prüferin 🌞',
    instructions: ' Be exact.\n',
    model: 'org/model:1',
    tools: [{ type: 'web_search' }, { type: 'scratchpad' }],
  };
  const { createAssistant: created } = await alice.client.run<{ createAssistant: { assistant: { id: string } } }>(
    createDocument,
    { input },
  );
  expect(created.assistant).toMatchObject(input);
  const { assistant, node } = await alice.client.run<{ assistant: object; node: object }>(
    'query ($id: ID!) { assistant(id: $id) { name instructions model tools } node(id: $id) { __typename id } }',
    { id: created.assistant.id },
  );
  expect(assistant).toEqual(input);
  expect(node).toEqual({ __typename: 'Assistant', id: created.assistant.id });
});

it('shows the functions that a model would be given, without any parameter for an identity', async () => {
  const id = await createAssistant(alice.client, [{ type: 'web_search' }, { type: 'scratchpad' }]);
  const { assistant } = await alice.client.run<{ assistant: { tools: object[]; hydratedTools: HydratedTool[] } }>(
    'query ($id: ID!) { assistant(id: $id) { tools hydratedTools } }',
    { id },
  );
  expect(assistant.tools).toEqual([{ type: 'web_search' }, { type: 'scratchpad' }]);
  const functions = assistant.hydratedTools.map((tool) => tool.function);
  expect(functions.map(({ name }) => name).toSorted()).toEqual([
    'append_scratchpad',
    'perform_web_search',
    'read_scratchpad',
    'read_web_page',
    'scroll_web_page',
    'search_web_page',
    'update_scratchpad',
  ]);
  for (const { parameters, description } of functions) {
    expect(description).not.toBe('');
    expect(parameters.additionalProperties).toBe(false);
    expect(Object.keys(parameters.properties).filter((name) => /owner|user|tenant|thread|_id$|Id$/.test(name))).toEqual(
      [],
    );
  }
});

it.each([
  ['a function', [{ type: 'function', function: { name: 'lookup', parameters: {} } }], 'tools.0'],
  ['a reserved name', [{ type: 'function', function: { name: 'read_scratchpad' } }], 'read_scratchpad'],
  ['the delegation of supervisors', [{ type: 'function', function: { name: 'delegate_research_task' } }], 'reserved'],
  ['an unknown capability', [{ type: 'scratchpad' }, { type: 'code_interpreter' }], 'tools.1'],
  ['an identity smuggled into a placeholder', [{ type: 'scratchpad', scratchpad_id: 'sp_1' }], 'scratchpad_id'],
  ['too many tools', Array.from({ length: 21 }, () => ({ type: 'scratchpad' })), 'tools'],
])('refuses %s', async (_name, tools, words) => {
  const error = await alice.client.fail(createDocument, { input: { name: 'x', instructions: 'x', tools } });
  expect(error.extensions.code).toBe('BAD_USER_INPUT');
  expect(error.message).toContain(words);
});

it('refuses what no store could keep, blank names and instructions that are too long', async () => {
  const good = { name: 'x', instructions: 'x', tools: [] };
  for (const [change, code] of [
    [{ name: '  ' }, 'BAD_USER_INPUT'],
    [{ name: 'x'.repeat(201) }, 'BAD_USER_INPUT'],
    [{ instructions: 'a\u0000b' }, 'BAD_USER_INPUT'],
    [{ model: '' }, 'BAD_USER_INPUT'],
    [{ instructions: 'é'.repeat(501) }, 'LIMIT_EXCEEDED'],
  ] as const) {
    const error = await alice.client.fail(createDocument, { input: { ...good, ...change } });
    expect(error.extensions.code).toBe(code);
  }
});

it('is not there for another tenant, in no way', async () => {
  const id = await createAssistant(alice.client);
  expect(await bob.client.run('query ($id: ID!) { assistant(id: $id) { id } node(id: $id) { id } }', { id })).toEqual({
    assistant: null,
    node: null,
  });
  expect(await bob.client.run('{ viewer { assistants { totalCount edges { node { id } } } } }')).toEqual({
    viewer: { assistants: { totalCount: 0, edges: [] } },
  });
  const remove = 'mutation ($id: ID!) { deleteAssistant(input: { assistantId: $id }) { deletedAssistantId } }';
  const start = 'mutation ($input: StartRunInput!) { startRun(input: $input) { run { id } } }';
  const threadId = await createThread(bob.client);
  const nowhere = await bob.client.fail(remove, { id: 'asst_0' });
  expect(nowhere.extensions.code).toBe('NOT_FOUND');
  expect((await bob.client.fail(remove, { id })).message).toBe(nowhere.message);
  const error = await bob.client.fail(start, { input: { assistantId: id, threadId, message: 'x' } });
  expect(error).toMatchObject({ message: nowhere.message, extensions: { code: 'NOT_FOUND' } });
  expect(await alice.client.run('query ($id: ID!) { assistant(id: $id) { id } }', { id })).toEqual({
    assistant: { id },
  });
});

it('can be deleted: its runs are cancelled and stay, without it', async () => {
  const assistantId = await createAssistant(alice.client, [], 'some-model');
  const threadId = await createThread(alice.client);
  const { startRun } = await alice.client.run<{ startRun: { run: { id: string; assistant: object } } }>(
    'mutation ($input: StartRunInput!) { startRun(input: $input) { run { id assistant { id } } } }',
    { input: { assistantId, threadId, message: 'Hello' } },
  );
  expect(startRun.run.assistant).toEqual({ id: assistantId });
  await alice.client.run(
    'mutation ($id: ID!) { deleteAssistant(input: { assistantId: $id }) { deletedAssistantId } }',
    {
      id: assistantId,
    },
  );
  expect(
    await alice.client.run(
      'query ($a: ID!, $r: ID!) { assistant(id: $a) { id } run(id: $r) { status assistant { id } } }',
      {
        a: assistantId,
        r: startRun.run.id,
      },
    ),
  ).toEqual({ assistant: null, run: { status: 'CANCELLED', assistant: null } });
});

it('is not for the administrator', async () => {
  for (const document of [
    '{ assistant(id: "asst_0") { id } }',
    'mutation { createAssistant(input: { name: "x", instructions: "x", tools: [] }) { assistant { id } } }',
    'mutation { deleteAssistant(input: { assistantId: "asst_0" }) { deletedAssistantId } }',
  ]) {
    expect((await service.administrator.fail(document)).extensions.code).toBe('FORBIDDEN');
  }
});
