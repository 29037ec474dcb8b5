// The scratchpad tools by the role of an agent token: the ones that a run's model has, and of them those that the role allows.
import { roleAllows, type PadAction } from '../../identity/agent-access.js';
import type { AgentRole } from '../../identity/principal.js';
import type { ToolDefinition } from '../tool-definition.js';
import { scratchpadDefinitions } from './scratchpad-tools.js';

type ToolName = (typeof scratchpadDefinitions)[number]['name'];

/** What each tool does to the pad. */
export const scratchpadToolActions = {
  read_scratchpad: 'READ',
  update_scratchpad: 'REPLACE',
  append_scratchpad: 'APPEND',
} as const satisfies Record<ToolName, PadAction>;

/** What an agent of this role is offered; whether a call is permitted is decided by the scratchpad service. */
export const scratchpadToolsFor = (role: AgentRole): (ToolDefinition & { name: ToolName })[] =>
  scratchpadDefinitions.filter(({ name }) => roleAllows(role, scratchpadToolActions[name]));
