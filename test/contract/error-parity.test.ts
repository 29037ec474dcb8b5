// Every error of the domain, raised through every surface over every transport: the same code, the same words, and nothing else.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DomainError, type ErrorCode } from '../../src/shared/errors.js';
import { createId } from '../../src/shared/ids.js';
import type { Services } from '../../src/surfaces/graphql/context.js';
import { appendEntry, createScratchpad, createToken, setContent, type AgentRole } from '../support/operations.js';
import { startOwnPostgres, type ControllablePostgresServer } from '../support/postgres.js';
import { startService, type Service, type Tenant } from '../support/service.js';
import { subscribe } from '../support/subscriber.js';
import { columns, type Attempt, type Column, type Raised } from './error-columns.js';

interface Situation {
  name: string;
  /** Whose key is used, when it is not that of a tenant. */
  secret?: string;
  /** The same, made for the scratchpad that is asked for. */
  secretFor?: (scratchpadId: string) => Promise<string>;
  attempt: (scratchpadId: string) => Attempt;
  /** Brings the situation about; the answer ends it. */
  arrange?: (scratchpadId: string) => Promise<() => Promise<void>>;
}

let service: Service;
let postgres: ControllablePostgresServer;
let alice: Tenant;

const brokenContent = 'break the service';
const tooOftenContent = 'one too many';
const plantedSecret = 'spk_planted-secret-that-nobody-may-see';

/** A service with a bug, and with limits that are not built yet. */
const breakServices = (services: Services): Services => ({
  ...services,
  scratchpads: {
    ...services.scratchpads,
    appendEntry(principal, scratchpadId, input, origin) {
      if (input.content === brokenContent) {
        throw new TypeError(`cannot SELECT secret_hash FROM api_keys at db.internal:5432 with ${plantedSecret}`);
      }
      if (input.content === tooOftenContent) {
        throw new DomainError('RATE_LIMITED', 'Too many requests: wait, then go on.', { retryAfterSeconds: 7 });
      }
      return services.scratchpads.appendEntry(principal, scratchpadId, input, origin);
    },
  },
});

const append =
  (content: string) =>
  (scratchpadId: string): Attempt => ({ to: 'append', scratchpadId, content });

const tokenFor =
  (role: AgentRole) =>
  async (scratchpadId: string): Promise<string> =>
    (await createToken(alice.client, scratchpadId, role)).secret;

const readiness = async (): Promise<number> => (await fetch(`${service.url}/readyz`)).status;
const untilReady = (): Promise<void> => expect.poll(readiness, { timeout: 15_000 }).toBe(200);

const killRedis = async (): Promise<() => Promise<void>> => {
  await service.redis.kill();
  return async () => {
    await service.redis.restart();
    await untilReady();
  };
};

const killSql = async (): Promise<() => Promise<void>> => {
  await postgres.stop('immediate');
  return async () => {
    await postgres.start();
    await untilReady();
  };
};

