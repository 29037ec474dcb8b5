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
  switch (message.role) {
    case 'user':
      return { role: 'USER', content: message.content };
    case 'assistant':
      return {
        role: 'ASSISTANT',
        content: message.content,
        ...(message.toolCalls && { toolCalls: message.toolCalls.map((call) => ({ ...call })) }),
        ...(message.reasoning && { reasoning: { ...message.reasoning } }),
      };
    case 'tool':
      return { role: 'TOOL', content: message.content, toolCallId: message.toolCallId, isError: message.isError };
  }
}

/** Nothing for what is no part of a model's conversation. */
function toStored(row: Message): StoredMessage[] {
  const { id, content } = row;
  switch (row.role) {
    case 'USER':
      return [{ id, role: 'user', content }];
    case 'ASSISTANT':
      return [
        {
          id,
          role: 'assistant',
          content,
          // Only ever written by toColumns.
          ...(row.toolCalls !== null && { toolCalls: row.toolCalls as unknown as ToolCall[] }),
          ...(row.reasoning !== null && { reasoning: row.reasoning as unknown as Reasoning }),
        },
      ];
    case 'TOOL':
      return row.toolCallId === null
        ? []
        : [{ id, role: 'tool', toolCallId: row.toolCallId, content, isError: row.isError }];
    case 'SYSTEM':
      return [];
  }
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
