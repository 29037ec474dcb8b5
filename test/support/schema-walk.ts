// Walks the schema as a client sees it, by introspection: which fields take an id, and a document that asks a field for everything.
import {
  buildClientSchema,
  getIntrospectionQuery,
  getNamedType,
  isAbstractType,
  isInputObjectType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import type { GraphqlClient } from './graphql-client.js';

type Field = GraphQLField<unknown, unknown>;

export const readSchema = async (client: GraphqlClient): Promise<GraphQLSchema> =>
  buildClientSchema(await client.run<IntrospectionQuery>(getIntrospectionQuery()));

/** Every field of every object type, as "Type.field". */
export function allFields(schema: GraphQLSchema): Map<string, Field> {
  const fields = new Map<string, Field>();
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) fields.set(`${type.name}.${field.name}`, field);
  }
  return fields;
}

/** Every scalar that a field takes, in arguments and in the input objects of arguments: its path and its type's name. */
function takenScalars(field: Field): { path: string[]; type: string }[] {
  const walk = (name: string, type: GraphQLNamedType, above: string[]): { path: string[]; type: string }[] => {
    const path = [...above, name];
    if (!isInputObjectType(type)) return [{ path, type: type.name }];
    return Object.values(type.getFields()).flatMap((inner) => walk(inner.name, getNamedType(inner.type), path));
  };
  return field.args.flatMap((argument) => walk(argument.name, getNamedType(argument.type), []));
}

/** Where a field takes ids: one path for each. */
export const idPaths = (field: Field): string[][] =>
  takenScalars(field)
    .filter(({ type }) => type === 'ID')
    .map(({ path }) => path);

/** The path of every id that a field takes: by the field's name, or by "Type.field(argument)" where it takes several. */
export const idArguments = (fields: Map<string, Field>): Map<string, string[]> =>
  new Map(
    [...fields].flatMap(([name, field]) => {
      const paths = idPaths(field);
      return paths.map((path): [string, string[]] => [paths.length > 1 ? `${name}(${path.at(-1)})` : name, path]);
    }),
  );

/** Arguments that look like ids and are not declared as such: the walk would not see them. */
export const disguisedIds = (fields: Map<string, Field>): string[] =>
  [...fields].flatMap(([name, field]) =>
    takenScalars(field)
      .filter(({ path, type }) => type !== 'ID' && /id$/i.test(path.at(-1) ?? ''))
      .map(({ path }) => `${name}(${path.join('.')})`),
  );

/** Of each connection on the way down: as much as a test has of anything, and so little that all of it may be asked for at once. */
const pageSize = 5;

/** Selects all there is below a type; of a type that comes again further down, its leaves alone. */
function selectEverything(type: GraphQLNamedType, above: readonly string[] = []): string {
  if (isLeafType(type)) return '';
  if (!isObjectType(type)) throw new Error(`${type.name} is no object type: say how to walk it`);
  const fields = Object.values(type.getFields()).flatMap((field) => {
    const inner = getNamedType(field.type);
    if (field.args.some(isRequiredArgument)) throw new Error(`${type.name}.${field.name} cannot be asked as it is`);
    if (above.includes(type.name) && !isLeafType(inner)) return [];
    const page = field.args.some(({ name }) => name === 'first') ? `(first: ${pageSize})` : '';
    return [`${field.name}${page} ${selectEverything(inner, [...above, type.name])}`];
  });
  return `{ ${fields.join(' ')} }`;
}

/** One document for each concrete type that the root field may answer with; its arguments are its variables. */
export function documentsFor(
  schema: GraphQLSchema,
  fieldName: string,
): { label: string; typeName: string; document: string }[] {
  const [rootName = '', name = ''] = fieldName.split('.');
  const field = allFields(schema).get(fieldName);
  if (!field) throw new Error(`the schema has no ${fieldName}`);
  const type = getNamedType(field.type);
  const definitions = field.args.map((argument) => `$${argument.name}: ${String(argument.type)}`);
  const passed = field.args.map((argument) => `${argument.name}: $${argument.name}`);
  const call = (selection: string): string =>
    `${rootName.toLowerCase()} ${definitions.length > 0 ? `(${definitions.join(', ')})` : ''} {
      ${name} ${passed.length > 0 ? `(${passed.join(', ')})` : ''} ${selection}
    }`;
  if (!isAbstractType(type)) {
    return [{ label: fieldName, typeName: type.name, document: call(selectEverything(type)) }];
  }
  return schema.getPossibleTypes(type).map((possible) => ({
    label: `${fieldName} as ${possible.name}`,
    typeName: possible.name,
    document: call(`{ __typename ... on ${possible.name} ${selectEverything(possible)} }`),
  }));
}

/** `values` with `value` at `path`, the objects on the way made as needed. */
export function withValueAt(values: object, [first = '', ...rest]: readonly string[], value: unknown): object {
  const inner = (values as Record<string, object | undefined>)[first] ?? {};
  return { ...values, [first]: rest.length === 0 ? value : withValueAt(inner, rest, value) };
}
