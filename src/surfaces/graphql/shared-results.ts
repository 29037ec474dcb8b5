// One execution, and one serialisation, for all subscriptions that would be told the same about an event.
import {
  getNamedType,
  isLeafType,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type ASTNode,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { Seat } from '../../shared/divertible.js';
import { withinAnswerSize } from './answer-size.js';
import type { Variables } from './operation-cost.js';

/**
 * In the extensions of a type whose fields are in the event itself, whoever asks and whenever: their resolvers use nothing of the
 * context. Fields of a marked type that lead to an unmarked one may; whoever selects one of them shares nothing.
 */
export const ofEventAlone = { ofEventAlone: true } as const;

export interface SharedResult {
  readonly result: ExecutionResult;
  /** Its JSON, made when it is first asked for. Not for results with errors: they name the request of each subscriber. */
  readonly payload: Buffer;
}

/** The results of a subscription. */
export interface ResultStream extends AsyncIterableIterator<ExecutionResult> {
  /** Where results are shared: see Divertible. What a seat is told has no errors. */
  divert?: (seat: Seat<SharedResult>) => void;
}

export interface SharedResults {
  /** Operations with the same key are told the same about the same event; undefined: only its own execution can tell. */
  keyOf(
    this: void,
    operation: {
      document: DocumentNode;
      operation: OperationDefinitionNode;
      variables: Variables;
    },
  ): string | undefined;
  /** What `execute` answers, or answered to somebody with this key about this very event. A promise when it answers with one. */
  resultOf(
    this: void,
    event: object,
    key: string,
    execute: () => ExecutionResult | Promise<ExecutionResult>,
  ): SharedResult | Promise<SharedResult>;
}

/** Says where a stream begins, and nothing about an event in it: subscribers that resume at different places share, too. */
const startArgument = 'after';
/** Every subscription keeps its key. */
const longestKey = 1000;

/**
 * A context for executions that serve several principals: it has none. So a resolver that depends on who asks fails here, and
 * can tell nobody what is somebody else's.
 */
export const contextOfNobody: object = new Proxy(
  {},
  {
    get(_target, property) {
      if (typeof property === 'symbol') return undefined;
      throw new TypeError(
        `A field of an event depends on the context (${property}): its type must not be marked ofEventAlone`,
      );
    },
  },
);

const isMarked = (type: GraphQLNamedType): boolean => type.extensions['ofEventAlone'] === true;

/** The variables that a result depends on; undefined when it depends on more than the event. */
function variablesOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): string[] | undefined {
  const names = new Set<string>();
  const fragments = new Map(
    document.definitions.flatMap((node) => ('name' in node && node.name ? [[node.name.value, node]] : [])),
  );
  const reached = new Set<ASTNode>([operation]);
  let isOfEvent = true;
  // A set is iterated with what is added meanwhile.
  for (const node of reached) {
    const types = new TypeInfo(schema);
    const atRoot = (): boolean => types.getParentType() === schema.getSubscriptionType();
    visit(
      node,
      visitWithTypeInfo(types, {
        VariableDefinition: () => false,
        Field() {
          const parent = types.getParentType();
          const type = getNamedType(types.getType());
          const fits = parent && type && (atRoot() || isMarked(parent)) && (isLeafType(type) || isMarked(type));
          if (!fits) isOfEvent = false;
        },
        FragmentSpread({ name }) {
          const fragment = fragments.get(name.value);
          if (fragment) reached.add(fragment);
        },
        Argument: ({ name }) => (name.value === startArgument && atRoot() && !types.getDirective() ? false : undefined),
        Variable({ name }) {
          names.add(name.value);
        },
      }),
    );
  }
  return isOfEvent ? [...names].toSorted() : undefined;
}

function createSharedResult(whole: ExecutionResult): SharedResult {
  const result = withinAnswerSize(whole);
  let payload: Buffer | undefined;
  return {
    result,
    get payload() {
      return (payload ??= Buffer.from(JSON.stringify(result)));
    },
  };
}

export function createSharedResults(schema: GraphQLSchema): SharedResults {
  const operations = new WeakMap<OperationDefinitionNode, { number: number; variables: string[] | undefined }>();
  let operationCount = 0;
  // By event: what was made for one goes with it, and events belong to one pad of one tenant.
  const byEvent = new WeakMap<object, Map<string, SharedResult | Promise<SharedResult>>>();
  let latest: { event: object; key: string; shared: SharedResult } | undefined;

  return {
    keyOf({ document, operation, variables }) {
      let known = operations.get(operation);
      if (!known) {
        operationCount += 1;
        known = { number: operationCount, variables: variablesOf(schema, document, operation) };
        operations.set(operation, known);
      }
      if (!known.variables) return undefined;
      const values = known.variables.map((name) => (Object.hasOwn(variables, name) ? [variables[name]] : []));
      const key = `${known.number}:${JSON.stringify(values)}`;
      return key.length <= longestKey ? key : undefined;
    },

    resultOf(event, key, execute) {
      if (latest?.event === event && latest.key === key) return latest.shared;
      let results = byEvent.get(event);
      if (!results) {
        results = new Map();
        byEvent.set(event, results);
      }
      let shared = results.get(key);
      if (!shared) {
        const made = execute();
        shared = made instanceof Promise ? made.then(createSharedResult) : createSharedResult(made);
        results.set(key, shared);
      }
      if (!(shared instanceof Promise)) latest = { event, key, shared };
      return shared;
    },
  };
}
