// A conversation store for tests of the turn loop alone; what is stored for good is tested against the real store.
import type {
  ConversationStore,
  NewMessage,
  StoredMessage,
} from '../../src/research/conversation/conversation-message.js';

export interface ConversationInMemory extends ConversationStore {
  messages: StoredMessage[];
  /** Called before each append; may throw, as a store does that is away. */
  beforeAppend?: (message: NewMessage) => void | Promise<void>;
}

export function createConversationInMemory(task: string): ConversationInMemory {
  const conversation: ConversationInMemory = {
    messages: [{ id: 'task', role: 'user', content: task }],
    read: async () => [...conversation.messages],
    async append(message) {
      await conversation.beforeAppend?.(message);
      conversation.messages.push({ ...message, id: `m${conversation.messages.length}` });
    },
  };
  return conversation;
}
