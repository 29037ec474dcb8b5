// The messages of one conversation as they are stored, and the port to where they are.
import type { Reasoning, ToolCall } from '../provider/provider-types.js';

export interface StoredUserMessage {
  id: string;
  role: 'user';
  content: string;
}

export interface StoredAssistantMessage {
  id: string;
  role: 'assistant';
  content: string;
  toolCalls?: ToolCall[];
  reasoning?: Reasoning;
}

export interface StoredToolMessage {
  id: string;
  role: 'tool';
  toolCallId: string;
  content: string;
  isError: boolean;
}

export type StoredMessage = StoredUserMessage | StoredAssistantMessage | StoredToolMessage;

type WithoutId<Message> = Message extends unknown ? Omit<Message, 'id'> : never;
export type NewMessage = WithoutId<StoredMessage>;
export type NewToolMessage = WithoutId<StoredToolMessage>;

/**
 * One conversation, and no other: it is bound to its thread when it is made. Shared state has a port of its own, so that a scratchpad
 * write cannot land here, nor a tool result there.
 */
export interface ConversationStore {
  /** Everything, in canonical persistence order (never by time). */
  read(): Promise<StoredMessage[]>;
  /** Durable when it resolves, after everything appended before it. */
  append(message: NewMessage): Promise<void>;
}
