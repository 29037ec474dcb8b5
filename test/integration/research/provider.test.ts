import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startLoopbackServer } from '../../../script/demo.d/loopback-server.js';
import { MOST_TURN_CALLS, MOST_TURN_CHARACTERS } from '../../../src/research/provider/answer-limits.js';
import { createOpenAiProvider, type FailedTry } from '../../../src/research/provider/openai-provider.js';
import { ProviderError } from '../../../src/research/provider/provider-error.js';
import type { ProviderRequest } from '../../../src/research/provider/provider-types.js';
import { completeStreams, failingStreams } from '../../fixtures/provider-streams.js';
import {
  callsReply,
  chunkOf,
  errorReply,
  startScriptedModelServer,
  textReply,
  type Reply,
  type ScriptedModelServer,
} from '../../support/scripted-model-server.js';

const apiKey = 'sk-the-very-secret-key-of-this-test';
const question: ProviderRequest = { messages: [{ role: 'user', content: 'When is high tide?' }], tools: [] };
const never = new AbortController().signal;

let model: ScriptedModelServer;
let waits: number[];
let failures: FailedTry[];

beforeEach(async () => {
  model = await startScriptedModelServer();
  waits = [];
  failures = [];
});
afterEach(() => model.close());

function createProvider(overrides: { baseUrl?: string; random?: () => number; silenceTimeoutMs?: number } = {}) {
  let made = 0;
  return createOpenAiProvider({
    baseUrl: model.baseUrl,
    apiKey,
    model: 'scripted',
    newCallId: () => `made-${++made}`,
    sleep: async (milliseconds) => void waits.push(milliseconds),
    random: () => 0.5,
    onFailedTry: (failure) => failures.push(failure),
    ...overrides,
  });
}

const failureOf = (turn: Promise<unknown>): Promise<unknown> =>
  turn.then(
    () => expect.fail('The turn succeeded.'),
    (error: unknown) => error,
  );

describe('a provider that', () => {
  it.each(completeStreams)('$name comes out right', async ({ chunks, done, expected }) => {
    model.script({ chunks, done });
    const deltas = { text: '', reasoning: '' };
    const listener = {
      onText: (delta: string) => void (deltas.text += delta),
      onReasoning: (delta: string) => void (deltas.reasoning += delta),
    };
    const turn = await createProvider().streamTurn(question, listener, never);
    const { text = '', reasoning, calls = [], finishReason } = expected;
    expect(turn).toMatchObject({ text, finishReason });
    expect(turn.reasoning).toEqual(reasoning);
    expect(turn.toolCalls).toEqual(calls.map((call) => ({ id: expect.stringMatching(/^made-\d$/), ...call })));
    expect(new Set(turn.toolCalls.map((call) => call.id)).size).toBe(calls.length);
    expect(deltas).toEqual({ text, reasoning: reasoning?.text ?? '' });
    model.verify();
  });

  it.each(failingStreams)('$name is a failure, tried once', async ({ chunks, done, expected }) => {
    model.script({ chunks, done });
    const turn = createProvider().streamTurn(question, {}, never);
    await expect(turn).rejects.toMatchObject({ name: 'ProviderError', code: expected });
    expect(model.requests).toHaveLength(1);
  });
});

describe('the key that a provider echoes', () => {
  it.each([1, 7, 1000])('comes out of no part of a turn, in pieces of %i characters', async (size) => {
    const pieces = (text: string): string[] => text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    model.script({
      chunks: [
        ...pieces(`I was given ${apiKey}.`).map((piece) => chunkOf({ reasoning_content: piece })),
        ...pieces(`The key is ${apiKey}, sk-the-very`).map((content) => chunkOf({ content })),
        chunkOf({ tool_calls: [{ index: 0, id: 'a', function: { name: 'note', arguments: `{"text":"${apiKey}"}` } }] }),
        chunkOf({}, 'tool_calls'),
      ],
      done: true,
    });
    const deltas: string[] = [];
    const hear = (delta: string): void => void deltas.push(delta);
    const turn = await createProvider().streamTurn(question, { onText: hear }, never);
    expect(deltas.join('')).toBe('The key is [secret], sk-the-very');
    expect(turn).toMatchObject({
      text: 'The key is [secret], sk-the-very',
      reasoning: { text: 'I was given [secret].' },
      toolCalls: [{ arguments: '{"text":"[secret]"}' }],
    });
  });
});

