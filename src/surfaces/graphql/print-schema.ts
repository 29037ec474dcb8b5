// Prints the code-first schema as SDL: what schema.graphql at the project's root holds.
import { lexicographicSortSchema, printSchema } from 'graphql';
import type { RelationSource } from './builder.js';
import { createSchema } from './schema.js';

/** The whole public schema, sorted, with its descriptions. Needs no store: a schema is built without asking any. */
export const printPublicSchema = (): string =>
  `${printSchema(lexicographicSortSchema(createSchema({} as RelationSource)))}\n`;
