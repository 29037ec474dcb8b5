// The capabilities that an assistant can subscribe to, and the functions that each stands for at run time.
import { delegateResearchTask } from './delegation/delegation-tool.js';
import { scratchpadDefinitions } from './scratchpad/scratchpad-tools.js';
import type { ToolDefinition } from './tool-definition.js';
import { webDefinitions } from './web/web-definitions.js';

export const PLATFORM_TOOL_MAP = {
  scratchpad: scratchpadDefinitions,
  web_search: webDefinitions,
} as const satisfies Record<string, readonly ToolDefinition[]>;

export type Capability = keyof typeof PLATFORM_TOOL_MAP;

export const capabilities = Object.keys(PLATFORM_TOOL_MAP) as Capability[];

/** Names that only the platform gives to functions, whoever may call them. */
export const reservedToolNames: ReadonlySet<string> = new Set([
  ...Object.values(PLATFORM_TOOL_MAP)
    .flat()
    .map((definition) => definition.name),
  delegateResearchTask.name,
]);
