// One round: everybody works while faults happen, then the faults end, everything recovers without help, and what each saw is judged.
import { setMaxListeners } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { createScratchpad } from '../../support/operations.js';
import type { Arena } from './arena.js';
import { checkHistory } from './check-history.js';
import { checkLeftovers, checkRows } from './check-leftovers.js';
import { startChurner, type ChurnedWorld } from './churners.js';
import { createFaultInjection } from './fault-injection.js';
import { planFaults, type Fault } from './fault-schedule.js';
import { comparePads, readStoredPad, readStores, readToldPad } from './final-state.js';
import type { PadHistory } from './history.js';
import { markText } from './marked-text.js';
import { createRandom } from './random.js';
import type { Recorder } from './recorder.js';
import { createRequests, type RequestFigures } from './requests.js';
import { startResumingSubscriber, type ResumingSubscriber } from './resuming-subscriber.js';
import type { Participant, Session } from './session.js';
import { settle } from './settle.js';
import { startAppender, startSupervisor, type Pad } from './writers.js';

export interface RoundOptions {
  arena: Arena;
  recorder: Recorder;
  seed: string;
  /** How long faults happen. */
  lengthMs: number;
  now: () => number;
  /** Told of each fault as it begins. */
  onFault?: (fault: Fault) => void;
  /** Told of what comes after the faults. */
  onProgress?: (step: string) => void;
}

export interface RoundResult {
  /** Nothing when every promise was kept. */
  problems: string[];
  faults: Fault[];
  requests: RequestFigures;
  entries: number;
  /** From the end of the last fault until all servers said that they are ready. */
  recoveryMs: number;
  appendsAcknowledged: number;
  setsAcknowledged: number;
  livesAcknowledged: number;
  eventsReceived: number;
  interruptions: Record<string, number>;
  /** How long this process itself stood still at most: a machine that is too busy for its clients keeps no promise of seconds. */
  ownStallMs: number;
}

const appenders = 8;
const churners = 4;
const recoveryLimitMs = 20_000;
const mostProblemsOfAKind = 10;

interface Crowd {
  writers: Participant[];
  subscribers: ResumingSubscriber[];
}

/** The first two stay as long as they can; the others also leave by themselves, again and again. */
function gather(
  { arena, seed }: RoundOptions,
  session: Session,
  readers: Session,
  pad: Pad,
  world: ChurnedWorld,
): Crowd {
  const random = createRandom(seed);
  const part = (name: string, of: Session = session) => ({ session: of, name, random: random.fork(name) });
  const urls = arena.servers.map(({ url }) => url);
  const writers = Array.from({ length: appenders }, (_, index) =>
    startAppender(part(`${seed}-appender-${index + 1}`), pad, index % urls.length),
  );
  for (const index of [1, 2])
    writers.push(startSupervisor(part(`${seed}-supervisor-${index}`), pad, index % urls.length));
  for (let index = 1; index <= churners; index += 1)
    writers.push(startChurner(part(`${seed}-churner-${index}`), world));
  const subscribers = [undefined, undefined, 1500, 4000, 8000].map((leavesAfterMs, index) =>
    startResumingSubscriber(part(`${seed}-subscriber-${index + 1}`, readers), pad, {
      urls,
      ...(leavesAfterMs !== undefined && { leavesAfterMs }),
    }),
  );
  return { writers, subscribers };
}