describe('an endpoint that is no streaming completion', () => {
  it.each(['application/json', 'text/html; charset=utf-8'])('is named as such: %s', async (type) => {
    const server = await startLoopbackServer((_request, response) =>
      response.writeHead(200, { 'content-type': type }).end('{}'),
    );
    const error = await failureOf(createProvider({ baseUrl: server.url }).streamTurn(question, {}, never));
    await server.close();
    expect(error).toMatchObject({
      code: 'PROVIDER_PROTOCOL',
      message: expect.stringContaining('did not answer with a stream') as string,
    });
  });

  it('sends the conversation nowhere else', async () => {
    model.script(textReply('Noon.'));
    const server = await startLoopbackServer((_request, response) =>
      response.writeHead(307, { location: `${model.baseUrl}/chat/completions` }).end(),
    );
    const error = await failureOf(createProvider({ baseUrl: server.url }).streamTurn(question, {}, never));
    await server.close();
    expect(error).toMatchObject({ code: 'PROVIDER_ERROR', message: expect.stringContaining('redirects') as string });
    expect(model.requests).toEqual([]);
  });

  it('has its other choices ignored', async () => {
    const other = { choices: [{ index: 1, delta: { content: 'Never.' }, finish_reason: 'stop' }] };
    model.script({ chunks: [chunkOf({ content: 'No' }), other, chunkOf({ content: 'on.' }, 'stop')], done: true });
    expect(await createProvider().streamTurn(question, {}, never)).toMatchObject({ text: 'Noon.' });
  });
});

describe('a request', () => {
  it('is streamed, names the model, and carries the conversation and the tools as the protocol wants them', async () => {
    model.script(textReply('Noon.'));
    await createProvider().streamTurn(
      {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'When?' },
          {
            role: 'assistant',
            content: '',
            toolCalls: [
              { id: 'a', name: 'read_scratchpad', arguments: '{}' },
              { id: 'b', name: 'perform_web_search', arguments: '{"query' },
            ],
            reasoning: { field: 'reasoning_content', text: 'Look it up.' },
          },
          { role: 'tool', toolCallId: 'a', content: 'empty' },
          { role: 'tool', toolCallId: 'b', content: 'no JSON' },
        ],
        tools: [{ name: 'read_scratchpad', description: 'Reads.', parameters: { type: 'object', properties: {} } }],
      },
      {},
      never,
    );
    const { body, headers } = model.requests[0]!;
    expect(headers.authorization).toBe(`Bearer ${apiKey}`);
    expect(body).toEqual({
      model: 'scripted',
      stream: true,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'When?' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'read_scratchpad', arguments: '{}' } },
            { id: 'b', type: 'function', function: { name: 'perform_web_search', arguments: '{}' } },
          ],
          reasoning_content: 'Look it up.',
        },
        { role: 'tool', tool_call_id: 'a', content: 'empty' },
        { role: 'tool', tool_call_id: 'b', content: 'no JSON' },
      ],
      tools: [
        {
          type: 'function',
          function: {
            name: 'read_scratchpad',
            description: 'Reads.',
            parameters: { type: 'object', properties: {} },
          },
        },
      ],
    });
  });

  it('without tools does not mention tools, and without a key sends no credentials', async () => {
    model.script(textReply('Noon.'));
    const provider = createOpenAiProvider({
      baseUrl: model.baseUrl,
      apiKey: undefined,
      model: 'scripted',
      newCallId: () => 'made',
    });
    await provider.streamTurn(question, {}, never);
    expect(model.requests[0]!.body).not.toHaveProperty('tools');
    expect(model.requests[0]!.headers).not.toHaveProperty('authorization');
  });
});

