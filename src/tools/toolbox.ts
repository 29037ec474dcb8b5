// The tools of one run: what its model is offered, and the one place where a call becomes a result, whatever is wrong with it.
import { z } from 'zod';
import { DomainError } from '../shared/errors.js';
import { reservedToolNames } from './platform-tool-map.js';
import {
  errorResult,
  refusal,
  toFunctionDefinition,
  type FunctionDefinition,
  type Tool,
  type ToolDefinition,
  type ToolResult,
} from './tool-definition.js';

/** A call as the model wrote it. */
export interface WrittenCall {
  id: string;
  name: string;
  arguments: string;
}

export interface Toolbox {
  definitions: FunctionDefinition[];
  /** Never rejects. With the signal aborted it resolves at once, also when the tool does not listen. */
  execute(call: WrittenCall, signal: AbortSignal): Promise<ToolResult>;
}

export interface ToolboxOptions {
  /** What this run's role is offered (see hydrateTools). */
  offered: readonly ToolDefinition[];
  /** Everything that can be executed; at least what is offered. */
  tools: readonly Tool[];
  /** For the log: a tool threw something that is no DomainError. The model reads nothing of it. */
  onUnexpectedError: (toolName: string, error: unknown) => void;
}

function parseArguments(text: string): { value: unknown } | undefined {
  try {
    return { value: text.trim() === '' ? {} : JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const notFinished = 'The run ended before this call was finished.';
const cancelled = (): ToolResult => errorResult('CANCELLED', notFinished);

function untilAborted(work: Promise<ToolResult>, signal: AbortSignal): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const abort = (): void => resolve(cancelled());
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** @throws when something is offered that nothing executes: a mistake in the wiring */
export function createToolbox({ offered, tools, onUnexpectedError }: ToolboxOptions): Toolbox {
  const byName = new Map(tools.map((tool) => [tool.definition.name, tool]));
  const permitted = new Set(offered.map(({ name }) => name));
  for (const name of permitted) if (!byName.has(name)) throw new Error(`Nothing executes the tool ${name}.`);

  function refuse(name: string): ToolResult {
    return reservedToolNames.has(name)
      ? refusal('TOOL_NOT_PERMITTED', `${name} is not available to you.`)
      : refusal('UNKNOWN_TOOL', `There is no such tool. Available: ${[...permitted].join(', ') || 'none'}.`);
  }

  async function run(tool: Tool, call: WrittenCall, signal: AbortSignal): Promise<ToolResult> {
    const written = parseArguments(call.arguments);
    if (!written) {
      const start = call.arguments.slice(0, 200);
      return refusal('INVALID_ARGUMENTS', `The arguments are not valid JSON. They began with: ${start}`);
    }
    const input = tool.definition.input.safeParse(written.value);
    if (!input.success) return refusal('INVALID_ARGUMENTS', z.prettifyError(input.error));
    return tool.run(input.data, { signal, callId: call.id });
  }

  return {
    definitions: offered.map(toFunctionDefinition),
    async execute(call, signal) {
      const tool = permitted.has(call.name) ? byName.get(call.name) : undefined;
      if (!tool) return refuse(call.name);
      if (signal.aborted) return refusal('CANCELLED', notFinished);
      // One of its own: dozens of calls may wait side by side, and a signal with as many listeners looks like a leak.
      const own = AbortSignal.any([signal]);
      try {
        return await untilAborted(run(tool, call, own), own);
      } catch (error) {
        if (signal.aborted) return cancelled();
        if (error instanceof DomainError && error.code !== 'INTERNAL') return errorResult(error.code, error.message);
        onUnexpectedError(call.name, error);
        return errorResult('TOOL_FAILED', 'The tool failed unexpectedly. Go on without this result.');
      }
    },
  };
}
