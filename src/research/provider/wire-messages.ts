// Our messages in the form that chat-completions endpoints take.
import type OpenAI from 'openai';
import type { FunctionDefinition } from '../../tools/tool-definition.js';
import type { AssistantMessage, ProviderMessage, ToolCall } from './provider-types.js';

type WireMessage = OpenAI.Chat.Completions.ChatCompletionMessageParam;

/** Servers parse the arguments in a conversation's history: broken ones would fail the next request, too. The result says what was broken. */
function wireArguments(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? text : '{}';
  } catch {
    return '{}';
  }
}

const wireCall = (call: ToolCall) => ({
  id: call.id,
  type: 'function' as const,
  function: { name: call.name, arguments: wireArguments(call.arguments) },
});

function wireAssistant(message: AssistantMessage): WireMessage {
  if (!message.toolCalls?.length) return { role: 'assistant', content: message.content };
  return {
    role: 'assistant',
    content: message.content === '' ? null : message.content,
    tool_calls: message.toolCalls.map(wireCall),
    ...(message.reasoning ? { [message.reasoning.field]: message.reasoning.text } : {}),
  };
}

export function toWireMessage(message: ProviderMessage): WireMessage {
  if (message.role === 'assistant') return wireAssistant(message);
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.toolCallId, content: message.content };
  return { role: message.role, content: message.content };
}

export const toWireTool = (definition: FunctionDefinition): OpenAI.Chat.Completions.ChatCompletionTool => ({
  type: 'function',
  function: { name: definition.name, description: definition.description, parameters: definition.parameters },
});
