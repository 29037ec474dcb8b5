// Writes schema.graphql from the code-first schema, and from it what the client knows of the API.
import { writeFileSync } from 'node:fs';
import { printPublicSchema } from '../src/surfaces/graphql/print-schema.js';
import { operationsFile, printClientOperations } from './client-operations.js';

const schema = printPublicSchema();
writeFileSync(new URL('../schema.graphql', import.meta.url), schema);
writeFileSync(operationsFile, await printClientOperations(schema));