export async function playRound(options: RoundOptions): Promise<RoundResult> {
  const { arena, recorder, seed, lengthMs, now, onFault, onProgress = () => undefined } = options;
  const { cluster, servers } = arena;
  const problems: string[] = [];
  recorder.forget();
  const tenant = await arena.createTenant(seed);
  const scratchpadId = await createScratchpad(tenant.client);
  const pad: Pad = { scratchpadId, secret: tenant.secret };
  const requests = createRequests(servers, now);
  const writing = new AbortController();
  const reading = new AbortController();
  for (const { signal } of [writing, reading]) setMaxListeners(0, signal);
  const complain = (complaint: string): void => void problems.push(complaint);
  const session: Session = { requests, recorder, servers: servers.length, now, signal: writing.signal, complain };
  const notebooks = cluster.redis.client({ maxRetriesPerRequest: null });
  const world: ChurnedWorld = {
    users: [],
    tried: new Set(),
    leaveNotebook: async (threadId) => {
      const notebook = JSON.stringify({ content: markText(`notebook-${threadId}`, 100), last_updated: 1 });
      await notebooks.set(`scratchpad:${threadId}:notebook`, notebook);
    },
  };
  const { writers, subscribers } = gather(options, session, { ...session, signal: reading.signal }, pad, world);

  // ── the faults, and the recovery ──
  const faults = planFaults(createRandom(seed).fork('faults'), { lengthMs, servers: servers.length });
  const inject = createFaultInjection({ redis: cluster.redis, postgres: cluster.postgres, servers });
  const begin = now();
  const ownDelay = monitorEventLoopDelay();
  ownDelay.enable();
  const injected = faults.map(async (fault) => {
    await delay(Math.max(0, begin + fault.atMs - now()));
    onFault?.(fault);
    await inject(fault);
  });
  await Promise.all([delay(lengthMs), ...injected]);
  const faultsOverAt = now();
  if (!(await settle(() => arena.isReady(), { withinMs: recoveryLimitMs }))) {
    complain(`not every server is ready ${recoveryLimitMs} ms after the last fault`);
  }
  const recoveryMs = now() - faultsOverAt;
  onProgress('every server is ready');
  const doneBefore = new Map(writers.map((writer) => [writer, writer.done]));
  const everybodyWorks = (): boolean => writers.every((writer) => writer.done > doneBefore.get(writer)!);
  if (!(await settle(everybodyWorks, { withinMs: recoveryLimitMs }))) {
    const stuck = writers.filter((writer) => writer.done === doneBefore.get(writer)).map(({ name }) => name);
    complain(`after all faults are over, nothing succeeds for ${stuck.join(', ')}`);
  }
  onProgress('every writer has written again');
  writing.abort();
  await Promise.all(writers.map(({ finished }) => finished));
  notebooks.disconnect();

  // ── the verdict ──
  const stored = await readStoredPad(cluster.redis, tenant.userId, scratchpadId);
  const isCaughtUp = (subscriber: ResumingSubscriber): boolean =>
    subscriber.appendsSeen >= stored.ledger.length && subscriber.contentVersion === stored.content.version;
  await settle(() => subscribers.every(isCaughtUp), { withinMs: recoveryLimitMs });
  onProgress('every subscriber has caught up');
  // A duplicate may come behind the last one.
  await delay(500);
  reading.abort();
  await Promise.all(subscribers.map(({ finished }) => finished));

  const eventsOf = ({ name }: ResumingSubscriber) => [name, recorder.received.get(name) ?? []] as const;
  const judge = (what: string, history: PadHistory): void => {
    const counts = new Map<string, number>();
    for (const { kind, detail } of checkHistory(history)) {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      if (count <= mostProblemsOfAKind) complain(`${what}: ${kind}: ${detail}`);
    }
    for (const [kind, count] of counts) if (count > mostProblemsOfAKind) complain(`${what}: ${kind}: ${count} in all`);
  };
  const writesTo = (id: string) => ({
    appends: recorder.appends.filter((append) => append.scratchpadId === id),
    sets: recorder.sets.filter((set) => set.scratchpadId === id),
  });
  judge('the pad', { ...writesTo(scratchpadId), ...stored, subscribers: new Map(subscribers.map(eventsOf)) });
  for (const [index, server] of servers.entries()) {
    const told = await readToldPad(arena.clientOf(index, tenant.secret), scratchpadId);
    for (const difference of comparePads(stored, told, server.name)) complain(difference);
  }

  onProgress('the histories are judged');

  // ── what deletes left behind ──
  const findLeftovers = async (): Promise<string[]> => {
    const { keys, rows } = await readStores(arena);
    return checkLeftovers(keys, rows);
  };
  await settle(async () => (await findLeftovers()).length === 0, { withinMs: recoveryLimitMs, everyMs: 500 });
  problems.push(...(await findLeftovers()).slice(0, mostProblemsOfAKind));
  const diagnosis = await arena.doctor();
  if (diagnosis !== '') complain(`doctor says: ${diagnosis.slice(0, 1000)}`);
  const { rows } = await readStores(arena);
  problems.push(...checkRows(recorder.lives, world.tried, rows).slice(0, mostProblemsOfAKind));
  const churnedPads = new Set(recorder.appends.map((append) => append.scratchpadId));
  churnedPads.delete(scratchpadId);
  for (const id of churnedPads) {
    const owner = rows.scratchpads.get(id);
    if (owner === undefined) continue;
    judge(`pad ${id}`, {
      ...writesTo(id),
      ...(await readStoredPad(cluster.redis, owner, id)),
      subscribers: new Map(),
    });
  }

  ownDelay.disable();
  for (const { tookMs, what } of requests.figures.slow.slice(0, mostProblemsOfAKind)) {
    complain(`a request took ${Math.round(tookMs)} ms: ${what}`);
  }
  problems.push(...requests.figures.complaints.slice(0, mostProblemsOfAKind));
  const interruptions: Record<string, number> = {};
  for (const subscriber of subscribers) {
    for (const [reason, count] of Object.entries(subscriber.interruptions)) {
      interruptions[reason] = (interruptions[reason] ?? 0) + count;
    }
  }
  return {
    problems,
    faults,
    requests: requests.figures,
    entries: stored.ledger.length,
    recoveryMs,
    appendsAcknowledged: recorder.appends.length,
    setsAcknowledged: recorder.sets.length,
    livesAcknowledged: recorder.lives.length,
    eventsReceived: [...recorder.received.values()].reduce((sum, rows) => sum + rows.length, 0),
    interruptions,
    ownStallMs: ownDelay.max / 1e6,
  };
}
