// Delegation as a supervisor sees it. What executes it lives in the research runtime, which knows of runs.
import { z } from 'zod';
import { storableText } from '../../shared/text.js';
import { toolInput, type ToolDefinition } from '../tool-definition.js';

const input = toolInput({
  task: storableText
    .refine((text) => text.trim() !== '', 'must not be blank')
    .describe('The one question that the worker shall answer, understandable without this conversation.'),
  requirements: z
    .optional(storableText)
    .describe('What the answer needs: sources, precision, markers to look for or to write.'),
});

export type DelegationInput = z.output<typeof input>;

export const delegateResearchTask = {
  name: 'delegate_research_task',
  description:
    'Hands one bounded task to a research worker that can search and read the web and shares the scratchpad. Several delegations in one ' +
    "message run side by side. The result is the worker's report, or an error with its code.",
  input,
} as const satisfies ToolDefinition<DelegationInput>;
