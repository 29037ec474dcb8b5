// The short form of script/chaos: one round of faults, judged as the long ones are.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startArena, type Arena } from './support/arena.js';
import { createRecorder } from './support/recorder.js';
import { playRound } from './support/round.js';

let folder: string;
let arena: Arena;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scratchpad-chaos-'));
  arena = await startArena({ folder });
});
afterAll(async () => {
  await arena.close();
  await rm(folder, { recursive: true, force: true });
});

it('keeps every promise while servers, Redis and PostgreSQL are killed, frozen and cut off', async () => {
  const recorder = await createRecorder(folder);
  const { problems, ...figures } = await playRound({
    arena,
    recorder,
    seed: 'short',
    lengthMs: 30_000,
    now: () => performance.now(),
  });
  await recorder.close();
  expect([...problems, ...(await arena.stopServers())]).toEqual([]);
  // It was a round in which something happened.
  expect(figures.entries).toBeGreaterThan(200);
  expect(figures.faults.length).toBeGreaterThan(8);
  expect(figures.livesAcknowledged).toBeGreaterThan(50);
}, 400_000);
