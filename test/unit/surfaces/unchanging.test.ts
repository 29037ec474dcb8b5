// What never changes is made into JSON once for each selection, and never told where GraphQL.js would tell something else.
import {
  execute,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  parse,
  type ExecutionResult,
} from 'graphql';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, it } from 'vitest';
import { stringify } from '../../../src/surfaces/graphql/answer-text.js';
import { createCompiledExecution } from '../../../src/surfaces/graphql/compiled-execution.js';
import { unchanging } from '../../../src/surfaces/graphql/unchanging.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
setFlagsFromString('--no-expose-gc');

interface Page {
  items: string[];
  total: number;
  odd?: boolean;
}

/** How often an item was looked at. */
let looks = 0;
let pages: Page[] = [];

const item = new GraphQLObjectType<string>({
  name: 'Item',
  fields: {
    text: {
      type: GraphQLString,
      resolve(text) {
        looks += 1;
        return text;
      },
    },
    asker: { type: GraphQLString, resolve: (_item, _args, context: { asker: string }) => context.asker },
  },
});
const page = new GraphQLObjectType<Page>({
  name: 'Page',
  fields: {
    items: { type: new GraphQLList(item) },
    total: { type: new GraphQLNonNull(GraphQLInt), resolve: ({ total, odd }) => (odd ? null : total) },
  },
});
const book = new GraphQLObjectType<number>({
  name: 'Book',
  fields: {
    number: { type: GraphQLInt, resolve: (number) => number },
    page: {
      type: page,
      extensions: unchanging,
      args: { wait: { type: GraphQLInt } },
      resolve(number, { wait }: { wait?: number }) {
        if (number === 13) throw new Error('no such page');
        return wait === undefined ? pages[number] : Promise.resolve(pages[number]);
      },
    },
  },
});
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      book: {
        type: book,
        args: { number: { type: GraphQLInt } },
        resolve: (_root, { number }: { number: number }) => number,
      },
      books: { type: new GraphQLList(book), resolve: () => pages.map((_page, number) => number) },
    },
  }),
});

function createAsking() {
  const compiled = createCompiledExecution({ schema, usesBeforeCompilation: 0 });
  const documents = new Map<string, ReturnType<typeof parse>>();
  return async (query: string, asker = 'Alice', variableValues = {}): Promise<unknown> => {
    const document = documents.get(query) ?? parse(query);
    documents.set(query, document);
    const tell = async (result: ExecutionResult | Promise<ExecutionResult>): Promise<unknown> =>
      JSON.parse(stringify(await result).json);
    const told = await tell(compiled({ schema, document, variableValues, contextValue: { asker } }));
    const looksBefore = looks;
    expect(told).toEqual(await tell(execute({ schema, document, variableValues, contextValue: { asker } })));
    looks = looksBefore;
    return told;
  };
}

let ask: ReturnType<typeof createAsking>;
beforeEach(() => {
  looks = 0;
  pages = [
    { items: ['a', 'b "c"'], total: 2 },
    { items: [], total: 0 },
  ];
  ask = createAsking();
});

const texts = '{ book(number: 0) { page { items { text } total } } }';

describe('a value that does not change', () => {
  it('is looked at when it is asked for again, and then not any more', async () => {
    const first = await ask(texts);
    expect(await ask(texts)).toEqual(first);
    expect(looks).toBe(4);
    expect(await ask(texts)).toEqual(first);
    expect(await ask(texts)).toEqual(first);
    expect(looks).toBe(4);
  });

  it('is looked at again where another one has taken its place', async () => {
    for (let time = 0; time < 3; time += 1) await ask(texts);
    pages[0] = { items: ['new'], total: 1 };
    expect(await ask(texts)).toEqual({ data: { book: { page: { items: [{ text: 'new' }], total: 1 } } } });
    expect(looks).toBe(5);
  });

  it.each([
    ['nothing else', '{ book(number: 0) { page { total } } }'],
    ['what comes later', '{ book(number: 0) { page(wait: 1) { items { text } } number } }'],
    [
      'several of it',
      '{ book(number: 0) { a: page { total } b: page { items { text } } page { items { t: text } } } }',
    ],
    [
      'several pieces of it',
      '{ book(number: 0) { page { total } ...A page { items { text } } } } fragment A on Book { page { ...B } } fragment B on Page { items { text again: text } }',
    ],
    ['each of a list', '{ books { number page { total items { text } } } }'],
    ['what is not there', '{ book(number: 7) { number page { total } } }'],
    ['what fails', '{ book(number: 13) { number page { total } } }'],
  ])('is told as GraphQL.js tells it: %s', async (_name, query) => {
    for (let time = 0; time < 3; time += 1) expect(await ask(query)).toHaveProperty('data');
  });

  it('is told by GraphQL.js where something of it is wrong', async () => {
    pages[0] = { items: [], total: 1, odd: true };
    expect(await ask(texts)).toMatchObject({
      data: { book: { page: null } },
      errors: [{ message: 'Cannot return null for non-nullable field Page.total.', path: ['book', 'page', 'total'] }],
    });
  });

  it('is told by GraphQL.js where it depends on who asks', async () => {
    const query = '{ book(number: 0) { page { items { asker } } } }';
    for (const asker of ['Alice', 'Bob', 'Alice']) {
      expect(await ask(query, asker)).toEqual({ data: { book: { page: { items: [{ asker }, { asker }] } } } });
    }
  });
});

describe('what is remembered is bounded', () => {
  const long = 'x'.repeat(100_000);

  it('by leaving out what is long', async () => {
    pages[0] = { items: [long, long, long], total: 3 };
    for (let time = 0; time < 4; time += 1) await ask(texts);
    expect(looks).toBe(12);
  });

  it('by forgetting what was told longest ago', async () => {
    pages = Array.from({ length: 60 }, (_, index) => ({ items: [`${index} ${long}`], total: 1 }));
    const one = 'query ($number: Int) { book(number: $number) { page { items { text } } } }';
    for (const number of [...pages.keys(), ...pages.keys()]) await ask(one, 'Alice', { number });
    looks = 0;
    await ask(one, 'Alice', { number: 59 });
    expect(looks).toBe(0);
    await ask(one, 'Alice', { number: 0 });
    expect(looks).toBe(1);
  });

  it('by letting go of values that nobody holds', async () => {
    const query = '{ book(number: 0) { page { total } } }';
    for (let time = 0; time < 3; time += 1) await ask(query);
    const value = new WeakRef(pages[0]!);
    pages = [];
    // What a turn has touched lives until its end.
    await delay(10);
    collectGarbage();
    expect(value.deref()).toBeUndefined();
  });

  it('for one operation, however often its aliases repeat it', async () => {
    pages[0] = { items: [long], total: 1 };
    const aliases = Array.from({ length: 90 }, (_, index) => `a${index}: page { items { t${index}: text } }`).join(' ');
    const compiled = createCompiledExecution({ schema, usesBeforeCompilation: 0 });
    const document = parse(`{ book(number: 0) { ${aliases} } }`);
    const { data } = await compiled({ schema, document, contextValue: {} });
    const parts = Object.values((data as { book: Record<string, object> }).book);
    const made = parts.filter((part) => 'json' in part).length;
    expect(parts).toHaveLength(90);
    expect(made).toBeGreaterThan(10);
    expect(made).toBeLessThan(50);
  });
});
