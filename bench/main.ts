// Measures everything and prints one table. script/bench builds first; --quick, --only <name>, --json <file>, --cpu-prof <folder>.
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { measureAppend } from './rows/append.js';
import { measureDelivery } from './rows/delivery.js';
import { measureFanOut } from './rows/fan-out.js';
import { measureIdleSubscriptions } from './rows/idle-subscriptions.js';
import { measureLedger } from './rows/ledger.js';
import { measureMemory } from './rows/memory.js';
import { measureProcesses } from './rows/processes.js';
import { measureReads } from './rows/reads.js';
import { measureStart } from './rows/start.js';
import type { Plan } from './rounds.js';
import { formatTable, isMet, type Row } from './table.js';
import { createWorld, type World } from './world.js';

const measurements: Record<string, (world: World, plan: Plan) => Promise<Row[]>> = {
  append: measureAppend,
  reads: measureReads,
  'fan-out': measureFanOut,
  'idle-subscriptions': measureIdleSubscriptions,
  delivery: measureDelivery,
  ledger: measureLedger,
  start: measureStart,
  memory: measureMemory,
  processes: measureProcesses,
};

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: Object.keys(measurements) },
    json: { type: 'string', default: 'bench/results/latest.json' },
    'cpu-prof': { type: 'string' },
  },
});
const plan: Plan = options.quick ? { rounds: 2, share: 0.15, warmUpShare: 0.4 } : { rounds: 7, share: 1 };
const say = (text: string): void => void process.stderr.write(`${text}\n`);

const machine = {
  processor: cpus()[0]?.model ?? 'unknown',
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
};
const startedAt = performance.now();
const rows: Row[] = [];
const profile = options['cpu-prof'];
const minutes = (): number => Math.round((performance.now() - startedAt) / 6000) / 10;
async function save(): Promise<void> {
  const judged = rows.map((row) => ({ ...row, met: isMet(row) }));
  await mkdir(dirname(options.json), { recursive: true });
  await writeFile(options.json, `${JSON.stringify({ machine, plan, minutes: minutes(), rows: judged }, null, 2)}\n`);
}

for (const name of options.only) {
  const measure = measurements[name];
  if (!measure) throw new Error(`There is no measurement named ${name}: ${Object.keys(measurements).join(', ')}`);
  say(`==> ${name}`);
  // Stores of its own for each: no measurement reads what another one left.
  const world = await createWorld(profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', resolve(profile)]);
  try {
    rows.push(...(await measure(world, plan)));
    // After each, so that an interrupted run has something to show.
    await save();
  } finally {
    await world.close();
  }
}
process.stdout.write(`${formatTable(rows)}\n`);
say(`${machine.processor}, ${machine.cores} cores, Node ${machine.node}; ${minutes()} minutes; ${options.json}`);
