// script/chaos: rounds of faults for as long as asked for, with progress, figures and a verdict. `script/chaos --help` says how.
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { administratorSecret } from '../support/cluster.js';
import { startArena, type Arena } from './support/arena.js';
import { cycleSubscriptions } from './support/open-and-drop.js';
import { createRecorder } from './support/recorder.js';
import { playRound, type RoundResult } from './support/round.js';
import { starveReaders } from './support/stalled-readers.js';

interface Options {
  minutes: number;
  seed: number;
  keep: boolean;
  out?: string;
}

const longestRoundMs = 60_000;
/** What a round needs beside its faults: recovery, reading everything back, doctor. */
const shortestRoundMs = 10_000;
const stalledMs = 60_000;
const dropCycles = 1000;

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const begin = performance.now();
const now = (): number => performance.now() - begin;
const clock = (): string => `${(now() / 1000).toFixed(1).padStart(7)}s`;

const positive = (text: string): number => {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('Give a number above 0.');
  return value;
};
const whole = (text: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Give a whole number.');
  return Number(text);
};

function tellRound(number: number, result: RoundResult): void {
  const { requests, problems, faults, interruptions } = result;
  const lines = [
    `round ${number}: ${problems.length === 0 ? 'kept' : `${problems.length} PROBLEMS`}`,
    `${faults.length} faults, recovered in ${Math.round(result.recoveryMs)} ms; this process itself stood still for ${Math.round(result.ownStallMs)} ms at most`,
    `${requests.sent} requests, longest ${Math.round(requests.longestMs)} ms (${requests.longest}), ${requests.lost} without an answer, refused ${JSON.stringify(requests.refused)}`,
    `${result.appendsAcknowledged} appends, ${result.setsAcknowledged} rewrites, ${result.livesAcknowledged} creations and deletions acknowledged`,
    `ledger of ${result.entries}, ${result.eventsReceived} events received, subscribers interrupted ${JSON.stringify(interruptions)}`,
  ];
  print(`${clock()}  ${lines.join(`\n${' '.repeat(10)}`)}`);
  for (const problem of problems) print(`${clock()}  PROBLEM  ${problem}`);
}

/** Leaves both stores running, and says where they are and how they are ended. */
async function leaveStores({ cluster }: Arena, folder: string): Promise<void> {
  const [redis, postgres] = [await cluster.redis.leaveRunning(), await cluster.postgres.leaveRunning()];
  const stores = {
    databaseUrl: cluster.databaseUrl,
    redisUrl: cluster.redis.url,
    administratorSecret,
    stop: [redis.stopCommand, postgres.stopCommand],
    folders: [redis.directory, postgres.directory],
  };
  await writeFile(join(folder, 'stores.json'), `${JSON.stringify(stores, null, 2)}\n`);
  print('');
  print(`PostgreSQL  ${stores.databaseUrl}`);
  print(`Redis       ${stores.redisUrl}`);
  print(
    `A server    PORT=0 ADMIN_API_KEY=${administratorSecret} DATABASE_URL=${stores.databaseUrl} REDIS_URL=${stores.redisUrl} node dist/main.js`,
  );
  print(`To end them ${stores.stop.join('; ')}; rm -r ${stores.folders.join(' ')}`);
}

async function run(options: Options): Promise<boolean> {
  const folder = options.out === undefined ? await mkdtemp(join(tmpdir(), 'scratchpad-chaos-')) : resolve(options.out);
  await mkdir(folder, { recursive: true });
  print(`seed ${options.seed}, ${options.minutes} minutes of faults; everything that was seen goes to ${folder}`);
  const recorder = await createRecorder(folder);
  const arena = await startArena({ folder, inspect: true });
  const problems: string[] = [];
  const totals = { rounds: 0, faults: 0, requests: 0, longestMs: 0, lost: 0 };
  try {
    print(`${clock()}  two servers answer; now subscribers that read nothing for ${stalledMs / 1000} s`);
    const starved = await starveReaders(arena, { forMs: stalledMs });
    print(`${clock()}  ${starved.problems.length === 0 ? 'kept' : 'PROBLEMS'}: ${starved.figures}`);
    print(`${clock()}  now ${dropCycles} subscriptions that are opened and dropped`);
    const dropped = await cycleSubscriptions(arena, { cycles: dropCycles, seed: options.seed });
    print(`${clock()}  ${dropped.problems.length === 0 ? 'kept' : 'PROBLEMS'}: ${dropped.figures}`);
    problems.push(...starved.problems, ...dropped.problems);
    for (const problem of problems) print(`${clock()}  PROBLEM  ${problem}`);

    let leftMs = options.minutes * 60_000;
    while (leftMs > 0) {
      const number = (totals.rounds += 1);
      const lengthMs = leftMs < longestRoundMs + shortestRoundMs ? leftMs : longestRoundMs;
      leftMs -= lengthMs;
      print(`${clock()}  round ${number}, ${Math.round(lengthMs / 1000)} s of faults`);
      const result = await playRound({
        arena,
        recorder,
        seed: `${options.seed}-${number}`,
        lengthMs,
        now,
        onProgress: (step) => print(`${clock()}  ${step}`),
        onFault: ({ kind, lastsMs, server }) =>
          print(
            `${clock()}  ${kind}${kind.startsWith('server') ? ` (${server + 1})` : ''}${lastsMs > 0 ? `, for ${lastsMs} ms` : ''}`,
          ),
      });
      tellRound(number, result);
      problems.push(...result.problems);
      totals.faults += result.faults.length;
      totals.requests += result.requests.sent;
      totals.lost += result.requests.lost;
      totals.longestMs = Math.max(totals.longestMs, result.requests.longestMs);
    }
    const generations = arena.servers.reduce((sum, server) => sum + server.generations, 0);
    const complaints = await arena.stopServers();
    for (const complaint of complaints) print(`${clock()}  PROBLEM  ${complaint}`);
    problems.push(...complaints);
    await recorder.close();
    print('');
    print(`seed          ${options.seed}`);
    print(`faults        ${totals.faults} in ${totals.rounds} rounds; ${generations} server processes`);
    print(
      `requests      ${totals.requests}, ${totals.lost} without an answer, the longest ${Math.round(totals.longestMs)} ms`,
    );
    print(`acknowledged  ${recorder.counts.acknowledged} operations, in ${join(folder, 'acknowledged.jsonl')}`);
    print(`received      ${recorder.counts.received} events, in ${join(folder, 'received.jsonl')}`);
    print(`verdict       ${problems.length === 0 ? 'every promise was kept' : `${problems.length} PROBLEMS`}`);
    if (options.keep) await leaveStores(arena, folder);
  } finally {
    await arena.close();
  }
  return problems.length === 0;
}

// An exit takes the servers and the stores along; a signal by itself would not.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const command = new Command('chaos')
  .description(
    'Two real servers over one PostgreSQL and one Redis, writers and subscribers, and faults out of a seed. Ends with 0 when every promise was kept.',
  )
  .option('--minutes <number>', 'of faults', positive, 5)
  .option('--seed <number>', 'repeats the plan of faults and the choices of the clients', whole, Date.now() % 1_000_000)
  .option('--out <folder>', 'for acknowledged.jsonl, received.jsonl and the logs; without it a new temporary one')
  .option('--keep', 'leaves the stores running, and prints their addresses and how to end them', false)
  .action(async (options: Options) => {
    process.exit((await run(options)) ? 0 : 1);
  });
await command.parseAsync();
