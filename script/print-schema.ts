// Writes schema.graphql from the code-first schema.
import { writeFileSync } from 'node:fs';
import { printPublicSchema } from '../src/surfaces/graphql/print-schema.js';

writeFileSync(new URL('../schema.graphql', import.meta.url), printPublicSchema());