const situations = {
  INVALID_INPUT: [
    { name: 'a blank entry', attempt: append(' \n') },
    { name: 'half a surrogate pair', attempt: append('\ud800') },
    {
      name: 'a cursor that nobody made',
      attempt: (scratchpadId) => ({ to: 'subscribe', scratchpadId, after: 'nonsense' }),
    },
  ],
  UNAUTHENTICATED: [
    { name: 'an unknown key', secret: 'spk_unknown-key-of-nobody-at-all', attempt: append('x') },
    {
      name: 'an unknown key for events',
      secret: 'spk_unknown-key-of-nobody-at-all',
      attempt: (scratchpadId) => ({ to: 'subscribe', scratchpadId }),
    },
  ],
  FORBIDDEN: [
    { name: 'a tenant that makes users', attempt: () => ({ to: 'create user', name: 'Mallory' }) },
    { name: 'an observer that appends', secretFor: tokenFor('OBSERVER'), attempt: append('x') },
    {
      name: 'a worker that replaces',
      secretFor: tokenFor('WORKER'),
      attempt: (scratchpadId) => ({ to: 'set content', scratchpadId, text: 'x' }),
    },
  ],
  NOT_FOUND: [
    { name: 'an unknown pad', attempt: () => append('x')(createId('scratchpad')) },
    { name: 'events of an unknown pad', attempt: () => ({ to: 'subscribe', scratchpadId: createId('scratchpad') }) },
  ],
  CONFLICT: [
    {
      name: 'a lost update',
      attempt: (scratchpadId) => ({ to: 'set content', scratchpadId, text: 'x', expectedVersion: '1' }),
    },
    {
      name: 'an idempotency key with another input',
      attempt: (scratchpadId) => ({ to: 'append', scratchpadId, content: 'other', idempotencyKey: 'used' }),
    },
  ],
  LIMIT_EXCEEDED: [
    { name: 'an entry that is too long', attempt: append('x'.repeat(65_537)) },
    {
      name: 'a content that is too long',
      attempt: (scratchpadId) => ({ to: 'set content', scratchpadId, text: 'x'.repeat(1_048_577) }),
    },
  ],
  RATE_LIMITED: [{ name: 'too many requests', attempt: append(tooOftenContent) }],
  UNAVAILABLE: [
    { name: 'Redis killed', arrange: killRedis, attempt: append('x') },
    {
      name: 'Redis killed, for events',
      arrange: killRedis,
      attempt: (scratchpadId) => ({ to: 'subscribe', scratchpadId }),
    },
    { name: 'PostgreSQL killed', arrange: killSql, attempt: (scratchpadId) => ({ to: 'read', scratchpadId }) },
  ],
  // It has a test of its own below: it ends what is open, and nothing else.
  SUBSCRIBER_TOO_SLOW: [],
  INTERNAL: [
    { name: 'a bug', attempt: append(brokenContent) },
    {
      name: 'a key of the wrong type in Redis',
      attempt: append('x'),
      async arrange(scratchpadId) {
        const redis = service.redis.client();
        const key = `scratchpad:${alice.userId}:${scratchpadId}:entries`;
        await redis.set(key, plantedSecret);
        return async () => void (await redis.del(key));
      },
    },
    {
      name: 'a database without a column',
      attempt: (scratchpadId) => ({ to: 'read', scratchpadId }),
      async arrange() {
        await service.psql('ALTER TABLE scratchpads RENAME COLUMN meta_data TO something_else');
        return async () =>
          void (await service.psql('ALTER TABLE scratchpads RENAME COLUMN something_else TO meta_data'));
      },
    },
  ],
} satisfies Record<ErrorCode, Situation[]>;

beforeAll(async () => {
  postgres = await startOwnPostgres();
  service = await startService({
    postgres,
    appendFsync: 'always',
    environment: { SUBSCRIBER_BUFFER_EVENTS: '10' },
    overrideServices: breakServices,
  });
  alice = await service.createTenant('Alice');
});
afterAll(async () => {
  await service.close();
  await postgres.close();
});

/** What no answer may carry, whatever went wrong: code, SQL, keys of Redis, addresses, secrets. */
const leaks = [
  /\bat .+:\d+:\d+/,
  /node_modules|\.[jt]s\b|prisma|ioredis|pino/i,
  /\bselect\b|\binsert\b|\bwhere\b|relation|column|secret_hash|meta_data|something_else/i,
  /WRONGTYPE|evalsha|script|TypeError/i,
  /(scratchpad|sequence|idempotency|tombstone|events):\S/,
  /127\.0\.0\.1|localhost|db\.internal|:\d{4,5}\b|ECONN|redis:\/\/|postgres/i,
  new RegExp(plantedSecret),
];