describe('a failure before the first byte', () => {
  it.each([408, 429, 500, 502, 503])('with HTTP %i is tried again', async (status) => {
    model.script(errorReply(status, 'later'), textReply('Noon.'));
    await expect(createProvider().streamTurn(question, {}, never)).resolves.toMatchObject({ text: 'Noon.' });
    model.verify();
  });

  it.each([400, 401, 403, 404, 422])('with HTTP %i is final', async (status) => {
    model.script(errorReply(status, 'no'));
    await expect(createProvider().streamTurn(question, {}, never)).rejects.toMatchObject({
      code: 'PROVIDER_ERROR',
      status,
    });
    expect(model.requests).toHaveLength(1);
  });

  it('is tried three times and no more', async () => {
    model.script(errorReply(500, 'one'), errorReply(500, 'two'), errorReply(500, 'three'), textReply('never'));
    await expect(createProvider().streamTurn(question, {}, never)).rejects.toMatchObject({ code: 'PROVIDER_ERROR' });
    expect(model.requests).toHaveLength(3);
    expect(waits).toEqual([500, 1000]);
    expect(failures.map((failure) => failure.attempt)).toEqual([1, 2, 3]);
  });

  it('is tried again when the connection breaks after the headers', async () => {
    model.script({ chunks: [], ending: 'die' }, textReply('Noon.'));
    await expect(createProvider().streamTurn(question, {}, never)).resolves.toMatchObject({ text: 'Noon.' });
  });

  it('waits at least as long as Retry-After asks, plus jitter', async () => {
    for (const [random, expected] of [
      [0, 7000],
      [0.999, 7500],
    ] as const) {
      waits = [];
      model.script(errorReply(429, 'slow down', { 'retry-after': '7' }), textReply('Noon.'));
      await createProvider({ random: () => random }).streamTurn(question, {}, never);
      expect(waits).toEqual([expected]);
    }
  });

  it('understands a Retry-After that is a date', async () => {
    const inNineSeconds = new Date(Date.now() + 9000).toUTCString();
    model.script(errorReply(503, 'later', { 'retry-after': inNineSeconds }), textReply('Noon.'));
    await createProvider({ random: () => 0 }).streamTurn(question, {}, never);
    expect(waits[0]).toBeGreaterThan(7000);
    expect(waits[0]).toBeLessThan(9100);
  });

  it('is final when the provider asks to stay away for long', async () => {
    model.script(errorReply(429, 'tomorrow', { 'retry-after': '86400' }));
    await expect(createProvider().streamTurn(question, {}, never)).rejects.toMatchObject({ status: 429 });
    expect(model.requests).toHaveLength(1);
  });

  it('is an error when nobody listens', async () => {
    await model.close();
    const error = await failureOf(createProvider().streamTurn(question, {}, never));
    expect(error).toMatchObject({ code: 'PROVIDER_ERROR' });
    expect((error as Error).message).not.toContain('127.0.0.1');
    expect(failures).toHaveLength(3);
  });
});

describe('a failure after the first byte', () => {
  it('is not tried again, and the text until then does not become an answer', async () => {
    model.script({ chunks: [chunkOf({ content: 'High ti' })], ending: 'die' }, textReply('never'));
    let text = '';
    const turn = createProvider().streamTurn(question, { onText: (delta) => void (text += delta) }, never);
    await expect(turn).rejects.toMatchObject({ code: 'PROVIDER_ERROR' });
    expect(text).toBe('High ti');
    expect(model.requests).toHaveLength(1);
  });

  it('is also a provider that falls silent', async () => {
    model.script({ chunks: [chunkOf({ content: 'High ti' })], ending: 'hang' });
    const turn = createProvider({ silenceTimeoutMs: 100 }).streamTurn(question, {}, never);
    await expect(turn).rejects.toMatchObject({ code: 'PROVIDER_ERROR', message: expect.stringContaining('silent') });
    await model.requests[0]!.hungUp;
  });
});

describe('an answer without end', () => {
  const piece = 'and so on, '.repeat(1000);
  const endless = (delta: (index: number) => object): Reply => ({
    chunks: Array.from({ length: 200 }, (_, index) => chunkOf(delta(index))),
    ending: 'hang',
  });

  it.each<[string, Reply, string]>([
    ['text', endless(() => ({ content: piece })), `${MOST_TURN_CHARACTERS} characters`],
    ['thoughts', endless(() => ({ reasoning_content: piece })), `${MOST_TURN_CHARACTERS} characters`],
    [
      'the arguments of a call',
      endless(() => ({ tool_calls: [{ index: 0, id: 'a', function: { name: 'note', arguments: piece } }] })),
      `${MOST_TURN_CHARACTERS} characters`,
    ],
    [
      'calls',
      endless((index) => ({ tool_calls: [{ index, id: `c${index}`, function: { name: 'note', arguments: '{}' } }] })),
      `${MOST_TURN_CALLS} tool calls`,
    ],
    ['one line', { chunks: Array.from({ length: 100 }, () => 'x'.repeat(100_000)), ending: 'hang' }, 'one line of it'],
  ])('is broken off with an error that says so, and not asked for again: %s', async (_what, reply, reason) => {
    model.script(reply);
    let told = 0;
    const listener = {
      onText: (delta: string) => void (told += delta.length),
      onReasoning: (delta: string) => void (told += delta.length),
    };
    const error = await failureOf(createProvider().streamTurn(question, listener, never));
    expect(error).toMatchObject({ code: 'PROVIDER_PROTOCOL', message: expect.stringContaining(reason) as string });
    expect(told).toBeLessThanOrEqual(MOST_TURN_CHARACTERS);
    await model.requests[0]!.hungUp;
    expect(model.requests).toHaveLength(1);
  });

  it('is no hindrance when it is an error that never ends', async () => {
    let hungUp = 0;
    const server = await startLoopbackServer((_request, response) => {
      response.writeHead(400, { 'content-type': 'text/plain' });
      response.on('close', () => (hungUp += 1));
      for (let count = 0; count < 100; count++) response.write('no, '.repeat(1000));
    });
    const error = await failureOf(createProvider({ baseUrl: server.url }).streamTurn(question, {}, never));
    expect(error).toMatchObject({ code: 'PROVIDER_ERROR', status: 400 });
    await expect.poll(() => hungUp).toBe(1);
    await server.close();
  });

  it('is none at the limit', async () => {
    const text = 'é'.repeat(MOST_TURN_CHARACTERS);
    model.script({ chunks: [chunkOf({ content: text }, 'stop')], done: true });
    expect((await createProvider().streamTurn(question, {}, never)).text).toBe(text);
  });
});

