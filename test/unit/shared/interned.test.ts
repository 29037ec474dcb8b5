// What is made once for each key, for as long as somebody holds it.
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createInterned } from '../../../src/shared/interned.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
setFlagsFromString('--no-expose-gc');

test('equal keys are one object, different keys are different ones', () => {
  const interned = createInterned<{ name: string }>();
  const one = interned('a', () => ({ name: 'first' }));
  expect(interned('a', () => ({ name: 'second' }))).toBe(one);
  expect(interned('b', () => ({ name: 'other' }))).toEqual({ name: 'other' });
});

test('keeps nothing that nobody holds, and makes it anew', async () => {
  const interned = createInterned<{ name: string }>();
  // Made in a function of its own: this one keeps what it has touched while it waits.
  const makeFirst = () => new WeakRef(interned('a', () => ({ name: 'first' })));
  const first = makeFirst();
  // What a turn has touched lives until its end.
  await delay(10);
  collectGarbage();
  expect(first.deref()).toBeUndefined();
  expect(interned('a', () => ({ name: 'second' }))).toEqual({ name: 'second' });
});
