// How much one operation may ask for at once: an upper bound of the number of objects in its answer.
import {
  getNamedType,
  getNullableType,
  isCompositeType,
  isIntrospectionType,
  isListType,
  isObjectType,
  isInterfaceType,
  Kind,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql';
import { defaultPageSize, maxPageSize } from '../../shared/pagination.js';

export type Variables = Readonly<Record<string, unknown>>;

/** For a list that is not paged: keys, tokens, child runs. Few by nature, but not one. */
const assumedListLength = 10;

interface Scope {
  schema: GraphQLSchema;
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** What a variable holds, with its default. */
  variable(name: string): unknown;
  /** A fragment costs the same wherever it is spread on one type with one page size. */
  spreadCosts: Map<string, number>;
}

const asSize = (value: unknown): number | undefined =>
  // Over the maximum the page is refused where the argument is read, with a better message than a cost.
  typeof value === 'number' && Number.isFinite(value) ? Math.min(Math.max(value, 0), maxPageSize) : undefined;

const literalValue = (node: ValueNode | undefined, scope: Pick<Scope, 'variable'>): unknown => {
  if (node?.kind === Kind.INT) return Number(node.value);
  return node?.kind === Kind.VARIABLE ? scope.variable(node.name.value) : undefined;
};

/** The size of the page that a connection field asks for; undefined for a field without pages. */
function pageSizeOf(node: FieldNode, field: GraphQLField<unknown, unknown>, scope: Scope): number | undefined {
  if (!field.args.some(({ name }) => name === 'first' || name === 'last')) return undefined;
  const sizes = (node.arguments ?? [])
    .filter(({ name }) => name.value === 'first' || name.value === 'last')
    .map(({ value }) => asSize(literalValue(value, scope)))
    .filter((size) => size !== undefined);
  return sizes.length > 0 ? Math.max(...sizes) : defaultPageSize;
}

const fieldOf = (type: GraphQLNamedType, name: string): GraphQLField<unknown, unknown> | undefined =>
  isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined;

function costOfField(node: FieldNode, parent: GraphQLNamedType, pageSize: number | undefined, scope: Scope): number {
  const field = fieldOf(parent, node.name.value);
  // Scalars come with their object; __schema and __type have a limit of their own in GraphQL.js.
  if (!field || !node.selectionSet) return 0;
  const type = getNamedType(field.type);
  if (!isCompositeType(type) || isIntrospectionType(type)) return 0;
  const isList = isListType(getNullableType(field.type));
  const times = isList ? (pageSize ?? assumedListLength) : 1;
  return times * (1 + costOfSelections(node.selectionSet, type, pageSizeOf(node, field, scope), scope));
}

function costOfSpread(name: string, parent: GraphQLNamedType, pageSize: number | undefined, scope: Scope): number {
  const key = `${name} ${parent.name} ${pageSize ?? ''}`;
  const known = scope.spreadCosts.get(key);
  if (known !== undefined) return known;
  const fragment = scope.fragments.get(name);
  if (!fragment) return 0;
  // Zero while it is counted, so that a cycle ends; documents with cycles are not valid anyway.
  scope.spreadCosts.set(key, 0);
  const type = scope.schema.getType(fragment.typeCondition.name.value) ?? parent;
  const cost = costOfSelections(fragment.selectionSet, type, pageSize, scope);
  scope.spreadCosts.set(key, cost);
  return cost;
}

function costOfSelections(
  { selections }: SelectionSetNode,
  parent: GraphQLNamedType,
  pageSize: number | undefined,
  scope: Scope,
): number {
  let cost = 0;
  for (const node of selections) {
    if (node.kind === Kind.FIELD) cost += costOfField(node, parent, pageSize, scope);
    else if (node.kind === Kind.FRAGMENT_SPREAD) cost += costOfSpread(node.name.value, parent, pageSize, scope);
    else {
      const type = node.typeCondition ? scope.schema.getType(node.typeCondition.name.value) : parent;
      cost += costOfSelections(node.selectionSet, type ?? parent, pageSize, scope);
    }
  }
  return cost;
}

/**
 * How an operation is weighed: an upper bound of the number of objects that it can answer with. Pages count as large as they may get,
 * aliases and fragments each time. Expects a valid document. Counts once for an operation that no variable makes cheaper or dearer.
 */
export function createCostMeter(
  schema: GraphQLSchema,
): (document: DocumentNode, operation: OperationDefinitionNode, variables: Variables) => number {
  const fixedCosts = new WeakMap<OperationDefinitionNode, number>();
  return (document, operation, variables) => {
    const known = fixedCosts.get(operation);
    if (known !== undefined) return known;
    const { cost, isFixed } = weigh(schema, document, operation, variables);
    if (isFixed) fixedCosts.set(operation, cost);
    return cost;
  };
}

function weigh(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): { cost: number; isFixed: boolean } {
  const root = schema.getRootType(operation.operation);
  if (!root) return { cost: 0, isFixed: true };
  const fragments = document.definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
  const defaults = new Map(
    (operation.variableDefinitions ?? []).map(({ variable, defaultValue }) => [variable.name.value, defaultValue]),
  );
  const noVariables = { variable: () => undefined };
  let isFixed = true;
  const cost = costOfSelections(operation.selectionSet, root, undefined, {
    schema,
    fragments: new Map(fragments.map((fragment) => [fragment.name.value, fragment])),
    variable(name) {
      isFixed = false;
      return Object.hasOwn(variables, name) ? variables[name] : literalValue(defaults.get(name), noVariables);
    },
    spreadCosts: new Map(),
  });
  return { cost, isFixed };
}
