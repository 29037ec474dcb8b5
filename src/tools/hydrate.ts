// From capability placeholders to the functions that a model is given, narrowed by the role of its run.
import type { CapabilityPlaceholder } from './assistant-tools.js';
import { delegateResearchTask } from './delegation/delegation-tool.js';
import { PLATFORM_TOOL_MAP } from './platform-tool-map.js';
import { updateScratchpad } from './scratchpad/scratchpad-tools.js';
import type { ToolDefinition } from './tool-definition.js';

/** ASSISTANT: any assistant on its thread. RESEARCH: a supervisor. RESEARCH_WORKER: what a supervisor delegates to. */
export type RunRole = 'ASSISTANT' | 'RESEARCH' | 'RESEARCH_WORKER';

/** The strategy is the supervisor's: a worker adds to the pad and replaces nothing. */
const deniedTo: Record<RunRole, ReadonlySet<string>> = {
  ASSISTANT: new Set(),
  RESEARCH: new Set(),
  RESEARCH_WORKER: new Set([updateScratchpad.name]),
};

const addedFor: Record<RunRole, readonly ToolDefinition[]> = {
  ASSISTANT: [],
  RESEARCH: [delegateResearchTask],
  RESEARCH_WORKER: [],
};

/** Each function once, in the order of the placeholders. */
export function hydrateTools(placeholders: readonly CapabilityPlaceholder[], role: RunRole): ToolDefinition[] {
  const subscribed = placeholders.flatMap(({ type }): readonly ToolDefinition[] => PLATFORM_TOOL_MAP[type]);
  return [...new Set([...subscribed, ...addedFor[role]])].filter(({ name }) => !deniedTo[role].has(name));
}
