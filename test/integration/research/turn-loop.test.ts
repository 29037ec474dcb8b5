import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createOpenAiProvider } from '../../../src/research/provider/openai-provider.js';
import { createStopSignal } from '../../../src/research/run-stop.js';
import { runTurnLoop, type LoopOutcome } from '../../../src/research/turn-loop.js';
import { hydrateTools } from '../../../src/tools/hydrate.js';
import { createScratchpadTools } from '../../../src/tools/scratchpad/scratchpad-tools.js';
import { errorResult, successResult, toolInput, type Tool } from '../../../src/tools/tool-definition.js';
import { createToolbox } from '../../../src/tools/toolbox.js';
import { createConversationInMemory, type ConversationInMemory } from '../../support/conversation-in-memory.js';
import {
  callsReply,
  chunkOf,
  errorReply,
  startScriptedModelServer,
  textReply,
  type ModelRequest,
  type ScriptedModelServer,
  type WireMessage,
} from '../../support/scripted-model-server.js';

let model: ScriptedModelServer;
let conversation: ConversationInMemory;
let happened: string[];

beforeEach(async () => {
  model = await startScriptedModelServer();
  conversation = createConversationInMemory('When is high tide?');
  happened = [];
});
afterEach(() => model.close());

const gates = new Map<string, Gate>();
interface Gate {
  promise: Promise<void>;
  resolve(): void;
}
function gate(name: string): Gate {
  const known = gates.get(name);
  if (known) return known;
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  const made = { promise, resolve };
  gates.set(name, made);
  return made;
}

const look: Tool<{ what: string }> = {
  definition: { name: 'look', description: 'Looks.', input: toolInput({ what: z.string() }) },
  async run({ what }) {
    happened.push(`looks at ${what}`);
    if (gates.has(what)) await gates.get(what)!.promise;
    if (what === 'error') return errorResult('NOT_FOUND', 'Nothing there.');
    if (what === 'crash') throw new Error('a bug');
    return successResult(`saw ${what}`);
  },
};
const stuck: Tool = {
  definition: { name: 'stuck', description: 'Never ends.', input: toolInput({}) },
  run: () => new Promise(() => {}),
};

interface Settings {
  maxTurns?: number;
  contextMaxTokens?: number;
  wallClockMs?: number;
}

function startLoop({ maxTurns = 8, contextMaxTokens = 100_000, wallClockMs = 20_000 }: Settings = {}) {
  gates.clear();
  const stop = createStopSignal(wallClockMs);
  const pad = { read: async () => 'the pad', update: async () => {}, append: async () => {} };
  const worker = hydrateTools([{ type: 'scratchpad' }], 'RESEARCH_WORKER');
  let made = 0;
  const outcome = (): Promise<LoopOutcome> =>
    runTurnLoop({
      provider: createOpenAiProvider({
        baseUrl: model.baseUrl,
        apiKey: 'key-of-the-test',
        model: 'scripted',
        newCallId: () => `made-${++made}`,
        sleep: async () => {},
      }),
      conversation,
      toolbox: createToolbox({
        offered: [...worker, look.definition, stuck.definition],
        tools: [...createScratchpadTools(pad), look, stuck],
        onUnexpectedError: (name, error) => happened.push(`${name} threw ${String(error)}`),
      }),
      listener: {
        turnStarted: (number) => happened.push(`turn ${number}`),
        text: (delta) => happened.push(`text ${delta}`),
        callFinished: (call, result) => happened.push(`${call.id} ${result.isError ? 'failed' : 'done'}`),
      },
      signal: stop.signal,
      system: 'You look at tides.',
      taskId: 'task',
      maxTurns,
      contextMaxTokens,
      lastTurnNote: 'This is your last turn.',
    }).finally(() => stop.dispose());
  return { stop, outcome: outcome() };
}

const lookAt = (id: string, what: string) => ({ id, name: 'look', arguments: { what } });
const stored = () =>
  conversation.messages.slice(1).map((message) => {
    if (message.role === 'tool') return `${message.toolCallId}: ${message.content}`;
    return message.role === 'assistant' && message.toolCalls
      ? `calls ${message.toolCalls.map(({ id }) => id).join(' ')}`
      : `${message.role}: ${message.content}`;
  });
const code = (content: string) => (JSON.parse(content) as { is_error: true; code: string }).code;
const resultCodes = () =>
  conversation.messages.flatMap((message) =>
    message.role === 'tool' ? [`${message.toolCallId} ${message.isError ? code(message.content) : 'ok'}`] : [],
  );

