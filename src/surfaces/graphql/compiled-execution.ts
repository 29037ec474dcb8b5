// Operations that come again and again are executed as compiled functions (graphql-jit), all others by GraphQL.js. Nobody can tell the
// two apart by an answer: what the compiler does differently is left to GraphQL.js.
import {
  execute,
  getNamedType,
  getVariableValues,
  GraphQLError,
  GraphQLScalarType,
  GraphQLSchema,
  isAbstractType,
  isInputObjectType,
  isIntrospectionType,
  Kind,
  OperationTypeNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type FieldNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type VariableDefinitionNode,
} from 'graphql';
import { compileQuery, isCompiledQuery, type CompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';
import { createPlainVariables } from './plain-variables.js';
import { copyOf, createUnchangingFields, NoText } from './unchanging.js';

/** What is asked once costs more to compile than it ever gives back. */
const usesBeforeCompilation = 20;
/** In characters: compilation blocks the event loop for as long as the document asks. */
const longestCompiledDocument = 4096;

/** With every fragment written out where it is spread: what a compilation takes in time and memory grows with it. */
const mostCompiledFields = 300;

function countFields(document: DocumentNode, operation: OperationDefinitionNode): number {
  const fragments = new Map(
    document.definitions.flatMap((node) => (node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node]] : [])),
  );
  const known = new Map<string, number>();
  const countOf = ({ selections }: SelectionSetNode): number =>
    selections.reduce((count, selection) => {
      if (selection.kind !== Kind.FRAGMENT_SPREAD) {
        return count + 1 + (selection.selectionSet ? countOf(selection.selectionSet) : 0);
      }
      const name = selection.name.value;
      const fragment = fragments.get(name);
      // Each is counted once, however often it is spread.
      if (!known.has(name)) known.set(name, fragment ? countOf(fragment.selectionSet) : 0);
      return count + (known.get(name) ?? 0);
    }, 0);
  return countOf(operation.selectionSet);
}

/** Of all operations that are kept compiled: about two KiB each. */
const mostFieldsOfAll = 20_000;

interface Compiled {
  fieldCount: number;
  query: CompiledQuery['query'];
  variablesOf: ReturnType<typeof createPlainVariables>;
}

interface Use {
  count: number;
  isNeverCompiled?: true;
}

interface Options {
  schema: GraphQLSchema;
  /** For tests; 0 compiles at once. */
  usesBeforeCompilation?: number;
}

export type Execute = (args: ExecutionArgs) => ExecutionResult | Promise<ExecutionResult>;

/**
 * Directives and abstract types are where the compiler is known to answer differently in rare cases, and introspection is not worth
 * it. In an object that is written into the document for a scalar, it loses variables. A mutation cannot be repeated to see what
 * GraphQL.js would have said, so nothing may be left for its arguments to fail at: its variables are all required.
 */
function isCompilable(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): boolean {
  if ((document.loc?.end ?? Infinity) > longestCompiledDocument) return false;
  const isMutation = operation.operation === OperationTypeNode.MUTATION;
  const variables = operation.variableDefinitions ?? [];
  if (isMutation && variables.some(({ type }) => type.kind !== Kind.NON_NULL_TYPE)) return false;
  if (countFields(document, operation) > mostCompiledFields) return false;
  const typeInfo = new TypeInfo(schema);
  let isPlain = true;
  visit(
    document,
    visitWithTypeInfo(typeInfo, {
      Directive: () => void (isPlain = false),
      ObjectValue() {
        if (!isInputObjectType(getNamedType(typeInfo.getInputType()))) isPlain = false;
      },
      Field({ name, alias }) {
        // The compiler would write it as a member of an ordinary object, where it is none.
        if (alias?.value === '__proto__') isPlain = false;
        const type = getNamedType(typeInfo.getType());
        if (!type || isAbstractType(type) || isIntrospectionType(type) || name.value.startsWith('__')) isPlain = false;
      },
    }),
  );
  return isPlain;
}

/** The values of variables are coerced by GraphQL.js, in its words. The compiled function takes them as they are, through this type. */
const coerced = new GraphQLScalarType({ name: 'Coerced__', parseValue: (value) => value });

const takeAsIs = (definition: VariableDefinitionNode): VariableDefinitionNode => ({
  kind: Kind.VARIABLE_DEFINITION,
  variable: definition.variable,
  type: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: coerced.name } },
});

