// What a document may look like, whoever sends it and over whichever transport: the limits that are checked before anything is executed.
import { EnvelopArmor } from '@escape.tech/graphql-armor';
import type { Plugin } from '@envelop/core';
import {
  GraphQLError,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  TokenKind,
  validate,
  type DocumentNode,
  type Source,
} from 'graphql';

export interface GuardRailLimits {
  /** Levels of fields; fragments add none. */
  maxDepth: number;
  /** Aliased fields, counted each time that a fragment with them is spread. */
  maxAliases: number;
  maxDirectives: number;
  /** Lexical tokens: what parsing and validation cost. Comments have the same limit. */
  maxTokens: number;
  /** Objects in one answer, at most: operation-cost.ts. */
  maxCost: number;
}

export const defaultLimits: GuardRailLimits = {
  maxDepth: 16,
  maxAliases: 30,
  maxDirectives: 50,
  maxTokens: 2000,
  maxCost: 10_000,
};

const maxValidationErrors = 20;
/** Of aliases, operations, variables and fragments, in characters. */
const longestName = 200;

/** Where the string that begins at `start` (on its first quote) ends, exclusively. */
function endOfString(text: string, start: number): number {
  if (text.startsWith('"""', start)) {
    let end = text.indexOf('"""', start + 3);
    while (end > 0 && text[end - 1] === '\\') end = text.indexOf('"""', end + 3);
    return end < 0 ? text.length : end + 3;
  }
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"' || text[at] === '\n' || text[at] === '\r') return at + 1;
  }
  return text.length;
}

const lineEnd = /[\n\r]/g;

/** GraphQL.js makes a token of each comment but counts none of them. */
export function hasMoreComments(text: string, limit: number): boolean {
  // Each comment but the last takes two characters at least.
  if (text.length <= limit * 2) return false;
  const mark = /["#]/g;
  let comments = 0;
  for (let match = mark.exec(text); match; match = mark.exec(text)) {
    if (match[0] === '"') mark.lastIndex = endOfString(text, match.index);
    else {
      comments += 1;
      if (comments > limit) return true;
      lineEnd.lastIndex = match.index;
      mark.lastIndex = lineEnd.exec(text)?.index ?? text.length;
    }
  }
  return false;
}

/** A name comes again for each object of the answer, and in each error: what is one token of the document would be most of that. */
function requireShortNames({ loc }: DocumentNode): void {
  for (let token = loc?.startToken ?? null; token !== null; token = token.next) {
    if (token.kind === TokenKind.NAME && token.end - token.start > longestName) {
      throw new GraphQLError(`Syntax Error: A name has more than ${longestName} characters. Parsing aborted.`);
    }
  }
}

/** Parses and validates within the limits; names of the schema are suggested only when it is open to be read. */
export function useGuardRails(limits: GuardRailLimits, introspection: boolean): Plugin[] {
  const { maxDepth, maxAliases, maxDirectives, maxTokens } = limits;
  const armor = new EnvelopArmor({
    maxDepth: { n: maxDepth, flattenFragments: true, ignoreIntrospection: false },
    maxAliases: { n: maxAliases },
    maxDirectives: { n: maxDirectives },
    // GraphQL.js counts tokens itself, cheaper; its cost knows no page sizes in variables and no default pages.
    maxTokens: { enabled: false },
    costLimit: { enabled: false },
    // Cuts "Did you mean" out of messages by a pattern; GraphQL.js can be told not to look for one.
    blockFieldSuggestion: { enabled: false },
  });
  const parseWithinLimits = (source: string | Source) => {
    const text = typeof source === 'string' ? source : source.body;
    if (hasMoreComments(text, maxTokens)) {
      throw new GraphQLError(`Syntax Error: Document contains more than ${maxTokens} comments. Parsing aborted.`);
    }
    const document = parse(source, { maxTokens });
    requireShortNames(document);
    return document;
  };
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const validateWithinLimits: typeof validate = (schema, document, armorRules = []) => {
    // First the limits alone: the other rules may cost more than a document over them is worth.
    const refused = validate(schema, document, armorRules);
    if (refused.length > 0) return refused;
    return validate(schema, document, rules, { maxErrors: maxValidationErrors, hideSuggestions: !introspection });
  };
  return [
    ...armor.protect().plugins,
    {
      onParse: ({ setParseFn }) => setParseFn(parseWithinLimits),
      onValidate: ({ setValidationFn }) => setValidationFn(validateWithinLimits),
    },
  ];
}
