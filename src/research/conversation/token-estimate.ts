// How many tokens a text costs, without a tokenizer: every provider has its own, and a budget needs an upper estimate, not a count.
import { byteLength } from '../../shared/text.js';
import type { FunctionDefinition } from '../../tools/tool-definition.js';
import type { ProviderMessage } from '../provider/provider-types.js';

/** English prose has about 4.2 bytes a token, JSON and code about 3, CJK about 3 (one character). So 3 is rarely too generous. */
export const bytesPerToken = 3;

/** Role, separators, and whatever a chat template adds around one message or one call. */
const overheadTokens = 8;

export const estimateTokens = (text: string): number => Math.ceil(byteLength(text) / bytesPerToken);

export function estimateMessageTokens(message: ProviderMessage): number {
  const own = overheadTokens + estimateTokens(message.content);
  if (message.role === 'tool') return own + estimateTokens(message.toolCallId);
  if (message.role !== 'assistant') return own;
  const calls = (message.toolCalls ?? []).map(
    (call) => overheadTokens + estimateTokens(call.id) + estimateTokens(call.name) + estimateTokens(call.arguments),
  );
  return own + estimateTokens(message.reasoning?.text ?? '') + calls.reduce((sum, tokens) => sum + tokens, 0);
}

/** Tool definitions travel with every request and count like text. */
export const estimateToolTokens = (tools: readonly FunctionDefinition[]): number =>
  tools.length === 0 ? 0 : estimateTokens(JSON.stringify(tools)) + overheadTokens * tools.length;