/** Every call of every request is answered exactly once, directly after its message, in call order. */
function expectAnsweredCalls(requests: ModelRequest[]): void {
  for (const { body } of requests) {
    const rest: WireMessage[] = [...body.messages];
    for (let message = rest.shift(); message; message = rest.shift()) {
      expect(message.role).not.toBe('tool');
      const calls = message.tool_calls ?? [];
      expect(rest.splice(0, calls.length).map((answer) => answer.tool_call_id)).toEqual(calls.map(({ id }) => id));
    }
  }
}

describe('a run', () => {
  it('asks, answers its calls, and completes with the text of the last turn, which it does not store', async () => {
    model.script(
      callsReply([lookAt('a', 'gauge')], { text: 'I look.' }),
      callsReply([lookAt('a', 'moon')]),
      textReply('Noon.'),
    );
    expect(await startLoop().outcome).toEqual({ kind: 'completed', text: 'Noon.', turnCount: 3 });
    expect(stored()).toEqual(['calls a', 'a: saw gauge', 'calls a', 'a: saw moon']);
    expect(model.requests.map(({ body }) => body.tools?.map((tool) => tool.function.name))).toEqual(
      Array.from({ length: 3 }, () => ['read_scratchpad', 'append_scratchpad', 'look', 'stuck']),
    );
    expect(model.requests[2]!.body.messages.slice(0, 2)).toEqual([
      { role: 'system', content: 'You look at tides.' },
      { role: 'user', content: 'When is high tide?' },
    ]);
    expectAnsweredCalls(model.requests);
    model.verify();
  });

  it('executes the calls of one message side by side, and stores the results in call order before it asks again', async () => {
    const { outcome } = startLoop();
    gate('first');
    gate('second');
    model.script(callsReply([lookAt('a', 'first'), lookAt('b', 'second'), lookAt('c', 'third')]), textReply('Noon.'));
    await expect.poll(() => happened.filter((line) => line.startsWith('looks'))).toHaveLength(3);
    await expect.poll(() => happened).toContain('c done');
    expect(stored()).toEqual(['calls a b c']);
    gate('second').resolve();
    await expect.poll(() => happened).toContain('b done');
    expect(stored()).toEqual(['calls a b c']);
    expect(model.requests).toHaveLength(1);
    gate('first').resolve();
    expect(await outcome).toMatchObject({ kind: 'completed' });
    expect(stored()).toEqual(['calls a b c', 'a: saw first', 'b: saw second', 'c: saw third']);
    expectAnsweredCalls(model.requests);
  });

  it('answers every call that cannot be executed with an error of its own, and goes on', async () => {
    model.script(
      callsReply([
        { id: 'a', name: 'no_such_tool', arguments: {} },
        { id: 'b', name: 'look', arguments: '{"what": "gau' },
        { id: 'c', name: 'look', arguments: { what: 7 } },
        lookAt('d', 'crash'),
        { id: 'e', name: 'update_scratchpad', arguments: { content: 'mine' } },
        lookAt('f', 'error'),
        { id: 'g', name: 'look', arguments: { what: 'gauge', user_id: 'user_2' } },
        lookAt('h', 'gauge'),
      ]),
      textReply('Noon.'),
    );
    expect(await startLoop().outcome).toMatchObject({ kind: 'completed', text: 'Noon.' });
    expect(resultCodes()).toEqual([
      'a UNKNOWN_TOOL',
      'b INVALID_ARGUMENTS',
      'c INVALID_ARGUMENTS',
      'd TOOL_FAILED',
      'e TOOL_NOT_PERMITTED',
      'f NOT_FOUND',
      'g INVALID_ARGUMENTS',
      'h ok',
    ]);
    expect(happened).toContain('look threw Error: a bug');
    expectAnsweredCalls(model.requests);
    model.verify();
  });

  it('waits for the store: a message is there before its results, and these before the next request', async () => {
    conversation.beforeAppend = () => sleep(30);
    model.script(callsReply([lookAt('a', 'gauge'), lookAt('b', 'moon')]), textReply('Noon.'));
    expect(await startLoop().outcome).toMatchObject({ kind: 'completed' });
    expect(stored()).toEqual(['calls a b', 'a: saw gauge', 'b: saw moon']);
    expect(model.requests[1]!.body.messages.map(({ content }) => content)).toContain('saw moon');
  });

  it('keeps two calls apart that a provider gave one id', async () => {
    model.script(callsReply([lookAt('a', 'gauge'), lookAt('a', 'moon')]), textReply('Noon.'));
    expect(await startLoop().outcome).toMatchObject({ kind: 'completed' });
    expect(stored().slice(0, 3)).toEqual(['calls a made-1', 'a: saw gauge', 'made-1: saw moon']);
    expectAnsweredCalls(model.requests);
  });

  it('executes none of the calls of a message that was cut off', async () => {
    model.script(
      callsReply([lookAt('a', 'gauge'), { id: 'b', name: 'look', arguments: '{"wh' }], { finishReason: 'length' }),
      textReply('Noon.'),
    );
    expect(await startLoop().outcome).toMatchObject({ kind: 'completed' });
    expect(resultCodes()).toEqual(['a TRUNCATED_CALL', 'b TRUNCATED_CALL']);
    expect(happened.filter((line) => line.startsWith('looks'))).toEqual([]);
    expectAnsweredCalls(model.requests);
  });

  it('does not execute the third identical call in a row', async () => {
    model.script(
      callsReply([lookAt('a', 'gauge')]),
      callsReply([lookAt('b', 'gauge')]),
      callsReply([lookAt('c', 'gauge')]),
      textReply('Noon.'),
    );
    expect(await startLoop().outcome).toMatchObject({ kind: 'completed', turnCount: 4 });
    expect(resultCodes()).toEqual(['a ok', 'b ok', 'c REPEATED_CALL']);
    expect(model.requests[3]!.body.messages.at(-1)!.content).toContain('3 times in a row');
  });

  it('hides what no store keeps in the results of tools', async () => {
    model.script(callsReply([lookAt('a', 'a\u0000b')]), textReply('Noon.'));
    expect(await startLoop().outcome).toMatchObject({ kind: 'completed' });
    expect(stored()[1]).toBe('a: saw a\uFFFDb');
  });
});

