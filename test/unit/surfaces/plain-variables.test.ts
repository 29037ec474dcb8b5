// Whatever the fast way decides about variables, GraphQL.js decides as well; what is not plainly right is left to it.
import { buildSchema, getVariableValues, parse, type OperationDefinitionNode } from 'graphql';
import { describe, expect, it } from 'vitest';
import { createPlainVariables } from '../../../src/surfaces/graphql/plain-variables.js';

const schema = buildSchema(`
  scalar Any
  enum Color { RED BLUE }
  input Inner { id: ID!, size: Int, deep: Outer }
  input Outer { text: String!, on: Boolean, inner: Inner, list: [String!], color: Color, any: Any, size: Int = 7 }
  input OneOf @oneOf { a: String, b: String }
  type Query { field(outer: Outer, inner: Inner, one: OneOf, text: String, id: ID, size: Int, ratio: Float, list: [Int]): String }
`);

const values: unknown[] = [
  undefined,
  null,
  '',
  'text',
  0,
  -1,
  1.5,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  -(2 ** 31) - 1,
  Number.MAX_SAFE_INTEGER,
  true,
  false,
  [],
  ['a'],
  [null],
  {},
  { id: 'x' },
  { id: 7 },
  { id: 'x', size: 3 },
  { id: 'x', size: null },
  { id: 'x', size: '3' },
  { id: 'x', other: 1 },
  { text: 'a', size: 1 },
  { text: 'a', size: 1, on: true, inner: { id: 'x', deep: { text: 'b', size: 2 } } },
  { text: 'a', size: 1, inner: { id: null } },
  { text: 'a', size: 1, inner: null },
  { text: 'a' },
  { text: 'a', size: 1, color: 'RED' },
  { text: 'a', size: 1, color: 'GREEN' },
  { text: 'a', size: 1, any: { free: 1 } },
  { text: 'a', size: 1, list: ['b'] },
  { text: 'a', size: 1, list: 'b' },
  { size: 1, text: 'a' },
  { a: 'x' },
  { a: 'x', b: 'y' },
  JSON.parse('{ "text": "a", "size": 1, "__proto__": {} }'),
];

const types = ['String', 'String!', 'ID!', 'Int', 'Float!', 'Boolean', '[Int]', 'Outer', 'Outer!', 'Inner', 'OneOf'];
const defaults = ['', ' = null'];

function coerceBoth(query: string, given: Record<string, unknown>) {
  const { variableDefinitions = [] } = parse(query).definitions[0] as OperationDefinitionNode;
  return {
    fast: createPlainVariables(schema, variableDefinitions)(given),
    slow: getVariableValues(schema, variableDefinitions, given),
  };
}

describe.each(types)('%s', (type) => {
  it.each(values.map((value) => [JSON.stringify(value) ?? 'undefined', value]))('%s', (_name, value) => {
    for (const defaultValue of type.endsWith('!') ? [''] : defaults) {
      const query = `query ($value: ${type}${defaultValue}) { field }`;
      for (const given of [{ value }, { value, beside: 1 }, {}]) {
        const { fast, slow } = coerceBoth(query, given);
        if (fast === undefined) continue;
        expect(slow.coerced).toStrictEqual(fast);
        // The order of the members is what a mutation's resolver, and a log, would see.
        expect(JSON.stringify(fast)).toBe(JSON.stringify(slow.coerced));
      }
    }
  });
});

it('decides about what nearly every operation sends', () => {
  const query = 'query ($outer: Outer!, $id: ID!, $size: Int, $text: String) { field }';
  const outer = { text: 'a', on: false, size: 2, inner: { id: 'x', size: 1 } };
  expect(coerceBoth(query, { outer, id: 'x', text: null }).fast).toStrictEqual({ outer, id: 'x', text: null });
  expect(coerceBoth(query, { outer: { ...outer, color: 'RED' }, id: 'x' }).fast).toBeUndefined();
});
