// The way of every operation, whichever transport it came on: text → checked document → result. Knows nothing of HTTP or WebSockets.
import { envelop, isAsyncIterable, useEngine, useSchema, type Plugin } from '@envelop/core';
import {
  createSourceEventStream,
  getOperationAST,
  GraphQLError,
  OperationTypeNode,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { shorten } from '../../shared/text.js';
import { isDivertible, type Divertible, type Preparation } from '../../shared/divertible.js';
import { createInterned } from '../../shared/interned.js';
import { createCompiledExecution, type Execute } from './compiled-execution.js';
import { parseFailed, validationFailed } from './graphql-errors.js';
import { useGuardRails, type GuardRailLimits } from './guard-rails.js';
import { createCostMeter, type Variables } from './operation-cost.js';
import { contextOfNobody, createSharedResults, type ResultStream, type SharedResult } from './shared-results.js';

/** What a client asks for, as it stands in the GraphQL-over-HTTP specification. */
export interface OperationRequest {
  query: string;
  variables?: Variables | null;
  operationName?: string | null;
}

/** An operation that may be executed. */
export interface PreparedOperation {
  document: DocumentNode;
  operation: OperationDefinitionNode;
  variables: Variables;
}

export interface Pipeline {
  /** Parses, validates and weighs. Answers with the errors when the operation must not be executed. */
  prepare(request: OperationRequest): PreparedOperation | { errors: readonly GraphQLError[] };
  /**
   * Executes. For a subscription: opens its source and answers with an iterator of results, one for each event.
   * Results that depend on nothing but a divertible source's event are made once for all subscriptions, without a context.
   * @param createContext called once for an operation, and once more for each event that it executes for itself: what a context
   * remembers must not outlive it
   */
  run(
    operation: PreparedOperation,
    createContext: () => object,
  ): ExecutionResult | Promise<ExecutionResult | ResultStream>;
}

export interface PipelineOptions {
  schema: GraphQLSchema;
  introspection: boolean;
  limits: GuardRailLimits;
  /** Added at the end: tracing, another executor. */
  plugins?: Plugin[];
  /** For tests: how often an operation is executed as it is before it is compiled. */
  usesBeforeCompilation?: number | undefined;
}

interface Execution {
  contextValue: object;
  executeIt: Execute;
}

/** A document that passed, or the errors that it will always have. */
type CheckedDocument = DocumentNode | { errors: readonly GraphQLError[] };

const maxCachedDocuments = 500;
/** Longer documents carry data that belongs in variables: they do not come again, and would fill the memory. */
const maxCachedLength = 16_384;

/** Remembers the most recently used. */
function createDocumentCache(): {
  get(text: string): CheckedDocument | undefined;
  put(text: string, value: CheckedDocument): void;
} {
  const entries = new Map<string, CheckedDocument>();
  /** The last in `entries`: what comes again at once is in its place. */
  let latest: string | undefined;
  return {
    get(text) {
      const value = entries.get(text);
      if (value !== undefined && text !== latest) {
        entries.delete(text);
        entries.set(text, value);
        latest = text;
      }
      return value;
    },
    put(text, value) {
      if (text.length > maxCachedLength) return;
      entries.set(text, value);
      latest = text;
      if (entries.size <= maxCachedDocuments) return;
      for (const oldest of entries.keys()) {
        entries.delete(oldest);
        return;
      }
    },
  };
}

/** The limits throw with the prefix of a parser; a parser's error has a place in the text. */
function withCode(error: unknown, code: string): GraphQLError {
  // Parsing is recursive: brackets in brackets may use up the stack before they reach the limit of tokens.
  if (error instanceof RangeError)
    return new GraphQLError('The document is nested too deeply.', { extensions: { code } });
  if (!(error instanceof GraphQLError)) throw error;
  const message = shorten(code === validationFailed ? error.message.replace(/^Syntax Error: /, '') : error.message);
  const { nodes, source, positions } = error;
  return new GraphQLError(message, { nodes, source, positions, extensions: { code } });
}

/** Results instead of events; asks the source only when it is asked, and passes return() on. */
function mapEvents(
  source: AsyncIterable<unknown>,
  execute: (event: unknown) => Promise<ExecutionResult>,
): ResultStream {
  const events = source[Symbol.asyncIterator]();
  const end = { done: true, value: undefined } as const;
  return {
    async next() {
      const step = await events.next();
      return step.done ? end : { done: false, value: await execute(step.value) };
    },
    async return() {
      await events.return?.();
      return end;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** How results come about that several subscriptions are told: one of these for all of them. */
interface Sharing {
  readonly execute: (event: unknown) => Promise<ExecutionResult>;
  readonly prepare: Preparation<object, SharedResult>;
}

function createSharing(resultOf: (event: object) => SharedResult | Promise<SharedResult>): Sharing {
  return {
    execute: async (event) => (await resultOf(event as object)).result,
    prepare(event) {
      let shared: SharedResult | Promise<SharedResult>;
      try {
        shared = resultOf(event);
      } catch {
        return undefined; // each subscription meets the failure by itself
      }
      return shared instanceof Promise || shared.result.errors !== undefined ? undefined : shared;
    },
  };
}

/** Results that other subscriptions are told as well. */
function shareEvents(source: Divertible<object>, { execute, prepare }: Sharing): ResultStream {
  const results = mapEvents(source, execute);
  results.divert = (seat) => source.divert(prepare, seat);
  return results;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  const { schema, introspection, limits, plugins = [] } = options;
  const execute = createCompiledExecution({ schema, usesBeforeCompilation: options.usesBeforeCompilation });
  const getEnveloped = envelop({
    plugins: [
      // Parsing and validation are the guard rails'.
      useEngine({ execute }),
      useSchema(schema),
      ...useGuardRails(limits, introspection),
      ...plugins,
    ],
  });
  const cache = createDocumentCache();
  const sharedResults = createSharedResults(schema);
  const sharings = createInterned<Sharing>();
  const costOf = createCostMeter(schema);

  function check(query: string): CheckedDocument {
    const enveloped = getEnveloped({});
    let document: DocumentNode;
    try {
      document = enveloped.parse(query);
    } catch (error) {
      return { errors: [withCode(error, parseFailed)] };
    }
    try {
      const errors = enveloped.validate(schema, document);
      return errors.length === 0
        ? document
        : { errors: errors.map((error: GraphQLError) => withCode(error, validationFailed)) };
    } catch (error) {
      return { errors: [withCode(error, validationFailed)] };
    }
  }

  function refuse(message: string): { errors: GraphQLError[] } {
    return { errors: [new GraphQLError(message, { extensions: { code: validationFailed } })] };
  }

  const executeOne: Execute =
    plugins.length === 0 ? execute : (args) => getEnveloped({}).execute(args) as Promise<ExecutionResult>;
  const argumentsOf = (
    { document, operation, variables }: PreparedOperation,
    contextValue: object,
    rootValue?: unknown,
  ): ExecutionArgs => ({
    schema,
    document,
    variableValues: variables,
    operationName: operation.name?.value,
    rootValue,
    contextValue,
    hideSuggestions: !introspection,
  });
  const executeEvent = (
    prepared: PreparedOperation,
    event: unknown,
    context: object,
  ): ExecutionResult | Promise<ExecutionResult> => executeOne(argumentsOf(prepared, context, event));

  // Not within `resultsOf`: it serves others as well, and must not keep what belongs to who came first.
  const sharingOf = (prepared: PreparedOperation, key: string): Sharing =>
    sharings(key, () =>
      createSharing((event) =>
        sharedResults.resultOf(event, key, () => executeEvent(prepared, event, contextOfNobody)),
      ),
    );

  // Not within `run`: what is open for long must not keep what its opening needed.
  function resultsOf(
    source: AsyncIterable<object>,
    prepared: PreparedOperation,
    createContext: () => object,
  ): ResultStream {
    const key = isDivertible(source) ? sharedResults.keyOf(prepared) : undefined;
    if (key !== undefined && isDivertible(source)) {
      return shareEvents(source, sharingOf(prepared, key));
    }
    return mapEvents(source, async (event) => executeEvent(prepared, event, createContext()));
  }

  /** For plugins alone: the rails are behind the operation already. */
  async function beginEnveloped(context: object): Promise<Execution> {
    const enveloped = getEnveloped(context);
    return {
      contextValue: (await enveloped.contextFactory()) as object,
      executeIt: (args) => enveloped.execute(args) as Promise<ExecutionResult>,
    };
  }

  // No async function: a promise that it returned would take two more turns.
  function begin(
    prepared: PreparedOperation,
    createContext: () => object,
    { contextValue, executeIt }: Execution,
  ): ExecutionResult | Promise<ExecutionResult | ResultStream> {
    const args = argumentsOf(prepared, contextValue);
    return prepared.operation.operation === OperationTypeNode.SUBSCRIPTION
      ? subscribe(args, prepared, createContext)
      : executeIt(args);
  }

  async function subscribe(
    args: ExecutionArgs,
    prepared: PreparedOperation,
    createContext: () => object,
  ): Promise<ExecutionResult | ResultStream> {
    const source = await createSourceEventStream(args);
    return isAsyncIterable(source) ? resultsOf(source as AsyncIterable<object>, prepared, createContext) : source;
  }

  return {
    prepare({ query, variables, operationName }) {
      let checked = cache.get(query);
      if (checked === undefined) {
        checked = check(query);
        cache.put(query, checked);
      }
      if ('errors' in checked) return checked;
      const operation = getOperationAST(checked, operationName);
      if (!operation) {
        return refuse('The document has no operation of this name, or several and operationName chooses none of them.');
      }
      const cost = costOf(checked, operation, variables ?? {});
      if (cost > limits.maxCost) {
        return refuse(
          `The answer could have ${cost} objects; ${limits.maxCost} are allowed. Ask for smaller pages, or in several operations.`,
        );
      }
      return { document: checked, operation, variables: variables ?? {} };
    },

    run(prepared, createContext) {
      const context = createContext();
      return plugins.length === 0
        ? begin(prepared, createContext, { contextValue: context, executeIt: execute })
        : beginEnveloped(context).then((execution) => begin(prepared, createContext, execution));
    },
  };
}
