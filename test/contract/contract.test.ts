// The public contract is contained in our schema, exactly: names, arguments, defaults, nullability.
import { readFileSync } from 'node:fs';
import {
  buildSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { printPublicSchema } from '../../src/surfaces/graphql/print-schema.js';

/** What the contract promises and a later version brings. An entry that is built already makes a test fail. */
const notYetBuilt = new Set<string>();

const describeArgument = (argument: GraphQLArgument | GraphQLInputField): string =>
  `${argument.name}: ${String(argument.type)}${argument.defaultValue === undefined ? '' : ` = ${JSON.stringify(argument.defaultValue)}`}`;

/** Every promise of a type as one line each, so that a difference reads like one. */
function describeType(type: GraphQLNamedType): string[] {
  if (isEnumType(type)) return type.getValues().map((value) => `${type.name}.${value.name}`);
  if (isInputObjectType(type)) {
    return Object.values(type.getFields()).map((field) => `${type.name}.${describeArgument(field)}`);
  }
  if (!isObjectType(type) && !isInterfaceType(type)) return [];
  const fields = Object.values(type.getFields()).map((field) => {
    const args = field.args.map(describeArgument).sort().join(', ');
    return `${type.name}.${field.name}(${args}): ${String(field.type)}`;
  });
  return [...fields, ...type.getInterfaces().map((parent) => `${type.name} implements ${parent.name}`)];
}

const describeSchema = (schema: GraphQLSchema): string[] =>
  Object.values(schema.getTypeMap())
    .filter((type) => !type.name.startsWith('__'))
    .flatMap((type) => [`type ${type.name}: ${type.constructor.name}`, ...describeType(type)]);

const isPending = (line: string): boolean => {
  const name = line.replace(/^type /, '').match(/^[A-Za-z]+(\.[A-Za-z]+)?/)?.[0] ?? '';
  return notYetBuilt.has(name) || notYetBuilt.has(name.split('.')[0] ?? '');
};

const contract = buildSchema(readFileSync(new URL('contract.graphql', import.meta.url), 'utf8'));
const printed = printPublicSchema();
const ours = buildSchema(printed);

describe('the public contract', () => {
  it('is contained in the schema with every type, field, argument, default and nullability', () => {
    const promised = describeSchema(contract).filter((line) => !isPending(line));
    const kept = new Set(describeSchema(ours));
    expect(promised.length).toBeGreaterThan(200);
    expect(promised.filter((line) => !kept.has(line))).toEqual([]);
  });

  it('lists nothing as not yet built that is there', () => {
    const kept = describeSchema(ours);
    expect(kept.filter(isPending)).toEqual([]);
  });

  it('lets no input carry an owner, a user, a tenant or an id that the server makes', () => {
    const byDesign = ['DeleteUserInput.userId', 'DeleteViewerInput.confirmUserId'];
    const inputs = Object.values(ours.getTypeMap()).flatMap((type) => {
      if (isInputObjectType(type)) return Object.keys(type.getFields()).map((field) => `${type.name}.${field}`);
      if (!isObjectType(type)) return [];
      return Object.values(type.getFields()).flatMap((field) =>
        field.args.map((argument) => `${type.name}.${field.name}.${argument.name}`),
      );
    });
    const suspicious = inputs.filter((name) => /owner|user|tenant/i.test(name.split('.').at(-1) ?? ''));
    expect(suspicious.sort()).toEqual(byDesign);
    const madeIds = inputs.filter((name) =>
      /^Create\w+Input\.(id|\w*[sS]cratchpadId|entryId|messageId|apiKeyId)$/.test(name),
    );
    // The scratchpad that a token is for is there already.
    expect(madeIds).toEqual(['CreateAgentTokenInput.scratchpadId']);
  });

  it('is printed in schema.graphql as the code has it', () => {
    const committed = readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8');
    expect(committed, 'schema.graphql is stale: run `npm run schema`').toBe(printed);
  });
});
