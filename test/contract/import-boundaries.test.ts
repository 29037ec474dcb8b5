// Keeps the import rules of docs/architecture.md true, and proves that a breach would be noticed.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { findBreaches, type SourceFile } from './import-boundaries.js';

const root = path.resolve(import.meta.dirname, '../..');

function readSources(): SourceFile[] {
  return readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((name) => path.posix.join('src', name.split(path.sep).join('/')))
    .filter((name) => name.endsWith('.ts') && !name.startsWith('src/generated/'))
    .map((name) => ({ path: name, text: readFileSync(path.join(root, name), 'utf8') }));
}

const packageJson = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
const dependencies = new Set(Object.keys(packageJson.dependencies));

const breachesOf = (sourcePath: string, text: string): string[] =>
  findBreaches([{ path: sourcePath, text }], dependencies);

describe('the import boundaries', () => {
  it('hold for every source file', () => {
    const sources = readSources();
    expect(sources.length).toBeGreaterThan(10);
    expect(findBreaches(sources, dependencies)).toEqual([]);
  });

  it.each([
    [
      'a folder to the right',
      'src/shared/ids.ts',
      "import { x } from '../identity/principal.js';",
      'shared does not import identity',
    ],
    [
      'a sibling',
      'src/threads/thread-service.ts',
      "import { x } from '../scratchpads/data-plane.js';",
      'threads does not import scratchpads',
    ],
    [
      'a type of a sibling',
      'src/scratchpads/purge.ts',
      "import type { X } from '../threads/thread-service.js';",
      'scratchpads does not import threads',
    ],
    [
      'what lies on top of a layer',
      'src/redis/redis-keys.ts',
      "import { x } from '../scratchpads/purge.js';",
      'redis does not import scratchpads',
    ],
    [
      'another surface',
      'src/surfaces/rest/threads.ts',
      "import { x } from '../graphql/builder.js';",
      'one surface does not import another',
    ],
    [
      'infra',
      'src/identity/user-service.ts',
      "import { openDatabase } from '../infra/postgres.js';",
      'infra is imported by',
    ],
    [
      'infra from an entry point',
      'src/main.ts',
      "import { openDatabase } from './infra/postgres.js';",
      'infra is imported by',
    ],
    [
      'what infra must not know',
      'src/infra/redis.ts',
      "import { x } from '../scratchpads/data-plane.js';",
      'infra imports nothing but shared',
    ],
    [
      'the configuration',
      'src/threads/thread-service.ts',
      "import type { Config } from '../config.js';",
      'only the composition root and the entry points know',
    ],
    [
      'app.ts',
      'src/surfaces/graphql/context.ts',
      "import { createApp } from '../../app.js';",
      'surfaces does not import app.ts',
    ],
    [
      'a folder without a place',
      'src/tools/tool.ts',
      "import { x } from '../helpers/text.js';",
      'helpers has no place',
    ],
    [
      'the server from the client',
      'src/client/index.ts',
      "import { x } from '../shared/ids.js';",
      'share only the wire',
    ],
    [
      'Node from the client',
      'src/client/pause.ts',
      "import { setTimeout } from 'node:timers/promises';",
      'the client runs in browsers',
    ],
    ['a package from the client', 'src/client/pause.ts', "import { z } from 'zod';", 'needs no package'],
    [
      'the server from what shows its runs',
      'src/terminal/run-view.ts',
      "import type { RunEventRecord } from '../research/run-event.js';",
      'share only the wire',
    ],
    [
      'the client from the server',
      'src/app.ts',
      "import { x } from './client/graphql-client.js';",
      'share only the wire',
    ],
    [
      'by an export',
      'src/shared/ids.ts',
      "export { x } from '../identity/principal.js';",
      'shared does not import identity',
    ],
    [
      'by an export of everything',
      'src/shared/ids.ts',
      "export * from '../identity/principal.js';",
      'shared does not import identity',
    ],
    [
      'by a dynamic import',
      'src/shared/ids.ts',
      "export const x = await import('../identity/principal.js');",
      'shared does not import identity',
    ],
    [
      'by a computed import',
      'src/shared/ids.ts',
      'export const x = (name: string) => import(name);',
      'name is computed',
    ],
    [
      'by a type query',
      'src/shared/ids.ts',
      "export type X = import('../identity/principal.js').Principal;",
      'shared does not import identity',
    ],
    [
      'for its side effect',
      'src/shared/ids.ts',
      "import '../identity/principal.js';",
      'shared does not import identity',
    ],
    [
      'Prisma outside',
      'src/scratchpads/data-plane.ts',
      "import type { PrismaClient } from '../generated/prisma/client.js';",
      'modules that own SQL',
    ],
    [
      'all of Prisma',
      'src/surfaces/graphql/context.ts',
      "import * as prisma from '../../generated/prisma/client.js';",
      'modules that own SQL',
    ],
    ['ioredis outside', 'src/threads/thread-service.ts', "import type { Redis } from 'ioredis';", 'package ioredis'],
    ['graphql outside', 'src/scratchpads/data-plane.ts', "import { GraphQLError } from 'graphql';", 'package graphql'],
    [
      'a path in a package',
      'src/infra/http.ts',
      "import { useServer } from 'graphql-ws/use/ws';",
      'package graphql-ws',
    ],
    ['Pothos outside', 'src/app.ts', "import SchemaBuilder from '@pothos/core';", 'package @pothos/core'],
    ['Hono outside', 'src/infra/http.ts', "import { Hono } from 'hono';", 'package hono'],
    [
      'Hono’s extension of zod outside',
      'src/threads/thread-service.ts',
      "import { z } from '@hono/zod-openapi';",
      'package @hono/zod-openapi',
    ],
    ['pg outside', 'src/identity/user-service.ts', "import pg from 'pg';", 'package pg'],
    [
      'the MCP SDK outside',
      'src/tools/toolbox.ts',
      "import { Server } from '@modelcontextprotocol/sdk/server/index.js';",
      'package @modelcontextprotocol/sdk',
    ],
    ['an undeclared package', 'src/shared/text.ts', "import _ from 'lodash';", 'lodash is not among'],
    ['a development package', 'src/shared/text.ts', "import { it } from 'vitest';", 'vitest is not among'],
    ['process.env', 'src/config.ts', 'export const port = process.env.PORT;', 'only the entry points do'],
    ['process.env by a string', 'src/app.ts', "export const port = process['env'].PORT;", 'only the entry points do'],
    ['env of node:process', 'src/shared/logger.ts', "import { env } from 'node:process';", 'only the entry points do'],
    ['a file that does not parse', 'src/shared/text.ts', 'export const = ;', 'does not parse'],
  ])('refuse %s', (_, sourcePath, text, reason) => {
    expect(breachesOf(sourcePath, text)).toEqual([expect.stringContaining(reason)]);
  });

  it.each([
    ['a folder to the left', 'src/threads/thread-service.ts', "import { x } from '../identity/principal.js';"],
    ['its own folder', 'src/scratchpads/purge.ts', "import { x } from './purge-queue.js';"],
    ['infra in app.ts', 'src/app.ts', "import { openDatabase } from './infra/postgres.js';"],
    ['app.ts in an entry point', 'src/main.ts', "import { createApp } from './app.js';"],
    ['the configuration in app.ts', 'src/app.ts', "import type { Config } from './config.js';"],
    ['the error table', 'src/surfaces/graphql/server.ts', "import { x } from '../error-table.js';"],
    [
      'the shape of a row',
      'src/scratchpads/scratchpad-service.ts',
      "import type { Scratchpad } from '../generated/prisma/client.js';",
    ],
    [
      'the Prisma client of an owner',
      'src/threads/thread-service.ts',
      "import type { PrismaClient } from '../generated/prisma/client.js';",
    ],
    ['ioredis in the data plane', 'src/scratchpads/data-plane.ts', "import type { Redis } from 'ioredis';"],
    ['process.env in an entry point', 'src/main.ts', 'export const port = process.env.PORT;'],
  ])('allow %s', (_, sourcePath, text) => {
    expect(breachesOf(sourcePath, text)).toEqual([]);
  });
});
