// A plugin for Pothos: within one operation, one place in the answer has one path object. GraphQL.js has it so; compiled operations make the path
// of each field anew, and the Prisma plugin, which remembers by that object what was loaded, would load it again.
import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver, GraphQLResolveInfo } from 'graphql';
import { isPlanned } from './selected-fields.js';

type Path = GraphQLResolveInfo['path'];

declare global {
  // eslint-disable-next-line typescript/no-namespace
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      stablePaths: StablePathsPlugin<Types>;
    }
  }
}

interface Place {
  path: Path | undefined;
  below: Map<string | number, Place>;
}

/** By the context, of which each operation has its own. */
const roots = new WeakMap<object, Place>();

function placeOf(root: Place, path: Path): Place {
  const above = path.prev === undefined ? root : placeOf(root, path.prev);
  let place = above.below.get(path.key);
  if (place === undefined) {
    place = { path: { prev: above.path, key: path.key, typename: path.typename }, below: new Map() };
    above.below.set(path.key, place);
  }
  return place;
}

function stablePath(context: object, path: Path): Path {
  // GraphQL.js names the type in each path, the compiler does not.
  if (path.typename !== undefined) return path;
  let root = roots.get(context);
  if (root === undefined) {
    root = { path: undefined, below: new Map() };
    roots.set(context, root);
  }
  return placeOf(root, path).path ?? path;
}

export const stablePaths = 'stablePaths';

class StablePathsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    field: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    // The paths of planned fields are remembered; no other field has a use for one.
    if (field.kind !== 'PrismaObject' || !isPlanned(field)) return resolver;
    return (parent, args, context, info) =>
      resolver(parent, args, context, Object.assign(info, { path: stablePath(context, info.path) }));
  }
}

SchemaBuilder.registerPlugin(stablePaths, StablePathsPlugin);