function positionsOf(error: GraphQLError, document: DocumentNode): number[] | undefined {
  const body = document.loc?.source.body;
  if (body === undefined) return undefined;
  const lines = body.split(/\r\n|[\n\r]/g);
  return error.locations?.map(({ line, column }) => {
    let position = 0;
    for (let index = 0; index < line - 1; index += 1) {
      position += lines[index]!.length;
      position += body.startsWith('\r\n', position) ? 2 : 1;
    }
    return position + column - 1;
  });
}

/** As GraphQL.js makes them: with what was thrown, and a place in the text. */
const asOriginal = (error: GraphQLError, document: DocumentNode): GraphQLError =>
  new GraphQLError(error.message, {
    source: document.loc?.source,
    positions: positionsOf(error, document),
    path: error.path,
    // What a resolver did not throw is a result that breaks the schema: a bug, and never meant for a client.
    originalError: error.originalError ?? new Error(error.message),
  });

/** @returns what executes in the place of GraphQL.js's `execute` */
export function createCompiledExecution({
  schema,
  usesBeforeCompilation: needed = usesBeforeCompilation,
}: Options): Execute {
  const uses = new WeakMap<OperationDefinitionNode, Use>();
  /** Who is pushed out by others has to come as often again. */
  const kept = new LRUCache<OperationDefinitionNode, Compiled>({
    maxSize: mostFieldsOfAll,
    sizeCalculation: ({ fieldCount }) => fieldCount,
    dispose: (_compiled, operation) => uses.delete(operation),
  });
  const unchanging = createUnchangingFields(schema);
  const config = unchanging.schema.toConfig();
  const compilerSchema = new GraphQLSchema({ ...config, types: [...config.types, coerced], assumeValid: true });

  function withTwins(document: DocumentNode): DocumentNode {
    const types = new TypeInfo(schema);
    const enter = (node: FieldNode): FieldNode => {
      const field = types.getFieldDef();
      return field ? unchanging.withTwin(node, field) : node;
    };
    return visit(document, visitWithTypeInfo(types, { Field: enter }));
  }

  function compile(document: DocumentNode, operation: OperationDefinitionNode): Compiled | null {
    if (!isCompilable(schema, document, operation)) return null;
    const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
    const variableDefinitions = operation.variableDefinitions?.map(takeAsIs);
    const single: DocumentNode = { ...document, definitions: [{ ...operation, variableDefinitions }, ...fragments] };
    const isQuery = operation.operation === OperationTypeNode.QUERY;
    const copy = copyOf(isQuery ? withTwins(single) : single);
    const compiled = compileQuery(compilerSchema, copy, operation.name?.value);
    if (!isCompiledQuery(compiled)) return null;
    return {
      fieldCount: countFields(document, operation),
      query: compiled.query,
      variablesOf: createPlainVariables(schema, operation.variableDefinitions ?? []),
    };
  }

  function compiledFor(document: DocumentNode, operation: OperationDefinitionNode): Compiled | null {
    const known = kept.get(operation);
    if (known) return known;
    const use: Use = uses.get(operation) ?? { count: 0 };
    if (use.isNeverCompiled) return null;
    if (use.count === 0) uses.set(operation, use);
    use.count += 1;
    if (use.count <= needed) return null;
    const compiled = compile(document, operation);
    if (compiled) kept.set(operation, compiled);
    else use.isNeverCompiled = true;
    return compiled;
  }

  /** Queries, and telling an event, change nothing: where the compiled function found a mistake by itself, GraphQL.js may have other words for it. */
  function finish(result: ExecutionResult, args: ExecutionArgs, operation: OperationDefinitionNode) {
    if (result.errors === undefined) return result;
    const isFound = result.errors.some(
      ({ originalError }) => originalError === undefined || originalError instanceof NoText,
    );
    if (isFound && operation.operation !== OperationTypeNode.MUTATION) return execute(args);
    return { ...result, errors: result.errors.map((error) => asOriginal(error, args.document)) };
  }

  return (args) => {
    const { document, operationName, variableValues, rootValue, contextValue } = args;
    const operation = operationOf(document, operationName);
    const compiled = operation && compiledFor(document, operation);
    if (!compiled) return execute(args);
    const values = variableValues ?? {};
    const variables =
      compiled.variablesOf(values) ??
      getVariableValues(schema, operation.variableDefinitions ?? [], values, { maxErrors: 50 }).coerced;
    if (!variables) return execute(args);
    const result = compiled.query(rootValue, contextValue, variables);
    return 'then' in result
      ? result.then((settled: ExecutionResult) => finish(settled, args, operation))
      : finish(result, args, operation);
  };
}

function operationOf(document: DocumentNode, name: string | null | undefined): OperationDefinitionNode | undefined {
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    if (name == null || definition.name?.value === name) return definition;
  }
  return undefined;
}
