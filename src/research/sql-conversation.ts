// A conversation as rows of its thread: written in order, read back exactly.
import type { Message, Prisma, PrismaClient } from '../generated/prisma/client.js';
import { createId } from '../shared/ids.js';
import type { ConversationStore, NewMessage, StoredMessage } from './conversation/conversation-message.js';
import type { Reasoning, ToolCall } from './provider/provider-types.js';

interface Dependencies {
  prisma: Pick<PrismaClient, 'message'>;
  threadId: string;
}

type Columns = Pick<
  Prisma.MessageUncheckedCreateInput,
  'role' | 'content' | 'toolCalls' | 'reasoning' | 'toolCallId' | 'isError'
>;

function toColumns(message: NewMessage): Columns {
  const { content } = message;
  if (message.role === 'user') return { role: 'USER', content };
  if (message.role === 'tool') {
    return { role: 'TOOL', content, toolCallId: message.toolCallId, isError: message.isError };
  }
  return {
    role: 'ASSISTANT',
    content,
    ...(message.toolCalls && { toolCalls: message.toolCalls.map((call) => ({ ...call })) }),
    ...(message.reasoning && { reasoning: { ...message.reasoning } }),
  };
}

/** Nothing for what is no part of a model's conversation. */
function toStored({ id, role, content, toolCalls, reasoning, toolCallId, isError }: Message): StoredMessage[] {
  if (role === 'USER') return [{ id, role: 'user', content }];
  if (role === 'TOOL' && toolCallId !== null) return [{ id, role: 'tool', toolCallId, content, isError }];
  if (role !== 'ASSISTANT') return [];
  return [
    {
      id,
      role: 'assistant',
      content,
      // Only ever written by toColumns.
      ...(toolCalls !== null && { toolCalls: toolCalls as unknown as ToolCall[] }),
      ...(reasoning !== null && { reasoning: reasoning as unknown as Reasoning }),
    },
  ];
}

/**
 * The conversation of one thread. One run at a time writes to it: two at once would mix their messages.
 * @throws (append) a foreign-key error when the thread is gone
 */
export function createSqlConversation({ prisma, threadId }: Dependencies): ConversationStore {
  return {
    async read() {
      const rows = await prisma.message.findMany({ where: { threadId }, orderBy: { sequenceNo: 'asc' } });
      return rows.flatMap(toStored);
    },
    async append(message) {
      await prisma.message.create({
        data: { id: createId('message'), threadId, ...toColumns(message) },
        select: { id: true },
      });
    },
  };
}
