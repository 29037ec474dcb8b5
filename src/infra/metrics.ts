// What an operator can measure, in Prometheus' text format. One registry for each application, so that two in one process do not mix.
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

export interface RequestObservation {
  /** The door: "graphql", "graphql-ws". */
  surface: string;
  /** "OK" or an error code; never free text, it is a label. */
  outcome: string;
  /** Undefined for what stays open by design: a stream's age is no latency. */
  seconds?: number;
}

export interface Metrics {
  requestFinished(observation: RequestObservation): void;
  /** @returns what to call, once, when the subscription ends */
  subscriptionOpened(transport: string): () => void;
  eventDelivered(transport: string): void;
  storeFailed(store: 'SQL' | 'Redis'): void;
  /** A request was let in although it could not be counted against its limit. */
  requestUncounted(): void;
  /** `read` is asked at every scrape; when it fails or hangs, the last figure stays. */
  watchPurgeBacklog(read: () => Promise<number>): void;
  /** The same. */
  watchWaitingRuns(read: () => Promise<number>): void;
  runStarted(): void;
  /** @param outcome a status, or the code of a failure: never free text, it is a label */
  runEnded(outcome: string, seconds: number): void;
  /** A run was ended in the place of the process that executed it. */
  runLost(): void;
  expose(): Promise<{ contentType: string; body: string }>;
}

const latencyBucketsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const runBucketsSeconds = [1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600];
const collectTimeoutMs = 1000;

const withTimeout = <Value>(promise: Promise<Value>, timeoutMs: number): Promise<Value> => {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
};

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  /** What comes tens of thousands of times a second is counted in plain numbers, and moved over when somebody asks. */
  function plainCounter<Label extends string>(name: string, help: string, labelNames: Label[]) {
    const counts = new Map<string, { labels: Record<Label, string>; count: number }>();
    const counter: Counter<Label> = new Counter({
      name,
      help,
      labelNames,
      registers,
      collect() {
        for (const { labels, count } of counts.values()) counter.inc(labels, count);
        counts.clear();
      },
    });
    /** @param key the same for the same labels */
    return (key: string, labels: Record<Label, string>): void => {
      const counted = counts.get(key);
      if (counted) counted.count += 1;
      else counts.set(key, { labels, count: 1 });
    };
  }

  const countRequest = plainCounter(
    'scratchpad_requests_total',
    'Requests, and operations on WebSockets, by outcome.',
    ['surface', 'outcome'],
  );
  const countDelivery = plainCounter(
    'scratchpad_delivered_events_total',
    'Results handed to the transports of subscriptions.',
    ['transport'],
  );
  const latency = new Histogram({
    name: 'scratchpad_request_duration_seconds',
    help: 'Time from the first byte of a request to the end of its answer; streams are left out.',
    labelNames: ['surface'],
    buckets: latencyBucketsSeconds,
    registers,
  });
  const openSubscriptions = new Gauge({
    name: 'scratchpad_open_subscriptions',
    help: 'Subscriptions that are open now.',
    labelNames: ['transport'],
    registers,
  });
  const storeErrors = {
    SQL: new Counter({ name: 'scratchpad_sql_errors_total', help: 'Failed calls to the SQL database.', registers }),
    Redis: new Counter({ name: 'scratchpad_redis_errors_total', help: 'Failed calls to Redis.', registers }),
  };
  const uncountedRequests = new Counter({
    name: 'scratchpad_uncounted_requests_total',
    help: 'Requests that were let in without being counted against RATE_LIMIT_PER_MINUTE, because Redis did not answer.',
    registers,
  });
  const executingRuns = new Gauge({
    name: 'scratchpad_executing_runs',
    help: 'Runs that this process executes now, without the workers that they delegated to.',
    registers,
  });
  const endedRuns = new Counter({
    name: 'scratchpad_runs_total',
    help: 'Runs that ended in this process, without the workers that they delegated to, by status or code of failure.',
    labelNames: ['outcome'],
    registers,
  });
  const runDuration = new Histogram({
    name: 'scratchpad_run_duration_seconds',
    help: 'Time from the beginning of the execution of a run to its end.',
    buckets: runBucketsSeconds,
    registers,
  });

  function watch(name: string, help: string, read: () => Promise<number>): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers,
      async collect() {
        try {
          gauge.set(await withTimeout(read(), collectTimeoutMs));
        } catch {
          // A store that is away must not take the other figures with it.
        }
      },
    });
  }

  return {
    requestFinished({ surface, outcome, seconds }) {
      countRequest(`${surface} ${outcome}`, { surface, outcome });
      if (seconds !== undefined) latency.observe({ surface }, seconds);
    },

    subscriptionOpened(transport) {
      openSubscriptions.inc({ transport });
      return () => openSubscriptions.dec({ transport });
    },

    eventDelivered(transport) {
      countDelivery(transport, { transport });
    },

    storeFailed(store) {
      storeErrors[store].inc();
    },

    requestUncounted() {
      uncountedRequests.inc();
    },

    watchPurgeBacklog(read) {
      watch('scratchpad_purge_backlog', 'Deleted resources whose Redis keys are not yet purged.', read);
    },

    watchWaitingRuns(read) {
      watch('scratchpad_waiting_runs', 'Runs that wait for a free place, in all processes together.', read);
    },

    runStarted() {
      executingRuns.inc();
    },

    runEnded(outcome, seconds) {
      executingRuns.dec();
      endedRuns.inc({ outcome });
      runDuration.observe(seconds);
    },

    runLost() {
      endedRuns.inc({ outcome: 'WORKER_LOST' });
    },

    async expose() {
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}
