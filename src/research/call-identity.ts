// When two tool calls ask for the same thing: one tool, the same arguments, however they are written.
import type { ToolCall } from './provider/provider-types.js';

/** JSON with its keys sorted, at every level. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

function meaning(text: string): string {
  try {
    return canonical(JSON.parse(text));
  } catch {
    return text.trim();
  }
}

export const isIdentical = (a: ToolCall, b: ToolCall): boolean =>
  a.name === b.name && (a.arguments === b.arguments || meaning(a.arguments) === meaning(b.arguments));
