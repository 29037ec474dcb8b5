import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DomainError } from '../../../src/shared/errors.js';
import { parseAssistantTools } from '../../../src/tools/assistant-tools.js';
import { delegateResearchTask } from '../../../src/tools/delegation/delegation-tool.js';
import { hydrateTools, type RunRole } from '../../../src/tools/hydrate.js';
import { PLATFORM_TOOL_MAP, reservedToolNames } from '../../../src/tools/platform-tool-map.js';
import { createScratchpadTools, scratchpadDefinitions } from '../../../src/tools/scratchpad/scratchpad-tools.js';
import { successResult, toFunctionDefinition, toolInput, type Tool } from '../../../src/tools/tool-definition.js';
import { createToolbox } from '../../../src/tools/toolbox.js';

const never = new AbortController().signal;
const both = parseAssistantTools([{ type: 'web_search' }, { type: 'scratchpad' }]);
const namesFor = (role: RunRole) => hydrateTools(both, role).map(({ name }) => name);

describe('hydration', () => {
  it('turns each placeholder into its functions, once', () => {
    expect(namesFor('ASSISTANT')).toEqual([
      'perform_web_search',
      'read_web_page',
      'search_web_page',
      'scroll_web_page',
      'read_scratchpad',
      'update_scratchpad',
      'append_scratchpad',
    ]);
    expect(hydrateTools([...both, ...both], 'ASSISTANT')).toHaveLength(7);
    expect(hydrateTools([{ type: 'scratchpad' }], 'ASSISTANT').map(({ name }) => name)).toEqual([
      'read_scratchpad',
      'update_scratchpad',
      'append_scratchpad',
    ]);
  });

  it('takes update_scratchpad from a worker, and gives delegate_research_task to a supervisor alone', () => {
    expect(namesFor('RESEARCH_WORKER')).not.toContain('update_scratchpad');
    expect(namesFor('RESEARCH_WORKER')).toContain('append_scratchpad');
    expect(namesFor('RESEARCH')).toContain('update_scratchpad');
    const delegators = (['ASSISTANT', 'RESEARCH', 'RESEARCH_WORKER'] as const).filter((role) =>
      namesFor(role).includes('delegate_research_task'),
    );
    expect(delegators).toEqual(['RESEARCH']);
  });

  it('offers no parameter for an identity, and closes every schema', () => {
    const all = [...Object.values(PLATFORM_TOOL_MAP).flat(), delegateResearchTask].map(toFunctionDefinition);
    expect(all.map(({ name }) => name)).toEqual([...reservedToolNames]);
    for (const { parameters } of all) {
      expect(parameters).toMatchObject({ type: 'object', additionalProperties: false });
      expect(Object.keys(parameters.properties as object).join(' ')).not.toMatch(
        /owner|user|tenant|thread|pad|_id|run/i,
      );
      expect(parameters).not.toHaveProperty('$schema');
    }
    const parametersOf = Object.fromEntries(
      all.map(({ name, parameters }) => [name, Object.keys(parameters.properties as object)]),
    );
    expect(parametersOf).toEqual({
      read_scratchpad: [],
      update_scratchpad: ['content'],
      append_scratchpad: ['note'],
      perform_web_search: ['query'],
      read_web_page: ['url', 'force_refresh'],
      search_web_page: ['url', 'query'],
      scroll_web_page: ['url', 'page'],
      delegate_research_task: ['task', 'requirements'],
    });
  });
});

describe('the tools of an assistant', () => {
  it.each([
    [[{ type: 'code_interpreter' }], 'no known capability'],
    [[{ type: 'constructor' }], 'no known capability'],
    [[{ type: 'function', function: { name: 'read_scratchpad', parameters: {} } }], 'reserved name read_scratchpad'],
    [[{ type: 'function', name: 'delegate_research_task' }], 'reserved name delegate_research_task'],
    [[{ type: 'scratchpad', function: { name: 'read_web_page' } }], 'reserved name read_web_page'],
    [[{ type: 'function', function: { name: 'my_own' } }], 'nothing here would execute'],
    [[{ type: 'scratchpad', scratchpad_id: 'sp_1' }], 'unknown field scratchpad_id'],
    [['scratchpad'], 'must be'],
    [[null], 'must be'],
    ['scratchpad', 'must be a list'],
    [[{ type: 'web_search' }, {}], 'tools.1'],
  ])('are refused when they are %j', (tools, message) => {
    expect(() => parseAssistantTools(tools)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }));
    expect(() => parseAssistantTools(tools)).toThrow(message);
  });

  it('are kept exactly as they were given', () => {
    expect(both).toEqual([{ type: 'web_search' }, { type: 'scratchpad' }]);
    expect(parseAssistantTools([])).toEqual([]);
  });
});

