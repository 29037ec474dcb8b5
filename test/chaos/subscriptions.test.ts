// Subscribers that behave badly: they read nothing, or they come and go a thousand times. The servers pay for neither.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startArena, type Arena } from './support/arena.js';
import { cycleSubscriptions } from './support/open-and-drop.js';
import { starveReaders } from './support/stalled-readers.js';

let folder: string;
let arena: Arena;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scratchpad-chaos-'));
  arena = await startArena({ folder, inspect: true });
});
afterAll(async () => {
  await arena.close();
  await rm(folder, { recursive: true, force: true });
});

it('ends a subscriber that reads nothing with SUBSCRIBER_TOO_SLOW, while memory stays flat', async () => {
  const { problems } = await starveReaders(arena, { forMs: 10_000 });
  expect(problems).toEqual([]);
}, 600_000);

it('holds after a thousand subscriptions that were dropped at any moment what it held before', async () => {
  const { problems } = await cycleSubscriptions(arena, { cycles: 1000, seed: 1 });
  expect(problems).toEqual([]);
}, 600_000);

it('has had servers that ended when they were told to, and logged no error', async () => {
  expect(await arena.stopServers()).toEqual([]);
});
