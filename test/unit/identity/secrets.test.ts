// A secret that comes again and again is hashed once a second, and no memory of secrets grows or lasts.
import { expect, test } from 'vitest';
import { createSecretHasher, hashSecret } from '../../../src/identity/secrets.js';

function countingHasher() {
  const hashed: string[] = [];
  const hashOf = createSecretHasher((secret) => {
    hashed.push(secret);
    return hashSecret(secret);
  });
  return { hashed, hashOf };
}

const at = (ms: number): Date => new Date(Date.parse('2026-01-31T09:30:00Z') + ms);

test('each secret has its own hash, the same as ever, and is hashed once a second', () => {
  const { hashed, hashOf } = countingHasher();
  for (const ms of [0, 1, 500, 999]) {
    for (const secret of ['spk_one', 'spk_two', '']) expect(hashOf(secret, at(ms))).toBe(hashSecret(secret));
  }
  expect(hashed).toEqual(['spk_one', 'spk_two', '']);
  expect(hashOf('spk_one', at(1000))).toBe(hashSecret('spk_one'));
  expect(hashed).toEqual(['spk_one', 'spk_two', '', 'spk_one']);
});

test('a flood of secrets is not remembered', () => {
  const { hashed, hashOf } = countingHasher();
  for (let number = 0; number < 5000; number += 1) hashOf(`spk_${number}`, at(0));
  for (let number = 0; number < 5000; number += 1) hashOf(`spk_${number}`, at(0));
  expect(hashed.length).toBeGreaterThan(8900);
});
