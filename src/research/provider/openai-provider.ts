// The client of an OpenAI-compatible chat-completions endpoint: streamed, patient before the first byte, strict after it.
import { setTimeout as sleepFor } from 'node:timers/promises';
import OpenAI from 'openai';
import { createByteLimit, createErrorBodyLimit } from './answer-limits.js';
import { ProviderError, redact, toProviderFailure } from './provider-error.js';
import type { Provider, ProviderRequest, ProviderTurn, TurnListener } from './provider-types.js';
import { secretsOf } from './secret-filter.js';
import { createTurnAssembly } from './turn-assembly.js';
import { toWireMessage, toWireTool } from './wire-messages.js';

export interface ProviderOptions {
  baseUrl: string;
  /** Undefined for an endpoint that wants none: no Authorization header is sent. */
  apiKey: string | undefined;
  model: string;
  newCallId: () => string;
  /** Waits; may reject when the signal is aborted. */
  sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** At least 0, below 1. */
  random?: () => number;
  now?: () => number;
  /** How long the provider may take to begin an answer. */
  firstByteTimeoutMs?: number;
  /** How long it may say nothing in the middle of one. */
  silenceTimeoutMs?: number;
  /** Told of every failed try, for the log; the detail holds no key. */
  onFailedTry?: (failure: FailedTry) => void;
}

export interface FailedTry {
  error: ProviderError;
  /** Counted from 1. */
  attempt: number;
  /** Undefined: this was the last one. */
  retryInMs: number | undefined;
}

const maxTries = 3;
const firstDelayMs = 500;
/** A provider that wants us back later than this gets no second try: knocking earlier than asked is no option. */
const maxRetryAfterMs = 60_000;

/** Exponential with jitter; never earlier than the provider asked for. */
function delayBeforeRetry(attempt: number, retryAfterMs: number | undefined, random: () => number): number {
  const step = firstDelayMs * 2 ** (attempt - 1);
  return Math.round(retryAfterMs === undefined ? step * (0.5 + random()) : retryAfterMs + step * random());
}

export function createOpenAiProvider(options: ProviderOptions): Provider {
  const { firstByteTimeoutMs = 120_000, silenceTimeoutMs = 120_000, random = Math.random, now = Date.now } = options;
  const sleep = options.sleep ?? ((milliseconds, signal) => sleepFor(milliseconds, undefined, { signal }));
  const secrets = options.apiKey === undefined ? [] : [options.apiKey, encodeURIComponent(options.apiKey)];

  /** One try. `begun` is called with the first byte of the answer's body. */
  async function attempt(
    request: ProviderRequest,
    listener: TurnListener,
    signal: AbortSignal,
    begun: () => void,
  ): Promise<ProviderTurn> {
    const silence = new AbortController();
    // The package wraps what its fetch throws.
    const refusal: { error?: ProviderError } = {};
    let timer: NodeJS.Timeout | undefined;
    const heard = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silenceTimeoutMs);
    };
    // A client per try: its fetch is where this try's first byte is seen, which the package does not tell.
    const client = new OpenAI({
      baseURL: options.baseUrl,
      apiKey: options.apiKey ?? 'none',
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      maxRetries: 0,
      timeout: firstByteTimeoutMs,
      logLevel: 'off',
      defaultHeaders: options.apiKey === undefined ? { Authorization: null } : {},
      fetch: async (input, init) => {
        // Not followed: where a provider sends us next, nobody has said that the conversation and the key may go.
        const response = await fetch(input, { ...init, redirect: 'manual' });
        const { body, status, headers } = response;
        if (!body) return response;
        if (!response.ok) return new Response(body.pipeThrough(createErrorBodyLimit()), { status, headers });
        const type = headers.get('content-type') ?? '';
        if (/json|html/i.test(type)) {
          await body.cancel();
          refusal.error = new ProviderError(
            'PROVIDER_PROTOCOL',
            'The model provider did not answer with a stream: check that LLM_BASE_URL is the base of its API.',
            `content-type: ${redact(type, secrets).slice(0, 100)}`,
          );
          throw refusal.error;
        }
        const limited = createByteLimit(() => {
          begun();
          heard();
        });
        return new Response(body.pipeThrough(limited), { status, headers });
      },
    });
    try {
      const stream = await client.chat.completions.create(
        {
          model: options.model,
          stream: true,
          messages: request.messages.map(toWireMessage),
          ...(request.tools.length > 0 ? { tools: request.tools.map(toWireTool) } : {}),
        },
        { signal: AbortSignal.any([signal, silence.signal]) },
      );
      heard();
      const turn = createTurnAssembly(listener, options.newCallId, secretsOf(options.apiKey));
      for await (const chunk of stream) turn.push(chunk);
      // The package ends an aborted stream without an error, like a complete one.
      signal.throwIfAborted();
      if (silence.signal.aborted) {
        throw new ProviderError('PROVIDER_ERROR', 'The model provider fell silent in the middle of its answer.');
      }
      return turn.finish();
    } catch (error) {
      throw refusal.error ?? error;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async streamTurn(request, listener, signal) {
      for (let number = 1; ; number++) {
        signal.throwIfAborted();
        const answer = { begun: false };
        try {
          return await attempt(request, listener, signal, () => (answer.begun = true));
        } catch (thrown) {
          signal.throwIfAborted();
          const { error, retryable, retryAfterMs } = toProviderFailure(thrown, secrets, now());
          const mayRetry = retryable && !answer.begun && number < maxTries && (retryAfterMs ?? 0) <= maxRetryAfterMs;
          const retryInMs = mayRetry ? delayBeforeRetry(number, retryAfterMs, random) : undefined;
          options.onFailedTry?.({ error, attempt: number, retryInMs });
          if (retryInMs === undefined) throw error;
          await sleep(retryInMs, signal).finally(() => signal.throwIfAborted());
        }
      }
    },
  };
}
