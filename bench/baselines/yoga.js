// The same in graphql-yoga as its documentation begins: createYoga on node:http, nothing switched off or tuned.
import { createServer } from 'node:http';
import { createSchema, createYoga } from 'graphql-yoga';
import { Redis } from 'ioredis';
import { createResolvers, typeDefs } from './schema.js';

const redis = new Redis(process.env.REDIS_URL);
const yoga = createYoga({ schema: createSchema({ typeDefs, resolvers: createResolvers(redis) }) });
const server = createServer((request, response) => void yoga(request, response));
server.listen(0, '127.0.0.1', () => process.send({ url: `http://127.0.0.1:${server.address().port}` }));