describe('the turn budget', () => {
  it('permits 8 turns and no ninth request; the last one offers no tools and says so', async () => {
    model.respond((request) => callsReply([lookAt(`c${request.index}`, `place ${request.index}`)]));
    expect(await startLoop().outcome).toMatchObject({ kind: 'failed', code: 'MAX_TURNS_EXCEEDED', turnCount: 8 });
    expect(model.requests).toHaveLength(8);
    expect(model.requests.map(({ body }) => body.tools !== undefined)).toEqual([
      ...Array<boolean>(7).fill(true),
      false,
    ]);
    expect(model.requests[7]!.body.messages.at(-1)).toEqual({ role: 'user', content: 'This is your last turn.' });
    expect(stored().join()).not.toContain('last turn.');
    expect(resultCodes().at(-1)).toBe('c7 NO_TURNS_LEFT');
    expect(happened.filter((line) => line.startsWith('looks'))).toHaveLength(7);
  });

  it('is kept by a clean answer in the last permitted turn', async () => {
    model.respond((request) =>
      request.body.tools ? callsReply([lookAt('c', `place ${request.index}`)]) : textReply('Noon.'),
    );
    expect(await startLoop({ maxTurns: 3 }).outcome).toEqual({ kind: 'completed', text: 'Noon.', turnCount: 3 });
  });
});

describe('a provider that fails', () => {
  it('before it says anything ends the run with its error', async () => {
    model.script(errorReply(401, 'who are you?'));
    expect(await startLoop().outcome).toMatchObject({ kind: 'failed', code: 'PROVIDER_ERROR', turnCount: 0 });
    expect(stored()).toEqual([]);
  });

  it('in the middle of a text leaves nothing of the text behind', async () => {
    model.script(callsReply([lookAt('a', 'gauge')]), {
      chunks: [chunkOf({ content: 'High tide is at' })],
      ending: 'die',
    });
    expect(await startLoop().outcome).toMatchObject({ kind: 'failed', code: 'PROVIDER_ERROR', turnCount: 1 });
    expect(happened).toContain('text High tide is at');
    expect(stored()).toEqual(['calls a', 'a: saw gauge']);
  });

  it('to send the calls that it announced does not make the run loop', async () => {
    model.script(callsReply([]));
    expect(await startLoop().outcome).toMatchObject({ kind: 'failed', code: 'PROVIDER_PROTOCOL' });
    expect(model.requests).toHaveLength(1);
  });

  it('to end its answer by itself is no success', async () => {
    model.script({ chunks: [chunkOf({ content: 'High tide is at' }), chunkOf({}, 'length')] });
    expect(await startLoop().outcome).toMatchObject({ kind: 'failed', code: 'PROVIDER_ERROR' });
    expect(stored()).toEqual([]);
  });
});

