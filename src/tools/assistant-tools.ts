// What an assistant may declare as its tools, checked when it is created: capability placeholders and nothing else.
import { invalidInput, type InputIssue } from '../shared/errors.js';
import { capabilities, reservedToolNames, type Capability } from './platform-tool-map.js';

/** As it is persisted. */
export interface CapabilityPlaceholder {
  type: Capability;
}

const known = capabilities.map((type) => `{"type": "${type}"}`).join(' or ');

function functionName(entry: Record<string, unknown>): unknown {
  const declared = entry.function;
  return typeof declared === 'object' && declared !== null && 'name' in declared ? declared.name : entry.name;
}

function mistakeIn(entry: unknown): string | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return `must be ${known}`;
  const { type, ...rest } = entry as Record<string, unknown>;
  const name = functionName(rest);
  if (typeof name === 'string' && reservedToolNames.has(name)) {
    return `declares a function with the reserved name ${name}: use ${known}, which brings the platform's own`;
  }
  if (type === 'function') return `declares a function, which nothing here would execute: use ${known}`;
  if (!capabilities.some((capability) => capability === type)) return `is no known capability: use ${known}`;
  const extra = Object.keys(rest);
  return extra.length > 0 ? `has the unknown field ${extra.join(', ')}: only type is allowed` : undefined;
}

/** @throws DomainError INVALID_INPUT with one issue for each entry that is no placeholder */
export function parseAssistantTools(tools: unknown): CapabilityPlaceholder[] {
  if (!Array.isArray(tools)) throw invalidInput(`tools must be a list of ${known}`);
  const issues = tools.flatMap((entry: unknown, place): InputIssue[] => {
    const message = mistakeIn(entry);
    return message === undefined ? [] : [{ path: ['tools', place], message }];
  });
  if (issues.length > 0) {
    throw invalidInput(issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; '), issues);
  }
  return tools as CapabilityPlaceholder[];
}
