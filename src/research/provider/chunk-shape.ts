// One chunk of a stream as providers really send it: everything may be missing, null, or of another type than documented.
import { z } from 'zod';

const text = z.string().optional().catch(undefined);

/** A few providers send text as a list of parts. */
const content = z
  .union([
    z.string(),
    z
      .array(z.object({ text }).catch({ text: undefined }))
      .transform((parts) => parts.map((p) => p.text ?? '').join('')),
  ])
  .optional()
  .catch(undefined);

/** Text, or (against the protocol) the object itself. */
const callArguments = z
  .union([z.string(), z.record(z.string(), z.unknown()).transform((value) => JSON.stringify(value))])
  .optional()
  .catch(undefined);

const callFragment = z
  .object({
    index: z.int().optional().catch(undefined),
    id: text,
    function: z.object({ name: text, arguments: callArguments }).optional().catch(undefined),
  })
  .transform(({ index, id, function: called }) => ({
    index,
    id: id || undefined,
    name: called?.name || undefined,
    arguments: called?.arguments || undefined,
  }));

/** A piece of one tool call; an absent field says nothing. */
export type CallFragment = z.output<typeof callFragment>;

const delta = z.object({
  content,
  reasoning: text,
  reasoning_content: text,
  tool_calls: z.array(callFragment.optional().catch(undefined)).optional().catch(undefined),
});

const choice = z.object({
  index: z.int().optional().catch(undefined),
  delta: delta.optional().catch(undefined),
  /** Sent instead of a delta by servers that do not really stream. */
  message: delta.optional().catch(undefined),
  finish_reason: text,
});

const chunk = z.object({ choices: z.array(choice.optional().catch(undefined)).optional().catch(undefined) });

/** What one chunk says about the first choice. */
export interface ChunkContent {
  text: string;
  reasoning?: { field: 'reasoning' | 'reasoning_content'; text: string };
  calls: CallFragment[];
  finishReason?: string;
}

/** Reads a chunk; what cannot be read counts as absent. */
export function readChunk(value: unknown): ChunkContent {
  // Nobody asked for more than one; another one's words are not this one's.
  const first = chunk.safeParse(value).data?.choices?.find((one) => one && (one.index ?? 0) === 0);
  const said = first?.delta ?? first?.message;
  return {
    text: said?.content ?? '',
    // Some send the same words in both fields.
    reasoning: said?.reasoning_content
      ? { field: 'reasoning_content', text: said.reasoning_content }
      : said?.reasoning
        ? { field: 'reasoning', text: said.reasoning }
        : undefined,
    calls: (said?.tool_calls ?? []).filter((fragment) => fragment !== undefined),
    finishReason: first?.finish_reason || undefined,
  };
}
