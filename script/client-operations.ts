// Makes src/client/operations.ts: the client's operations as text, each with the types of its variables and its data.
import { readFile } from 'node:fs/promises';
import { codegen } from '@graphql-codegen/core';
import * as typescriptOperations from '@graphql-codegen/typescript-operations';
import { Kind, parse, print, stripIgnoredCharacters, visit, type DefinitionNode, type DocumentNode } from 'graphql';
import { format, resolveConfig } from 'prettier';

const documentsFile = new URL('../src/client/operations.graphql', import.meta.url);
const schemaFile = new URL('../schema.graphql', import.meta.url);
export const operationsFile = new URL('../src/client/operations.ts', import.meta.url);

const head = `// Made by \`npm run schema\` out of schema.graphql and operations.graphql: change those.

/** The text of an operation, and what the compiler knows about it. */
export type Operation<Data, Variables> = string & { readonly types?: (variables: Variables) => Data };

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };
`;

const capitalize = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

/** Names of the fragments that a definition spreads, directly. */
function spreadsOf(definition: DefinitionNode): string[] {
  const names = new Set<string>();
  visit(definition, { FragmentSpread: ({ name }) => void names.add(name.value) });
  return [...names];
}

/** Every definition as one constant, in which fragments are the constants before it. */
function textsOf({ definitions }: DocumentNode): string {
  const lines = definitions.map((definition) => {
    const text = JSON.stringify(stripIgnoredCharacters(print(definition)));
    if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      if (spreadsOf(definition).length > 0) throw new Error(`${definition.name.value}: no fragments in fragments`);
      return `const ${definition.name.value} = ${text};`;
    }
    if (definition.kind !== Kind.OPERATION_DEFINITION || !definition.name) throw new Error('Operations have names.');
    const name = definition.name.value;
    const type = capitalize(name) + capitalize(definition.operation);
    const whole = [text, ...spreadsOf(definition)].join(' + ');
    return `export const ${name}Operation: Operation<${type}, ${type}Variables> = ${whole};`;
  });
  return lines.join('\n');
}

/** @throws Error when an operation does not fit the schema */
export async function printClientOperations(schemaText?: string): Promise<string> {
  const document = parse(await readFile(documentsFile, 'utf8'));
  const types = await codegen({
    filename: 'operations.ts',
    schema: parse(schemaText ?? (await readFile(schemaFile, 'utf8'))),
    documents: [{ location: 'operations.graphql', document }],
    config: {},
    plugins: [
      {
        typescriptOperations: {
          scalars: { ID: 'string', DateTime: 'string', JSONObject: 'JsonObject' },
          strictScalars: true,
          skipTypename: true,
          dedupeFragments: true,
        },
      },
    ],
    pluginMap: { typescriptOperations },
  });
  const options = await resolveConfig(operationsFile);
  return await format(`${head}\n${types}\n${textsOf(document)}\n`, { ...options, parser: 'typescript' });
}
