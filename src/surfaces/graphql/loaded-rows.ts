// A plugin for Pothos: what is there is read from its row at once, columns and rows of which columns are wanted. The Prisma plugin would look
// up for every row by which query it was loaded, to load what is missing.
import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import { columnOf, createSelectionCheck, isPlanned } from './selected-fields.js';

declare global {
  // eslint-disable-next-line typescript/no-namespace
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      loadedRows: LoadedRowsPlugin<Types>;
    }
  }
}

export const loadedRows = 'loadedRows';

/** Nothing below will ask by which query the row was loaded. */
const wantsColumns = createSelectionCheck((field) => columnOf(field) !== undefined || !isPlanned(field));

class LoadedRowsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    field: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    if (field.kind !== 'PrismaObject') return resolver;
    const column = columnOf(field);
    if (column !== undefined) {
      return (row, args, context, info) => {
        const value = (row as Record<string, unknown>)[column];
        return value === undefined ? resolver(row, args, context, info) : value;
      };
    }
    const relation = field.extensions?.['pothosPrismaRelationField'] as { name: string } | undefined;
    if (relation === undefined) return resolver;
    return (row, args, context, info) => {
      const related = (row as Record<string, unknown>)[relation.name];
      return related === undefined || !wantsColumns(info) ? resolver(row, args, context, info) : related;
    };
  }
}

SchemaBuilder.registerPlugin(loadedRows, LoadedRowsPlugin);
