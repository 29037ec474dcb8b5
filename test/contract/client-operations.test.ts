// What the client knows of the API is what the schema says: its operations fit, and their types are those of today.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { operationsFile, printClientOperations } from '../../script/client-operations.js';
import { printPublicSchema } from '../../src/surfaces/graphql/print-schema.js';

const printed = printPublicSchema();

describe("the client's operations", () => {
  it('are in operations.ts as the schema of the code and operations.graphql have them', async () => {
    const committed = readFileSync(operationsFile, 'utf8');
    const fresh = await printClientOperations(printed);
    expect(committed, 'src/client/operations.ts is stale: run `npm run schema`').toBe(fresh);
  });

  it('change with a type of the schema', async () => {
    const committed = readFileSync(operationsFile, 'utf8');
    const other = printed.replace(/(type ScratchpadContent \{[\s\S]*?)version: String!/, '$1version: Int');
    expect(other).not.toBe(printed);
    expect(await printClientOperations(other)).not.toBe(committed);
  });

  it('cannot be made of a schema that they do not fit', async () => {
    const other = printed.replaceAll('clearScratchpadEntries', 'emptyScratchpadEntries');
    await expect(printClientOperations(other)).rejects.toThrow('clearScratchpadEntries');
  });
});
