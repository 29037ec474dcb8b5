// What the rest of the research runtime knows of a model provider: messages in, one turn out.
import type { FunctionDefinition } from '../../tools/tool-definition.js';

/** One request of a model to execute a tool. `arguments` is what the model wrote: text that ought to be a JSON object. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

/**
 * What a reasoning model thought before it called tools, and the name of the field it came in. Several providers refuse a
 * conversation in which a message with calls has lost it; others refuse one that has it. It goes back only where it came from.
 */
export interface Reasoning {
  field: 'reasoning' | 'reasoning_content';
  text: string;
}

export interface SystemMessage {
  role: 'system';
  content: string;
}

export interface UserMessage {
  role: 'user';
  content: string;
}

export interface AssistantMessage {
  role: 'assistant';
  content: string;
  /** Absent or empty for an ordinary message. */
  toolCalls?: ToolCall[];
  reasoning?: Reasoning;
}

export interface ToolMessage {
  role: 'tool';
  toolCallId: string;
  content: string;
}

export type ProviderMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** How a turn ended. Anything that is no normal end (a filter, an unknown reason) is an error, not a turn. */
export type FinishReason = 'stop' | 'tool_calls' | 'length';

/** One completed answer of a model. */
export interface ProviderTurn {
  text: string;
  reasoning?: Reasoning;
  /** In the order in which the model made them; ids are non-empty and unique within the turn. */
  toolCalls: ToolCall[];
  /** `tool_calls` whenever there are calls, but for `length`: then the last call may be cut off. */
  finishReason: FinishReason;
}

export interface ProviderRequest {
  messages: readonly ProviderMessage[];
  /** Empty: the request offers no tools at all. */
  tools: readonly FunctionDefinition[];
}

/** Called in stream order while a turn arrives. The deltas joined are exactly the turn's text and reasoning. Must not throw. */
export interface TurnListener {
  onText?(delta: string): void;
  onReasoning?(delta: string): void;
}

export interface Provider {
  /**
   * Streams one completion.
   * @throws ProviderError when it did not end normally, whatever had arrived until then
   * @throws the signal's reason when it was aborted
   */
  streamTurn(request: ProviderRequest, listener: TurnListener, signal: AbortSignal): Promise<ProviderTurn>;
}
