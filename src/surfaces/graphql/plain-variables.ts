// The values of variables, where nothing has to be converted: every other case, and every mistake with its words, is GraphQL.js's.
import {
  GraphQLBoolean,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  isInputObjectType,
  isInputType,
  isNonNullType,
  typeFromAST,
  type GraphQLInputType,
  type GraphQLSchema,
  type VariableDefinitionNode,
} from 'graphql';

type Values = Readonly<Record<string, unknown>>;

const undecided = Symbol('undecided');

/** @returns the value as a resolver gets it, or `undecided` */
type Take = (value: unknown) => unknown;

interface Member {
  name: string;
  take: Take;
  /** Missing, it has to be complained about or gets a default. */
  isExpected: boolean;
}

const maxInt = 2 ** 31 - 1;
const isInt = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) <= maxInt && (value as number) >= -maxInt - 1;

const takeWhere =
  (isPlain: (value: unknown) => boolean): Take =>
  (value) =>
    isPlain(value) ? value : undecided;

const takeString = takeWhere((value) => typeof value === 'string');
const scalars = new Map<unknown, Take>([
  [GraphQLString, takeString],
  [GraphQLID, takeString],
  [GraphQLInt, takeWhere(isInt)],
  [GraphQLBoolean, takeWhere((value) => typeof value === 'boolean')],
]);
const leave: Take = () => undecided;

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * In the order of the members, as GraphQL.js has it; a name that is no member's is a mistake. Where that changes nothing, it is what was
 * given: to put an object together name by name is slow.
 */
function takeMembers(members: readonly Member[], values: Values, mayHaveOthers: boolean): unknown {
  const names = Object.keys(values);
  let found = 0;
  let isAsGiven = true;
  for (const { name, take, isExpected } of members) {
    const given = values[name];
    if (given === undefined) {
      if (isExpected || Object.hasOwn(values, name)) return undecided;
      continue;
    }
    const value = take(given);
    if (value === undecided) return undecided;
    isAsGiven &&= value === given && name === names[found];
    found += 1;
  }
  if (names.length === found && isAsGiven) return values;
  return names.length === found || mayHaveOthers ? copyOf(members, values) : undecided;
}

function copyOf(members: readonly Member[], values: Values): Values {
  const copy: Record<string, unknown> = {};
  for (const { name, take } of members) {
    const given = values[name];
    if (given !== undefined) copy[name] = take(given);
  }
  return copy;
}

function takeOf(type: GraphQLInputType): Take {
  if (isNonNullType(type)) {
    const take = takeOf(type.ofType);
    return (value) => (value == null ? undecided : take(value));
  }
  const take =
    isInputObjectType(type) && !type.isOneOf ? takeObjectOf(Object.values(type.getFields())) : scalars.get(type);
  return take === undefined ? leave : (value) => (value === null ? null : take(value));
}

function takeObjectOf(fields: readonly { name: string; type: GraphQLInputType; defaultValue?: unknown }[]): Take {
  // Made when the first value comes: an input object may hold itself.
  let members: Member[] | undefined;
  return (value) => {
    members ??= fields.map(({ name, type, defaultValue }) => ({
      name,
      take: takeOf(type),
      isExpected: isNonNullType(type) || defaultValue !== undefined,
    }));
    return isObject(value) ? takeMembers(members, value, false) : undecided;
  };
}

/**
 * @returns what gives the coerced values of these variables, exactly as `getVariableValues` of GraphQL.js would, or undefined where
 * that has to be asked
 */
export function createPlainVariables(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
): (values: Values) => Record<string, unknown> | undefined {
  const members = definitions.map(({ variable, type: node, defaultValue }): Member => {
    const type = typeFromAST(schema, node);
    return {
      name: variable.name.value,
      take: isInputType(type) ? takeOf(type) : leave,
      isExpected: isNonNullType(type) || defaultValue !== undefined,
    };
  });
  return (values) => {
    const taken = takeMembers(members, values, true);
    return taken === undecided ? undefined : (taken as Record<string, unknown>);
  };
}
