// A plugin for Pothos: a column that is there is read from its row at once. The Prisma plugin would look up for every row by which query it was
// loaded, to load what is missing.
import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';

declare global {
  // eslint-disable-next-line typescript/no-namespace
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      loadedColumns: LoadedColumnsPlugin<Types>;
    }
  }
}

export const loadedColumns = 'loadedColumns';

class LoadedColumnsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    { kind, extensions }: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    const column = extensions?.['pothosExposedField'];
    if (kind !== 'PrismaObject' || typeof column !== 'string') return resolver;
    return (row, args, context, info) => {
      const value = (row as Record<string, unknown>)[column];
      return value === undefined ? resolver(row, args, context, info) : value;
    };
  }
}

SchemaBuilder.registerPlugin(loadedColumns, LoadedColumnsPlugin);