describe('a toolbox', () => {
  const echo: Tool<{ text: string }> = {
    definition: { name: 'echo', description: 'Says it again.', input: toolInput({ text: z.string() }) },
    run: async ({ text }) => successResult(text),
  };
  const throwing = (name: string, error: Error): Tool => ({
    definition: { name, description: 'Throws.', input: toolInput({}) },
    run: () => Promise.reject(error),
  });
  const hanging: Tool = {
    definition: { name: 'hang', description: 'Never ends.', input: toolInput({}) },
    run: () => new Promise(() => {}),
  };

  function createBox() {
    const unexpected: unknown[] = [];
    const tools = [
      echo,
      throwing('conflict', new DomainError('CONFLICT', 'Somebody was faster.')),
      throwing('crash', new Error('secret stack')),
      hanging,
    ];
    const box = createToolbox({
      offered: tools.map((tool) => tool.definition),
      tools,
      onUnexpectedError: (_name, error) => unexpected.push(error),
    });
    const say = async (name: string, text: string, signal = never) => {
      const { content, isError } = await box.execute({ id: 'c1', name, arguments: text }, signal);
      return isError ? (JSON.parse(content) as { code: string; error: string }) : content;
    };
    return { box, say, unexpected };
  }

  it('checks the arguments and executes', async () => {
    const { say } = createBox();
    expect(await say('echo', '{"text":"hello"}')).toBe('hello');
    expect(await say('echo', '{"text":1}')).toMatchObject({ code: 'INVALID_ARGUMENTS', error: /text/ });
    expect(await say('echo', '{"text":"a","owner_id":"user_1"}')).toMatchObject({
      code: 'INVALID_ARGUMENTS',
      error: expect.stringContaining('owner_id'),
    });
    expect(await say('echo', '["hello"]')).toMatchObject({ code: 'INVALID_ARGUMENTS' });
    expect(await say('echo', '{"text":"hel')).toMatchObject({
      code: 'INVALID_ARGUMENTS',
      error: expect.stringContaining('not valid JSON'),
    });
  });

  it('answers an unknown tool with what there is, and a tool of another role with a refusal', async () => {
    const { say } = createBox();
    expect(await say('ehco', '{}')).toMatchObject({ code: 'UNKNOWN_TOOL', error: expect.stringContaining('echo') });
    expect(await say('toString', '{}')).toMatchObject({ code: 'UNKNOWN_TOOL' });
    expect(await say('update_scratchpad', '{}')).toMatchObject({ code: 'TOOL_NOT_PERMITTED' });
  });

  it('lets the model read a domain error, and nothing of a bug', async () => {
    const { say, unexpected } = createBox();
    expect(await say('conflict', '')).toMatchObject({ code: 'CONFLICT', error: 'Somebody was faster.' });
    expect(unexpected).toEqual([]);
    const crash = await say('crash', '{}');
    expect(crash).toMatchObject({ code: 'TOOL_FAILED' });
    expect(JSON.stringify(crash)).not.toContain('secret');
    expect(unexpected).toEqual([new Error('secret stack')]);
  });

  it('answers at once when it is aborted, whether the tool listens or not', async () => {
    const { say } = createBox();
    const abort = new AbortController();
    const answer = say('hang', '{}', abort.signal);
    abort.abort();
    expect(await answer).toMatchObject({ code: 'CANCELLED' });
    expect(await say('echo', '{"text":"hello"}', abort.signal)).toMatchObject({ code: 'CANCELLED' });
  });

  it('refuses to offer what nothing executes', () => {
    const build = () => createToolbox({ offered: [echo.definition], tools: [], onUnexpectedError: () => {} });
    expect(build).toThrow('Nothing executes the tool echo');
  });
});

describe('the scratchpad tools', () => {
  const written: string[] = [];
  const box = createToolbox({
    offered: scratchpadDefinitions,
    tools: createScratchpadTools({
      read: async () => 'the pad',
      update: async (content) => void written.push(`update ${content}`),
      append: async (note) => void written.push(`append ${note}`),
    }),
    onUnexpectedError: () => {},
  });
  const run = (name: string, input: object) => box.execute({ id: 'c1', name, arguments: JSON.stringify(input) }, never);

  it('read, replace and append through the port', async () => {
    expect(await run('read_scratchpad', {})).toEqual({ content: 'the pad', isError: false });
    expect(await run('update_scratchpad', { content: '' })).toMatchObject({ isError: false });
    expect(await run('append_scratchpad', { note: '[PENDING] tides' })).toMatchObject({ isError: false });
    expect(written).toEqual(['update ', 'append [PENDING] tides']);
  });

  it('refuse a blank note, text that no store keeps, and any other pad', async () => {
    written.length = 0;
    for (const [name, input] of [
      ['append_scratchpad', { note: ' \n' }],
      ['append_scratchpad', { note: 'a\u0000b' }],
      ['update_scratchpad', { content: '\uD83C' }],
      ['update_scratchpad', { content: 'x', scratchpad_id: 'sp_1' }],
      ['read_scratchpad', { thread_id: 'thread_1' }],
    ] as const) {
      expect(await run(name, input)).toMatchObject({ isError: true });
    }
    expect(written).toEqual([]);
  });
});
