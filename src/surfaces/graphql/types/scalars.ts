// The two scalars of the contract.
import { GraphQLError, Kind, valueFromASTUntyped, type ValueNode } from 'graphql';
import { z } from 'zod';
import { isStorableInstant } from '../../../shared/clock.js';
import { jsonObject, type JsonObject } from '../../../shared/json.js';
import { keepsItsDigits } from '../../strict-json.js';
import type { Builder } from '../builder.js';

const instant = z.iso.datetime({ offset: true });

/** An offset can push a well-formed text out of the four-digit years, which no store and no clock of ours could give back. */
function parseInstant(value: unknown): Date {
  const date = instant.safeParse(value).success ? new Date(value as string) : undefined;
  if (date === undefined || !isStorableInstant(date)) {
    throw new GraphQLError('must be an instant in ISO 8601, such as 2026-01-31T09:30:00.000Z, in the years 1 to 9999');
  }
  return date;
}

function parseObject(value: unknown): JsonObject {
  const result = jsonObject.safeParse(value);
  if (!result.success) throw new GraphQLError(result.error.issues.map((issue) => issue.message).join('; '));
  return result.data;
}

type VariableValues = Record<string, unknown> | null | undefined;

/**
 * Object.fromEntries makes own properties only: a field named __proto__ stays an ordinary key. A field whose variable was not given
 * is left out, as in any input object.
 */
function literalValue(node: ValueNode, variables: VariableValues): unknown {
  switch (node.kind) {
    case Kind.OBJECT:
      return Object.fromEntries(
        node.fields
          .filter(({ value }) => value.kind !== Kind.VARIABLE || isGiven(value.name.value, variables))
          .map((field) => [field.name.value, literalValue(field.value, variables)]),
      );
    case Kind.LIST:
      return node.values.map((item) => literalValue(item, variables));
    case Kind.VARIABLE:
      return isGiven(node.name.value, variables) ? variables?.[node.name.value] : null;
    case Kind.INT:
      if (!keepsItsDigits(node.value)) {
        throw new GraphQLError('must not contain an integer that would be rounded: send it as text');
      }
      return Number(node.value);
    default:
      return valueFromASTUntyped(node, variables);
  }
}

/** A document is validated without the values of its variables: they are checked when it is executed. */
const isGiven = (name: string, variables: VariableValues): boolean =>
  variables != null && Object.hasOwn(variables, name) && variables[name] !== undefined;

export function addScalars(builder: Builder): void {
  builder.scalarType('DateTime', {
    description: 'An instant, ISO 8601 in UTC with milliseconds: 2026-01-31T09:30:00.000Z',
    serialize: (instant) => (typeof instant === 'string' ? instant : instant.toISOString()),
    parseValue: parseInstant,
  });
  builder.scalarType('JSONObject', {
    description: 'A JSON object (not an array, string or number).',
    serialize: (value) => value,
    parseValue: parseObject,
    parseLiteral: (node, variables) => parseObject(literalValue(node, variables)),
  });
}
