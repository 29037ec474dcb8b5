// Which fields may be told to several subscribers at once: those that need nobody to ask. Walks the schema, so that a new field counts.
import {
  execute,
  getNamedType,
  getOperationAST,
  isLeafType,
  isObjectType,
  parse,
  type GraphQLObjectType,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import type { RelationSource } from '../../../src/surfaces/graphql/builder.js';
import { createSchema } from '../../../src/surfaces/graphql/schema.js';
import {
  contextOfNobody,
  createSharedResults,
  type SharedResult,
} from '../../../src/surfaces/graphql/shared-results.js';

const schema = createSchema({} as RelationSource);

const change = Object.freeze({
  cursor: 'c1',
  operation: 'UPDATE',
  entry: { id: 'entry_1', content: 'a finding', author: 'Ada', runId: 'run_1', createdAt: new Date(), sequence: 7 },
  content: { text: 'a plan', version: '7', updatedAt: new Date() },
  expiresAt: new Date(),
  runId: 'run_1',
  assistantId: 'assistant_1',
  replayed: false,
  occurredAt: new Date(),
});

const selecting = (selection: string, definitions = '$id: ID!', more = ''): string =>
  `subscription (${definitions}) { scratchpadEvents(scratchpadId: $id${more}) { ${selection} } }`;

const prepared = (query: string, variables: Record<string, unknown> = { id: 'sp_1' }) => {
  const document = parse(query);
  const operation = getOperationAST(document)!;
  return { document, operation, variables };
};

const executedForNobody = (query: string) =>
  execute({
    schema,
    document: parse(query),
    rootValue: change,
    contextValue: contextOfNobody,
    variableValues: { id: 'sp_1' },
  });

const objectType = (name: string): GraphQLObjectType => {
  const type = schema.getType(name);
  if (!isObjectType(type)) throw new Error(`${name} is no object type`);
  return type;
};

/** Everything that can be selected one level below a type: a leaf, or a field of a marked type. */
const selections = Object.values(objectType('ScratchpadEvent').getFields()).flatMap((field) => {
  const type = getNamedType(field.type);
  if (isLeafType(type)) return [{ selection: field.name, isShared: true }];
  if (!isObjectType(type)) throw new Error(`${field.name} leads to no object`);
  const isShared = type.extensions['ofEventAlone'] === true;
  return Object.values(type.getFields())
    .filter((inner) => isShared || isLeafType(getNamedType(inner.type)))
    .map((inner) => ({ selection: `${field.name} { ${inner.name} }`, isShared }));
});

it('walks the whole event', () => {
  expect(selections.filter(({ isShared }) => isShared).map(({ selection }) => selection)).toEqual(
    expect.arrayContaining(['cursor', 'operation', 'entry { content }', 'content { text }']),
  );
  expect(selections.filter(({ isShared }) => !isShared).map(({ selection }) => selection)).toContain(
    'scratchpad { id }',
  );
});

it.each(selections.filter(({ isShared }) => isShared))(
  'shares $selection, which needs nobody to ask',
  async ({ selection }) => {
    const query = selecting(selection);
    expect(createSharedResults(schema).keyOf(prepared(query))).toEqual(expect.any(String));
    expect((await executedForNobody(query)).errors).toBeUndefined();
  },
);

it.each(selections.filter(({ isShared }) => !isShared))('does not share $selection', async ({ selection }) => {
  const query = selecting(selection);
  expect(createSharedResults(schema).keyOf(prepared(query))).toBeUndefined();
  expect((await executedForNobody(query)).errors?.[0]?.message).toContain('depends on the context');
});

describe('the key of an operation', () => {
  const shared = createSharedResults(schema);
  const keyOf = (operation: ReturnType<typeof prepared>) => shared.keyOf(operation);

  it('is missing when anything in it leads out of the event, wherever it hides', () => {
    const hidden = [
      'operation ... { scratchpad { id } }',
      'operation ... on ScratchpadEvent { scratchpad @skip(if: true) { id } }',
      'operation pad: scratchpad { __typename }',
    ].map((selection) => selecting(selection));
    hidden.push(
      `${selecting('operation ...A')} fragment A on RunEvent { cursor ...B } fragment B on ScratchpadEvent { scratchpad { id } }`,
    );
    hidden.push('subscription ($id: ID!) { researchStatus(runId: $id) { run { id } } }');
    for (const query of hidden) expect(keyOf(prepared(query)), query).toBeUndefined();
  });

  it('has the values of every variable that a result depends on, and of no other', () => {
    const query = selecting(
      'operation entry @include(if: $with) { id }',
      '$id: ID!, $with: Boolean = true, $after: String',
      ', after: $after',
    );
    const one = prepared(query);
    const key = (variables: Record<string, unknown>) => keyOf({ ...one, variables });
    const same = key({ id: 'sp_1', with: true, after: 'c1' });
    expect(key({ id: 'sp_1', with: true, after: 'c2', other: 1 })).toBe(same);
    for (const variables of [
      { id: 'sp_1', with: false },
      { id: 'sp_1' },
      { id: 'sp_1', with: null },
      { id: 'sp_2', with: true },
      { with: true },
    ]) {
      expect(key({ ...variables, after: 'c1' }), JSON.stringify(variables)).not.toBe(same);
    }
    expect(keyOf(prepared(query, { id: 'sp_1', with: true }))).not.toBe(same);
  });

  it('counts a variable that says where to begin when something else depends on it as well', () => {
    const one = prepared(selecting('operation @include(if: $after)', '$id: ID!, $after: Boolean!', ', after: $after'));
    const key = (after: boolean) => keyOf({ ...one, variables: { id: 'sp_1', after } });
    expect(key(true)).not.toBe(key(false));
  });
});

describe('a shared result', () => {
  const shared = createSharedResults(schema);
  const resultOf: typeof shared.resultOf = (...asked) => shared.resultOf(...asked);

  it('is made once for each event and key, and never for an event that only looks the same', () => {
    let executions = 0;
    const ask = (event: object, key: string): SharedResult | Promise<SharedResult> =>
      resultOf(event, key, () => ({ data: { execution: (executions += 1) } }));
    const [event, copy] = [{ cursor: 'c1' }, { cursor: 'c1' }];
    const first = ask(event, 'a');
    const others = [ask(event, 'b'), ask(copy, 'a')];
    expect(ask(event, 'a')).toBe(first);
    expect(new Set([first, ...others]).size).toBe(3);
    expect(executions).toBe(3);
  });

  it('is waited for by all while it is being made, and kept by nobody when that fails by throwing', async () => {
    const event = {};
    let finish: (result: { data: { n: number } }) => void = () => undefined;
    const making = resultOf(event, 'a', () => new Promise((resolve) => (finish = resolve)));
    expect(resultOf(event, 'a', () => ({ data: null }))).toBe(making);
    finish({ data: { n: 1 } });
    expect((await making).result).toEqual({ data: { n: 1 } });
    const failing = () => {
      throw new Error('no');
    };
    expect(() => resultOf(event, 'b', failing)).toThrow('no');
    expect(resultOf(event, 'b', () => ({ data: null }))).toMatchObject({ result: { data: null } });
  });
});

it('tells a variable that is absent from one that is null, whatever its name', () => {
  const { keyOf } = createSharedResults(schema);
  const { document, operation } = prepared(
    selecting('cursor @include(if: $valueOf)', '$id: ID!, $valueOf: Boolean = true'),
  );
  const keyWith = (variables: object) => keyOf({ document, operation, variables: { id: 'sp_1', ...variables } });
  expect(keyWith({})).toEqual(expect.any(String));
  expect(keyWith({})).not.toBe(keyWith({ valueOf: null }));
});
