// Assistants: instructions, and the platform capabilities that a tenant subscribes them to.
import { z } from 'zod';
import type { Assistant, Prisma, PrismaClient } from '../generated/prisma/client.js';
import { findOwner, requireOwner, requireUser, type Principal } from '../identity/principal.js';
import { visibleTo } from '../identity/visible-to.js';
import { DomainError, notFound, parseInput, unauthenticated } from '../shared/errors.js';
import { createId, isId } from '../shared/ids.js';
import { isForeignKeyViolation } from '../shared/sql-errors.js';
import { byteLength, nameText, storableText } from '../shared/text.js';
import { parseAssistantTools } from '../tools/assistant-tools.js';

const maxTools = 20;

const newAssistant = z.object({
  name: nameText,
  instructions: storableText,
  model: nameText.nullish(),
  tools: z.array(z.unknown()).max(maxTools, `must not have more than ${maxTools} elements`),
});

export interface AssistantInput {
  name: string;
  instructions: string;
  model?: string | null;
  tools: readonly unknown[];
}

/** Assistants that the runtime makes for delegated workers are not there for any principal. */
export interface AssistantService {
  /** Null for what is not there, not the principal's, or no assistant id. */
  find(principal: Principal, assistantId: string, query?: Prisma.AssistantDefaultArgs): Promise<Assistant | null>;
  /** `tools` is persisted as it is. @throws DomainError INVALID_INPUT for what is no capability placeholder, LIMIT_EXCEEDED */
  create(principal: Principal, input: AssistantInput): Promise<Assistant>;
  /** Cancels its active runs; their rows stay, without an assistant. @throws DomainError NOT_FOUND */
  delete(principal: Principal, assistantId: string): Promise<string>;
  count(principal: Principal): Promise<number>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'assistant'>;
  /** Called before an assistant goes. */
  cancelRuns: (scope: { ownerId: string; assistantId: string }) => Promise<void>;
  /** Of the instructions, in UTF-8. */
  maxContentBytes: number;
}

export function createAssistantService({ prisma, cancelRuns, maxContentBytes }: Dependencies): AssistantService {
  return {
    async find(principal, assistantId, query = {}) {
      const owner = findOwner(principal);
      if (!owner || !isId('assistant', assistantId)) return null;
      return await prisma.assistant.findFirst({ ...query, where: { id: assistantId, ...visibleTo(owner.userId) } });
    },

    async create(principal, input) {
      const { userId } = requireUser(principal);
      const { name, instructions, model, tools } = parseInput(newAssistant, input);
      const placeholders = parseAssistantTools(tools).map(({ type }) => ({ type }));
      if (byteLength(instructions) > maxContentBytes) {
        throw new DomainError('LIMIT_EXCEEDED', `Instructions may have at most ${maxContentBytes} bytes in UTF-8.`);
      }
      try {
        return await prisma.assistant.create({
          data: {
            id: createId('assistant'),
            ownerId: userId,
            name,
            instructions,
            model: model ?? null,
            tools: placeholders,
          },
        });
      } catch (error) {
        // The user was deleted while its key was still cached here.
        if (isForeignKeyViolation(error)) throw unauthenticated();
        throw error;
      }
    },

    async delete(principal, assistantId) {
      const { userId } = requireOwner(principal);
      if (!isId('assistant', assistantId)) throw notFound();
      const where = { id: assistantId, ...visibleTo(userId) };
      if (!(await prisma.assistant.findFirst({ where, select: { id: true } }))) throw notFound();
      await cancelRuns({ ownerId: userId, assistantId });
      const { count } = await prisma.assistant.deleteMany({ where });
      if (count === 0) throw notFound();
      return assistantId;
    },

    async count(principal) {
      return await prisma.assistant.count({ where: visibleTo(requireUser(principal).userId) });
    },
  };
}
