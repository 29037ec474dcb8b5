// What is selected of a row: whether anything of it needs more than the row.
import { getNamedType, isObjectType, Kind, type FieldNode, type GraphQLField, type GraphQLResolveInfo } from 'graphql';

type Field = GraphQLField<unknown, unknown>;

/** A field of the schema, or what Pothos makes one of. */
interface Extended {
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

/** The column that a field shows as it is. */
export const columnOf = ({ extensions }: Extended): string | undefined => {
  const column = extensions?.['pothosExposedField'];
  return typeof column === 'string' ? column : undefined;
};

/** Whether the Prisma plugin has to plan the field: it wants columns or relations of its row. */
export const isPlanned = ({ extensions }: Extended): boolean => extensions?.['pothosPrismaSelect'] !== undefined;

/**
 * @returns tells whether each field that is selected below the one that is being resolved is fine; said once for each place in an operation
 */
export function createSelectionCheck(isFine: (field: Field) => boolean): (info: GraphQLResolveInfo) => boolean {
  const known = new WeakMap<readonly FieldNode[], boolean>();

  function check({ returnType, fieldNodes }: GraphQLResolveInfo): boolean {
    const type = getNamedType(returnType);
    if (!isObjectType(type)) return false;
    const fields = type.getFields();
    return fieldNodes
      .flatMap(({ selectionSet }) => selectionSet?.selections ?? [])
      .every((selection) => {
        // Fragments are rare here, and never wrong to plan.
        const field = selection.kind === Kind.FIELD ? fields[selection.name.value] : undefined;
        return field !== undefined && isFine(field);
      });
  }

  return (info) => {
    let answer = known.get(info.fieldNodes);
    if (answer === undefined) {
      answer = check(info);
      known.set(info.fieldNodes, answer);
    }
    return answer;
  };
}
