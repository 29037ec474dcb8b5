// What never changes is made into JSON once, however often it is told: the page of a ledger that nobody has written to since, a content.
// For compiled operations only: each field of such values has a twin, which no client sees, and which answers with the text.
import { MapperKind, mapSchema } from '@graphql-tools/utils';
import {
  defaultFieldResolver,
  getNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  isNonNullType,
  isObjectType,
  Kind,
  OperationTypeNode,
  visit,
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLFieldConfig,
  type GraphQLResolveInfo,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { createTextCache, largestText } from '../../shared/text-cache.js';
import { isWithin } from './answer-size.js';
import { JsonText } from './answer-text.js';
import { contextOfNobody } from './shared-results.js';

/**
 * In the extensions of a field whose values are objects that nobody changes, and say the same to whoever asks. Where nothing has
 * happened between two reads, its resolver answers with the same object.
 */
export const unchanging = { unchanging: true } as const;

const isUnchanging = ({ extensions }: Pick<GraphQLField<unknown, unknown>, 'extensions'>): boolean =>
  extensions['unchanging'] === true;

const twinOf = (name: string): string => `${name}AsText__`;
const jsonText = new GraphQLScalarType({ name: 'JsonText__', serialize: (value) => value });

/** An operation that wants of a value what its JSON cannot be made of without knowing who asks. */
export class NoText extends Error {
  override readonly name = 'NoText';
}

/** In characters, of the texts that are made for one operation. */
const mostMade = 16 * largestText;

/** What one place of one operation selects of a value. */
interface Selection {
  readonly number: number;
  /** @throws NoText */
  of(value: object): unknown;
}

/** What was told of a value last. It keeps neither the value nor the operation. */
interface Told {
  /** Undefined when it was asked for once only. */
  selectionNumber?: number;
}

let selectionCount = 0;

/** As a compiled operation of its own, whose answer is the value. */
function compileSelection(type: GraphQLObjectType, { fieldNodes, fragments }: GraphQLResolveInfo): Selection {
  const value = { type: new GraphQLNonNull(type), resolve: (root: unknown) => root };
  const query = new GraphQLObjectType({ name: 'Values__', fields: { value } });
  const selections = fieldNodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
  const name = { kind: Kind.NAME, value: 'value' } as const;
  const field: FieldNode = { kind: Kind.FIELD, name, selectionSet: { kind: Kind.SELECTION_SET, selections } };
  const document: DocumentNode = {
    kind: Kind.DOCUMENT,
    definitions: [
      {
        kind: Kind.OPERATION_DEFINITION,
        operation: OperationTypeNode.QUERY,
        selectionSet: { kind: Kind.SELECTION_SET, selections: [field] },
      },
      ...Object.values(fragments),
    ],
  };
  const compiled = compileQuery(new GraphQLSchema({ query, assumeValid: true }), copyOf(document));
  selectionCount += 1;
  return {
    number: selectionCount,
    of(root) {
      const result = isCompiledQuery(compiled) ? compiled.query(root, contextOfNobody, {}) : compiled;
      if ('then' in result || result.errors !== undefined) throw new NoText();
      return result.data?.['value'];
    },
  };
}

/** The compiler writes notes into the nodes that it reads. */
export const copyOf = (document: DocumentNode): DocumentNode => visit(document, { enter: (node) => ({ ...node }) });

export interface UnchangingFields {
  /** With the twins. */
  readonly schema: GraphQLSchema;
  /** The same selection; asks for a twin where there is one. */
  withTwin(node: FieldNode, field: GraphQLField<unknown, unknown>): FieldNode;
}

export function createUnchangingFields(schema: GraphQLSchema): UnchangingFields {
  /** By the value. The next selection of the same value takes the place of the one before: who asks again asks the same, mostly. */
  const toldOf = new WeakMap<object, Told>();
  /** The texts, the most recently told ones. Values are let go of: a short text may be all that is told of a long one. */
  const kept = createTextCache<Told, JsonText>();
  /** By the context, of which each operation has its own: how many characters were made for it. */
  const made = new WeakMap<object, number>();

  /** A text, or what is selected as it is: aliases repeat what is held once, and an answer's size is looked at before it is made. */
  function tell(value: object, selection: Selection, context: object): unknown {
    const told = toldOf.get(value);
    const known = told?.selectionNumber === selection.number ? kept.get(told) : undefined;
    if (known) return known;
    const selected = selection.of(value);
    if (!told) {
      // What is asked for once only, such as a pad that changes all the time, costs more to remember than it ever gives back.
      toldOf.set(value, {});
      return selected;
    }
    const madeBefore = made.get(context) ?? 0;
    if (madeBefore > mostMade || !isWithin(selected, largestText)) return selected;
    const text = new JsonText(JSON.stringify(selected));
    made.set(context, madeBefore + text.json.length);
    told.selectionNumber = selection.number;
    kept.put(told, text, text.json.length);
    return text;
  }

  function twin(field: GraphQLFieldConfig<unknown, object>): GraphQLFieldConfig<unknown, object> {
    const { resolve = defaultFieldResolver } = field;
    const type = getNamedType(field.type);
    if (!isObjectType(type)) throw new TypeError('Only an object can be unchanging');
    const original = schema.getType(type.name) as GraphQLObjectType;
    /** By the nodes, which are those of one place in one operation. */
    const selections = new WeakMap<readonly FieldNode[], Selection>();
    const textOf = (value: unknown, context: object, info: GraphQLResolveInfo): unknown => {
      if (typeof value !== 'object' || value === null || value instanceof Error) return value;
      let selection = selections.get(info.fieldNodes);
      if (!selection) {
        selection = compileSelection(original, info);
        selections.set(info.fieldNodes, selection);
      }
      return tell(value, selection, context);
    };
    return {
      ...field,
      type: isNonNullType(field.type) ? new GraphQLNonNull(jsonText) : jsonText,
      resolve(parent, args, context, info) {
        const value: unknown = resolve(parent, args, context, info);
        return value instanceof Promise
          ? value.then((settled) => textOf(settled, context, info))
          : textOf(value, context, info);
      },
    };
  }

  return {
    schema: mapSchema(schema, {
      [MapperKind.OBJECT_TYPE](type) {
        const config = type.toConfig();
        const fields = Object.entries(config.fields).filter(([, field]) =>
          isUnchanging({ extensions: field.extensions ?? {} }),
        );
        if (fields.length === 0) return undefined;
        const twins = Object.fromEntries(fields.map(([name, field]) => [twinOf(name), twin(field)]));
        return new GraphQLObjectType({ ...config, fields: { ...config.fields, ...twins } });
      },
    }),
    withTwin: (node, field) =>
      isUnchanging(field)
        ? { ...node, alias: node.alias ?? node.name, name: { kind: Kind.NAME, value: twinOf(node.name.value) } }
        : node,
  };
}
