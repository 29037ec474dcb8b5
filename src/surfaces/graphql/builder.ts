// The Pothos builder: plugins, scalars' shapes and defaults. It holds no types.
import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import type PrismaTypes from '../../generated/pothos-prisma-types.js';
import { getDatamodel } from '../../generated/pothos-prisma-types.js';
import type { PrismaClient } from '../../generated/prisma/client.js';
import type { InstantText } from '../../shared/clock.js';
import type { JsonObject } from '../../shared/json.js';
import type { Context } from './context.js';
import { loadedRows } from './loaded-rows.js';
import { stablePaths } from './stable-paths.js';

export interface SchemaTypes {
  Context: Context;
  PrismaTypes: PrismaTypes;
  DefaultFieldNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    DateTime: { Input: Date; Output: Date | InstantText };
    JSONObject: { Input: JsonObject; Output: JsonObject };
  };
}

/** What relations are loaded with. */
export type RelationSource = PrismaClient;

/** @param prisma loads relations that a service's first query did not bring; they cannot leave their parent's tenant */
export function createBuilder(prisma: RelationSource) {
  return new SchemaBuilder<SchemaTypes>({
    // The first is outermost.
    plugins: [loadedRows, stablePaths, PrismaPlugin],
    defaultFieldNullability: false,
    prisma: { client: prisma, dmmf: getDatamodel(), filterConnectionTotalCount: false },
  });
}

export type Builder = ReturnType<typeof createBuilder>;