const expectNoLeak = ({ bytes }: Raised): void => {
  for (const leak of leaks) expect(bytes).not.toMatch(leak);
  expect(bytes).not.toContain(alice.secret);
  expect(bytes).not.toContain('"stack');
};

/** The one thing that differs from request to request. */
function withoutRequestId({ code, message, details }: Raised): object {
  const { requestId, ...rest } = details;
  const same = typeof requestId === 'string' ? message.replace(requestId, 'REQUEST') : message;
  return { code, message: same, details: rest, hasRequestId: requestId !== undefined };
}

const cases = Object.entries(situations).flatMap(([code, list]: [string, Situation[]]) =>
  list.map((situation) => [code, situation.name, situation] as const),
);

describe.each(cases)('%s by %s', (code, _name, { secret: givenSecret, secretFor, attempt, arrange }) => {
  it('is the same through every door, and says nothing that is nobody’s business', async () => {
    const scratchpadId = await createScratchpad(alice.client);
    if (code === 'CONFLICT') {
      await setContent(alice.client, scratchpadId, 'first');
      await appendEntry(alice.client, scratchpadId, 'first', 'used');
    }
    const secret = givenSecret ?? (await secretFor?.(scratchpadId));
    const raised = new Map<string, Raised>();
    const secrets = new Map<string, string>();
    for (const { name, prepare } of columns) {
      if (!secret && prepare) secrets.set(name, await prepare(service.url, alice.secret, scratchpadId));
    }
    const restore = await arrange?.(scratchpadId);
    try {
      for (const column of columns) {
        const failure = await column.attempt(
          service.url,
          secret ?? secrets.get(column.name) ?? alice.secret,
          attempt(scratchpadId),
        );
        if (failure) raised.set(column.name, failure);
      }
    } finally {
      await restore?.();
    }
    expect(raised.size).toBeGreaterThan(1);
    const [[, first]] = [...raised] as [[string, Raised]];
    for (const [name, failure] of raised) {
      expect(failure.code, name).toBe(code);
      expect(failure.message.length, name).toBeGreaterThan(20);
      expect(withoutRequestId(failure), name).toEqual(withoutRequestId(first));
      expectNoLeak(failure);
    }
  });
});

type SlowColumn = Column & Required<Pick<Column, 'readTooSlowly'>>;
const subscribable = columns.filter((column): column is SlowColumn => column.readTooSlowly !== undefined);

describe('SUBSCRIBER_TOO_SLOW by a reader that stops reading', () => {
  const messages = new Set<string>();

  it.each(subscribable.map((column) => [column.name, column] as const))(
    'ends the subscription over %s with its last cursor, and nothing is lost to who resumes from it',
    async (_name, column) => {
      const scratchpadId = await createScratchpad(alice.client);
      // More than the operating system buffers between the two.
      const floodSize = 300;
      const { cursors, raised } = await column.readTooSlowly(service.url, alice.secret, scratchpadId, async () => {
        for (let index = 0; index < floodSize; index += 1) {
          await appendEntry(alice.client, scratchpadId, `${index} ${'x'.repeat(60_000)}`);
        }
      });
      expect(raised.code).toBe('SUBSCRIBER_TOO_SLOW');
      expect(cursors.length).toBeGreaterThan(0);
      expect(cursors.length).toBeLessThan(floodSize);
      expect(raised.details).toEqual({ lastCursor: cursors.at(-1) });
      expectNoLeak(raised);
      messages.add(raised.message);
      expect(messages.size).toBe(1);

      const options = { url: service.url, secret: alice.secret, scratchpadId, after: cursors.at(-1) ?? '' };
      const resumed = await subscribe({ ...options, transport: 'WebSocket' });
      const rest = await resumed.received(floodSize - cursors.length);
      resumed.close();
      expect(rest.map((event) => Number.parseInt(event.entry?.content ?? '', 10))).toEqual(
        Array.from({ length: floodSize - cursors.length }, (_, index) => cursors.length + index),
      );
    },
  );
});