describe('the context', () => {
  it('that grows over its budget loses its oldest groups, and the request stays whole', async () => {
    model.respond((request) =>
      request.index < 6
        ? callsReply([lookAt(`c${request.index}`, 'x'.repeat(900 + request.index))])
        : textReply('Noon.'),
    );
    expect(await startLoop({ contextMaxTokens: 2500 }).outcome).toMatchObject({ kind: 'completed' });
    const last = model.requests.at(-1)!.body.messages;
    expect(last[1]!.content).toBe('When is high tide?');
    expect(last.filter(({ role }) => role === 'tool').map((message) => message.tool_call_id)).toEqual([
      'c3',
      'c4',
      'c5',
    ]);
    expectAnsweredCalls(model.requests);
  });

  it('that cannot be made small enough ends the run', async () => {
    expect(await startLoop({ contextMaxTokens: 100 }).outcome).toMatchObject({
      kind: 'failed',
      code: 'CONTEXT_OVERFLOW',
    });
    expect(model.requests).toHaveLength(0);
  });
});

describe('a run that is ended from outside', () => {
  it('in the middle of a stream closes the connection, stores nothing of it and asks nothing more', async () => {
    model.script({ chunks: [chunkOf({ content: 'High' })], ending: 'hang' });
    const { stop, outcome } = startLoop();
    await expect.poll(() => happened).toContain('text High');
    stop.cancel();
    expect(await outcome).toEqual({ kind: 'stopped', status: 'CANCELLED', turnCount: 0 });
    await model.requests[0]!.hungUp;
    await sleep(50);
    expect(model.requests).toHaveLength(1);
    expect(stored()).toEqual([]);
  });

  it('in the middle of its calls answers every one of them, and asks nothing more', async () => {
    const { stop, outcome } = startLoop();
    model.script(callsReply([lookAt('a', 'gauge'), { id: 'b', name: 'stuck', arguments: {} }, lookAt('c', 'moon')]));
    await expect.poll(() => happened).toContain('c done');
    stop.cancel();
    expect(await outcome).toMatchObject({ kind: 'stopped', status: 'CANCELLED' });
    expect(resultCodes()).toEqual(['a ok', 'b CANCELLED', 'c ok']);
    expect(model.requests).toHaveLength(1);
  });

  it('between a message and its calls executes none of them, and answers them all', async () => {
    const { stop, outcome } = startLoop();
    model.script(callsReply([lookAt('a', 'gauge'), lookAt('b', 'moon')]));
    conversation.beforeAppend = (message) => {
      if (message.role === 'assistant') stop.cancel();
    };
    expect(await outcome).toMatchObject({ kind: 'stopped', status: 'CANCELLED' });
    expect(resultCodes()).toEqual(['a CANCELLED', 'b CANCELLED']);
    expect(happened.filter((line) => line.startsWith('looks'))).toEqual([]);
  });

  it('by the clock is expired', async () => {
    model.script({ chunks: [chunkOf({ content: 'High' })], ending: 'hang' });
    expect(await startLoop({ wallClockMs: 200 }).outcome).toMatchObject({ kind: 'stopped', status: 'EXPIRED' });
    await model.requests[0]!.hungUp;
  });

  it('before it began asks nothing at all', async () => {
    const { stop, outcome } = startLoop();
    stop.cancel();
    expect(await outcome).toMatchObject({ kind: 'stopped', turnCount: 0 });
    await sleep(50);
    expect(model.requests.every((request) => request.hasHungUp())).toBe(true);
  });
});

describe('a crash between two results', () => {
  it('is made good by the next start: what was open is closed before the first request', async () => {
    model.script(callsReply([lookAt('a', 'gauge'), lookAt('b', 'moon'), lookAt('c', 'sun')]));
    conversation.beforeAppend = (message) => {
      if (message.role === 'tool' && message.toolCallId === 'b') throw new Error('the store went away');
    };
    await expect(startLoop().outcome).rejects.toThrow('the store went away');
    expect(stored()).toEqual(['calls a b c', 'a: saw gauge']);

    conversation.beforeAppend = undefined;
    await conversation.append({ role: 'user', content: 'Go on.' });
    model.script(textReply('Noon.'));
    expect(await startLoop().outcome).toMatchObject({ kind: 'completed', text: 'Noon.' });
    expect(resultCodes()).toEqual(['a ok', 'b INTERRUPTED', 'c INTERRUPTED']);
    expectAnsweredCalls(model.requests);
    expect(model.requests[1]!.body.messages.at(-1)).toEqual({ role: 'user', content: 'Go on.' });
  });
});
