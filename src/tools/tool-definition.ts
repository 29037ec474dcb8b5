// What a tool is: a name, what a model reads about it, a strict schema of its arguments, and what comes out of a call.
import { z } from 'zod';
import type { JsonObject } from '../shared/json.js';

/** A tool as a model is told about it. `input` is strict: an argument that it does not name is refused. */
export interface ToolDefinition<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<Input>;
}

/** The same, in the form that travels to a provider and to clients. */
export interface FunctionDefinition {
  name: string;
  description: string;
  parameters: JsonObject;
}

/** What a model gets back from one call. An error is a result like any other: the model reads it and goes on. */
export interface ToolResult {
  content: string;
  isError: boolean;
  /** The call was answered without its tool: it could not be read, or may not be made. */
  isRefusal?: true;
}

export interface ToolContext {
  /** Aborted when the run is cancelled or out of time: stop and let go of everything. */
  signal: AbortSignal;
  /** The call's id in the calling conversation. Unique within one message only. */
  callId: string;
}

/** A definition together with what executes it. `run` may throw; the caller turns that into an error result. */
export interface Tool<Input = unknown> {
  readonly definition: ToolDefinition<Input>;
  run(input: Input, context: ToolContext): Promise<ToolResult>;
}

/** Why a call failed, for a model: what happened and, where it can do something about it, what. */
export type ToolErrorCode =
  | 'UNKNOWN_TOOL'
  | 'TOOL_NOT_PERMITTED'
  | 'INVALID_ARGUMENTS'
  | 'REPEATED_CALL'
  | 'TRUNCATED_CALL'
  | 'NO_TURNS_LEFT'
  | 'CANCELLED'
  | 'INTERRUPTED'
  | 'TOOL_FAILED';

export const successResult = (content: string): ToolResult => ({ content, isError: false });

/** The wire has no field for failure, so the content itself says it, in one shape for every tool. */
export const errorResult = (code: string, message: string): ToolResult => ({
  content: JSON.stringify({ is_error: true, code, error: message }),
  isError: true,
});

/** The same for a call that reached no tool. */
export const refusal = (code: string, message: string): ToolResult => ({
  ...errorResult(code, message),
  isRefusal: true,
});

/** A strict object schema: what every tool's input is made with. */
export const toolInput = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape);

export function toFunctionDefinition(definition: ToolDefinition): FunctionDefinition {
  const { $schema: _, ...parameters } = z.toJSONSchema(definition.input, { io: 'input' }) as JsonObject;
  return { name: definition.name, description: definition.description, parameters };
}