describe('an abort', () => {
  it('in the middle of a stream closes the connection and throws the reason, though the package ends quietly', async () => {
    model.script({ chunks: [chunkOf({ content: 'High ti' })], ending: 'hang' });
    const abort = new AbortController();
    const reason = new Error('cancelled by a test');
    const turn = createProvider().streamTurn(question, { onText: () => abort.abort(reason) }, abort.signal);
    await expect(turn).rejects.toBe(reason);
    await model.requests[0]!.hungUp;
    expect(model.requests).toHaveLength(1);
  });

  it('counts also when all but the end of the stream had arrived', async () => {
    model.script({ chunks: [chunkOf({ content: 'Noon.' }), chunkOf({}, 'stop')], ending: 'hang' });
    const abort = new AbortController();
    const reason = new Error('cancelled by a test');
    const turn = createProvider().streamTurn(
      question,
      { onText: () => setTimeout(() => abort.abort(reason), 50) },
      abort.signal,
    );
    await expect(turn).rejects.toBe(reason);
  });

  it('before the first byte, or between two tries, ends it as well', async () => {
    const abort = new AbortController();
    const reason = new Error('cancelled by a test');
    model.script({ after: new Promise(() => {}) });
    const turn = createProvider().streamTurn(question, {}, abort.signal);
    await expect.poll(() => model.requests.length).toBe(1);
    abort.abort(reason);
    await expect(turn).rejects.toBe(reason);

    const second = new AbortController();
    model.script(errorReply(500, 'later'));
    const provider = createOpenAiProvider({
      baseUrl: model.baseUrl,
      apiKey,
      model: 'scripted',
      newCallId: () => 'made',
      onFailedTry: () => setTimeout(() => second.abort(reason), 10),
    });
    await expect(provider.streamTurn(question, {}, second.signal)).rejects.toBe(reason);
    expect(model.requests).toHaveLength(2);
  });
});

describe('the key', () => {
  it('is in no message, no detail and no property of an error, even when the provider echoes it', async () => {
    model.script(
      errorReply(401, `Incorrect API key provided: ${apiKey}`, { 'x-echo': apiKey }),
      { chunks: [chunkOf({ content: 'a' }), { error: { message: `bad key ${apiKey}`, param: apiKey } }] },
      { chunks: [chunkOf({ content: 'a' }), `data: {${apiKey}\n\n`] },
    );
    for (const _ of [1, 2, 3]) {
      const error = await failureOf(createProvider().streamTurn(question, {}, never));
      expect(error).toBeInstanceOf(ProviderError);
      const everything = [error, ...failures.map((failure) => failure.error)].map((one) =>
        Object.getOwnPropertyNames(one).map((name) => String((one as Record<string, unknown>)[name])),
      );
      expect(JSON.stringify(everything)).not.toContain(apiKey);
      expect((error as Error).cause).toBeUndefined();
    }
    expect(failures.map((failure) => failure.error.detail).join()).toContain('[secret]');
  });
});

describe('the scripted server', () => {
  it('objects to unexpected requests and to unused replies', async () => {
    await failureOf(createProvider().streamTurn(question, {}, never));
    expect(() => model.verify()).toThrow('1 unexpected model request');
    const other = await startScriptedModelServer();
    other.script(callsReply([]));
    expect(() => other.verify()).toThrow('1 scripted reply');
    await other.close();
  });
});
