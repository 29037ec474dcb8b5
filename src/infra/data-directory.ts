// One process at a time in a data directory: a second one would destroy the embedded stores.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { link, mkdir, readdir, readFile, readlink, stat, unlink, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';

const heartbeatMs = 1000;
/** How long a lock of another machine may be silent before it counts as left behind. */
const silenceMs = 5000;

const holderSchema = z.object({
  pid: z.number(),
  /** When the process started, in the words of its machine: a process id alone is used again. */
  startedAt: z.string(),
  /** Where process ids mean the same: one boot of one machine, one container. */
  machine: z.string(),
  hostName: z.string(),
  since: z.string(),
});

type Holder = z.infer<typeof holderSchema>;

export interface DataDirectoryLock {
  /** Gives the directory free. Safe to call twice. */
  release(): Promise<void>;
}

/** Somebody else lives in the directory; the message says who, and the ways out. */
export class DataDirectoryInUseError extends Error {
  override readonly name = 'DataDirectoryInUseError';
}

/**
 * Creates the directory if it is missing, and locks it for this process. A lock whose process is gone is taken over: at
 * once on the same machine, after five silent seconds when it was left by another one (a container that is no more).
 *
 * A lock is a file named by a number, and the highest number holds. Nobody removes the highest file, and a file is made
 * whole or not at all, so two starters that both find a dead holder cannot both succeed it.
 * @param options.onLost called when another machine took the directory over, because this process was silent (suspended)
 * @throws DataDirectoryInUseError
 */
export async function lockDataDirectory(
  directory: string,
  { onLost }: { onLost?: () => void } = {},
): Promise<DataDirectoryLock> {
  const locks = join(directory, 'lock');
  await mkdir(locks, { recursive: true, mode: 0o700 });
  const holder = await describeThisProcess();
  for (;;) {
    const [highest = 0] = await lockNumbers(locks);
    if (highest > 0) await refuseWhileAlive(directory, join(locks, String(highest)));
    const own = await createLock(locks, highest + 1, holder);
    if (own !== undefined) return keep(locks, own, onLost);
  }
}

/** @returns the number, or undefined when somebody else was faster */
async function createLock(locks: string, number: number, holder: Holder): Promise<number | undefined> {
  const draft = join(locks, `draft-${randomUUID()}`);
  await writeFile(draft, JSON.stringify(holder), { mode: 0o600 });
  try {
    await link(draft, join(locks, String(number)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw error;
  } finally {
    await unlink(draft);
  }
  // Between the look and the step others may have come and gone, and this number may be one of the past.
  const numbers = await lockNumbers(locks);
  if (numbers[0] !== number) {
    await unlink(join(locks, String(number)));
    return undefined;
  }
  await Promise.all(numbers.slice(1).map((past) => unlinkIfThere(join(locks, String(past)))));
  return number;
}

function keep(locks: string, number: number, onLost: (() => void) | undefined): DataDirectoryLock {
  const file = join(locks, String(number));
  const beat = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') return;
      clearInterval(beat);
      onLost?.();
    });
  }, heartbeatMs);
  beat.unref();
  return {
    release: async () => {
      clearInterval(beat);
      // Emptied, not removed: the highest number stays, for the reason above.
      const stillOurs = (await lockNumbers(locks))[0] === number;
      if (stillOurs) await writeFile(file, '');
    },
  };
}

async function refuseWhileAlive(directory: string, file: string): Promise<void> {
  const holder = await readHolder(file);
  if (holder === undefined || !(await isAlive(holder, file))) return;
  throw new DataDirectoryInUseError(
    `The data directory ${resolve(directory)} is in use by process ${holder.pid} on ${holder.hostName} since ` +
      `${holder.since}. One process at a time: stop that one, choose another DATA_DIR, or set DATABASE_URL and REDIS_URL.`,
  );
}

/** @returns undefined for a lock that was released, was cut off by a power failure, or has just been succeeded */
async function readHolder(file: string): Promise<Holder | undefined> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return undefined;
  }
}

async function isAlive(holder: Holder, file: string): Promise<boolean> {
  if (holder.machine === (await describeMachine())) return (await startOfProcess(holder.pid)) === holder.startedAt;
  const before = await heartbeat(file);
  const deadline = Date.now() + silenceMs;
  while (Date.now() < deadline) {
    await sleep(heartbeatMs / 4);
    if ((await heartbeat(file)) !== before) return true;
  }
  return false;
}

/** The clock of the file is compared with itself only: those of two machines differ. */
const heartbeat = async (file: string): Promise<number> => (await stat(file).catch(() => undefined))?.mtimeMs ?? 0;

const describeThisProcess = async (): Promise<Holder> => ({
  pid: process.pid,
  startedAt: (await startOfProcess(process.pid)) ?? '',
  machine: await describeMachine(),
  hostName: hostname(),
  since: new Date().toISOString(),
});

async function describeMachine(): Promise<string> {
  if (process.platform !== 'linux') return hostname();
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
  return `${boot.trim()} ${await readlink('/proc/self/ns/pid').catch(hostname)}`;
}

/** @returns undefined when no such process runs; a zombie does not run */
async function startOfProcess(pid: number): Promise<string | undefined> {
  try {
    if (process.platform !== 'linux') {
      const { stdout } = await promisify(execFile)('/bin/ps', ['-o', 'lstart=', '-p', String(pid)], {
        env: { LC_ALL: 'C' },
      });
      return stdout.trim() || undefined;
    }
    // The name in brackets may contain anything; the state is the first field after it, the start the twentieth.
    const line = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

async function lockNumbers(locks: string): Promise<number[]> {
  const names = await readdir(locks);
  return names
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => b - a);
}

async function unlinkIfThere(file: string): Promise<void> {
  await unlink(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}
