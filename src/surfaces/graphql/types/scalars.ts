// The two scalars of the contract.
import { GraphQLError, Kind, valueFromASTUntyped, type ValueNode } from 'graphql';
import { z } from 'zod';
import { jsonObject, type JsonObject } from '../../../shared/json.js';
import type { Builder } from '../builder.js';

const instant = z.iso.datetime({ offset: true });

function parseInstant(value: unknown): Date {
  if (!instant.safeParse(value).success) {
    throw new GraphQLError('must be an instant in ISO 8601, such as 2026-01-31T09:30:00.000Z');
  }
  return new Date(value as string);
}

function parseObject(value: unknown): JsonObject {
  const result = jsonObject.safeParse(value);
  if (!result.success) throw new GraphQLError(result.error.issues.map((issue) => issue.message).join('; '));
  return result.data;
}

/** Object.fromEntries makes own properties only: a field named __proto__ stays an ordinary key. */
function literalValue(node: ValueNode, variables: Record<string, unknown> | null | undefined): unknown {
  switch (node.kind) {
    case Kind.OBJECT:
      return Object.fromEntries(node.fields.map((field) => [field.name.value, literalValue(field.value, variables)]));
    case Kind.LIST:
      return node.values.map((item) => literalValue(item, variables));
    default:
      return valueFromASTUntyped(node, variables);
  }
}

export function addScalars(builder: Builder): void {
  builder.scalarType('DateTime', {
    description: 'An instant, ISO 8601 in UTC with milliseconds: 2026-01-31T09:30:00.000Z',
    serialize: (date) => date.toISOString(),
    parseValue: parseInstant,
  });
  builder.scalarType('JSONObject', {
    description: 'A JSON object (not an array, string or number).',
    serialize: (value) => value,
    parseValue: parseObject,
    parseLiteral: (node, variables) => parseObject(literalValue(node, variables)),
  });
}
