// The fastest popular stack: Mercurius with its JIT on Fastify, plain ioredis, loaders over Prisma.
import { PrismaPg } from '@prisma/adapter-pg';
import Fastify from 'fastify';
import { Redis } from 'ioredis';
import mercurius from 'mercurius';
import { PrismaClient } from '../../dist/generated/prisma/client.js';
import { contentKey, createResolvers, entriesKey, toConnection, toContent, typeDefs } from './schema.js';

const redis = new Redis(process.env.REDIS_URL);
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) });
const resolvers = createResolvers(redis);
// Every field of one level is asked for at once; remembering answers would only cost, since none is asked twice.
const batched = (loader) => ({ loader, opts: { cache: false } });

const app = Fastify();
await app.register(mercurius, {
  schema: typeDefs,
  jit: 1,
  resolvers: {
    ...resolvers,
    Query: {
      ...resolvers.Query,
      viewer: () => prisma.user.findUnique({ where: { id: process.env.BENCH_OWNER } }),
    },
    User: {
      async threads({ id }, { first }) {
        const rows = await prisma.thread.findMany({ where: { ownerId: id }, orderBy: { id: 'asc' }, take: first });
        return { edges: rows.map((node) => ({ node })) };
      },
    },
    Thread: { createdAt: ({ createdAt }) => createdAt.toISOString() },
  },
  loaders: {
    Thread: {
      scratchpad: batched(async (queries) => {
        const threadIds = queries.map(({ obj }) => obj.id);
        const pads = await prisma.scratchpad.findMany({ where: { threadId: { in: threadIds } } });
        const byThread = new Map(pads.map((pad) => [pad.threadId, pad]));
        return threadIds.map((threadId) => byThread.get(threadId) ?? null);
      }),
    },
    Scratchpad: {
      content: batched(async (queries) =>
        (await redis.mget(queries.map(({ obj }) => contentKey(obj.id)))).map(toContent),
      ),
      entryCount: batched((queries) => Promise.all(queries.map(({ obj }) => redis.llen(entriesKey(obj.id))))),
      entries: batched((queries) =>
        Promise.all(
          queries.map(async ({ obj, params: { first } }) =>
            toConnection(await redis.lrange(entriesKey(obj.id), 0, first - 1)),
          ),
        ),
      ),
    },
  },
});
const url = await app.listen({ host: '127.0.0.1', port: 0 });
process.send({ url });
