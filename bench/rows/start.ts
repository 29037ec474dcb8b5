// From the start of the process to the first good answer of /readyz, with embedded stores, once they exist.
import { join } from 'node:path';
import type { Plan } from '../rounds.js';
import { startServer } from '../server-process.js';
import { median, type Row } from '../table.js';
import { freePort, mainProgram, type World } from '../world.js';

export async function measureStart(world: World, plan: Plan): Promise<Row[]> {
  const start = async (): Promise<number> => {
    const startedAt = performance.now();
    const server = await startServer({
      program: mainProgram,
      port: await freePort(),
      environment: { DATA_DIR: join(world.directory, 'embedded') },
      logFile: join(world.directory, 'embedded.log'),
    });
    const seconds = (performance.now() - startedAt) / 1000;
    await server.stop();
    return seconds;
  };
  const first = await start();
  const later: number[] = [];
  for (let round = 0; round < Math.min(plan.rounds, 5); round += 1) later.push(await start());
  return [
    {
      what: 'start to ready, embedded, second start',
      against: '-',
      measure: 's',
      ours: median(later),
      result: median(later),
      aim: { below: 3 },
      beside: { 'first start s': first },
    },
  ];
}
