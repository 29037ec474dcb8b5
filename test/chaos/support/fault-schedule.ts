// Which faults happen when: a plan that a seed repeats.
import type { Random } from './random.js';

export type FaultKind =
  | 'server killed' // SIGKILL
  | 'server stopped' // SIGTERM
  | 'Redis killed'
  | 'Redis paused' // CLIENT PAUSE
  | 'Redis frozen' // SIGSTOP
  | 'Redis pubsub cut' // CLIENT KILL TYPE pubsub
  | 'Redis clients cut' // CLIENT KILL TYPE normal
  | 'PostgreSQL restarted';

export interface Fault {
  kind: FaultKind;
  /** After the beginning of the round. */
  atMs: number;
  /** Until what was taken away comes back. */
  lastsMs: number;
  /** Which server, for a fault of one. */
  server: number;
}

/** How long each lasts at least and at most. A cut connection is gone at once. */
const durations: Record<FaultKind, [number, number]> = {
  'server killed': [100, 1500],
  'server stopped': [100, 1500],
  'Redis killed': [50, 1500],
  'Redis paused': [300, 2500],
  'Redis frozen': [300, 3500],
  'Redis pubsub cut': [0, 0],
  'Redis clients cut': [0, 0],
  'PostgreSQL restarted': [50, 1500],
};
export const faultKinds = Object.keys(durations) as FaultKind[];

/** Every kind once before any comes again, so that a short round has all that fit. Two may overlap. */
export function planFaults(random: Random, { lengthMs, servers }: { lengthMs: number; servers: number }): Fault[] {
  const faults: Fault[] = [];
  let bag: FaultKind[] = [];
  let atMs = random.whole(500, 1500);
  while (atMs < lengthMs) {
    if (bag.length === 0) bag = [...faultKinds];
    const kind = random.pick(bag);
    bag.splice(bag.indexOf(kind), 1);
    const [least, most] = durations[kind];
    faults.push({ kind, atMs, lastsMs: random.whole(least, most), server: random.whole(0, servers - 1) });
    atMs += random.whole(1000, 5000);
  }
  return faults;
}
