// Every variable of docs/configuration.md: its default, what it may be, and the one line that a wrong value gives.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ConfigurationError, readConfig, type Config } from '../../src/config.js';

const linesFor = (variables: Record<string, string>): string[] => {
  try {
    readConfig(variables);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message.split('\n');
    throw error;
  }
  return [];
};

const secret = 'a-secret-of-at-least-20-characters';
const servers = { DATABASE_URL: 'postgresql://u:p@db/scratchpad', REDIS_URL: 'redis://cache:6379/1' };

describe('the configuration', () => {
  it('has a default for everything', () => {
    expect(readConfig({})).toEqual<Config>({
      host: '127.0.0.1',
      port: 4000,
      databaseUrl: undefined,
      redisUrl: undefined,
      dataDirectory: '.data',
      embedded: true,
      administratorSecret: undefined,
      developmentSecret: undefined,
      metricsToken: undefined,
      scratchpadTtlSeconds: 86_400,
      maxBodyBytes: 8_388_608,
      rateLimitPerMinute: 0,
      maxContentBytes: 1_048_576,
      maxEntryBytes: 65_536,
      maxEntries: 100_000,
      formattedViewMaxBytes: 65_536,
      subscriberBufferEvents: 1000,
      llmBaseUrl: undefined,
      llmApiKey: undefined,
      llmModel: undefined,
      searxngUrl: undefined,
      runWorkers: 2,
      runMaxSeconds: 1800,
      runEventsTtlSeconds: 86_400,
      contextMaxTokens: 100_000,
      webAllowPrivateHosts: false,
      corsOrigins: [],
      graphiql: true,
      introspection: true,
      logLevel: 'info',
    });
  });

  it.each<[string, string, Partial<Config>]>([
    ['HOST', '::', { host: '::' }],
    ['PORT', '0', { port: 0 }],
    ['PORT', '65535', { port: 65_535 }],
    ['DATABASE_URL', 'postgres://localhost/x', { databaseUrl: 'postgres://localhost/x', embedded: false }],
    ['REDIS_URL', 'rediss://:pw@cache', { redisUrl: 'rediss://:pw@cache', embedded: false }],
    ['DATA_DIR', '/var/lib/x', { dataDirectory: '/var/lib/x' }],
    ['METRICS_TOKEN', secret, { metricsToken: secret }],
    ['RATE_LIMIT_PER_MINUTE', '600', { rateLimitPerMinute: 600 }],
    ['ADMIN_API_KEY', secret, { administratorSecret: secret }],
    ['DEV_API_KEY', secret, { developmentSecret: secret }],
    ['REDIS_SCRATCHPAD_TTL_SECONDS', '0', { scratchpadTtlSeconds: 0 }],
    ['MAX_BODY_BYTES', '1024', { maxBodyBytes: 1024 }],
    ['MAX_CONTENT_BYTES', '1', { maxContentBytes: 1 }],
    ['MAX_ENTRY_BYTES', '1', { maxEntryBytes: 1 }],
    ['MAX_ENTRIES', '1', { maxEntries: 1 }],
    ['FORMATTED_VIEW_MAX_BYTES', '1024', { formattedViewMaxBytes: 1024 }],
    ['SUBSCRIBER_BUFFER_EVENTS', '1', { subscriberBufferEvents: 1 }],
    ['LLM_BASE_URL', 'https://llm.example.com/v1', { llmBaseUrl: 'https://llm.example.com/v1' }],
    ['LLM_API_KEY', 'k', { llmApiKey: 'k' }],
    ['LLM_MODEL', 'org/model:1', { llmModel: 'org/model:1' }],
    ['SEARXNG_URL', 'http://search:8080', { searxngUrl: 'http://search:8080' }],
    ['RUN_WORKERS', '0', { runWorkers: 0 }],
    ['RUN_MAX_SECONDS', '1', { runMaxSeconds: 1 }],
    ['RUN_EVENTS_TTL_SECONDS', '60', { runEventsTtlSeconds: 60 }],
    ['CONTEXT_MAX_TOKENS', '1000', { contextMaxTokens: 1000 }],
    ['WEB_ALLOW_PRIVATE_HOSTS', 'true', { webAllowPrivateHosts: true }],
    [
      'CORS_ORIGINS',
      'https://a.example, http://localhost:3000',
      { corsOrigins: ['https://a.example', 'http://localhost:3000'] },
    ],
    ['GRAPHIQL', 'false', { graphiql: false }],
    ['INTROSPECTION', 'false', { introspection: false }],
    ['LOG_LEVEL', 'silent', { logLevel: 'silent' }],
  ])('takes %s=%s', (name, value, expected) => {
    expect(readConfig({ [name]: value })).toMatchObject(expected);
  });

  it.each([
    ['PORT', 'http', 'PORT must be a whole number'],
    ['PORT', '65536', 'PORT must be between 0 and 65535'],
    ['PORT', '-1', 'PORT must be a whole number'],
    ['PORT', '4000.5', 'PORT must be a whole number'],
    ['PORT', ' 4000', 'PORT must be a whole number'],
    ['DATABASE_URL', 'mysql://db/x', 'DATABASE_URL must be a URL that begins with postgresql:// or postgres://'],
    ['DATABASE_URL', 'db', 'DATABASE_URL must be a URL that begins with postgresql:// or postgres://'],
    ['REDIS_URL', 'http://cache', 'REDIS_URL must be a URL that begins with redis:// or rediss://'],
    ['ADMIN_API_KEY', 'short', 'ADMIN_API_KEY must have 20 to 200 characters'],
    ['ADMIN_API_KEY', 'x'.repeat(201), 'ADMIN_API_KEY must have 20 to 200 characters'],
    ['ADMIN_API_KEY', 'twenty characters with spaces', 'ADMIN_API_KEY must consist of visible ASCII'],
    ['DEV_API_KEY', 'short', 'DEV_API_KEY must have 20 to 200 characters'],
    ['REDIS_SCRATCHPAD_TTL_SECONDS', '-1', 'REDIS_SCRATCHPAD_TTL_SECONDS must be a whole number'],
    ['REDIS_SCRATCHPAD_TTL_SECONDS', '1d', 'REDIS_SCRATCHPAD_TTL_SECONDS must be a whole number'],
    ['MAX_BODY_BYTES', '1023', 'MAX_BODY_BYTES must be between 1024 and'],
    ['MAX_CONTENT_BYTES', '0', 'MAX_CONTENT_BYTES must be between 1 and'],
    ['MAX_ENTRY_BYTES', '0', 'MAX_ENTRY_BYTES must be between 1 and'],
    ['MAX_ENTRIES', 'many', 'MAX_ENTRIES must be a whole number'],
    ['FORMATTED_VIEW_MAX_BYTES', '10', 'FORMATTED_VIEW_MAX_BYTES must be between 1024 and'],
    ['LLM_BASE_URL', 'llm.example.com', 'LLM_BASE_URL must be a URL that begins with http:// or https://'],
    ['LLM_API_KEY', 'two words', 'LLM_API_KEY must consist of visible ASCII'],
    ['LLM_MODEL', 'two words', 'LLM_MODEL must consist of visible ASCII'],
    ['SEARXNG_URL', 'search:8080', 'SEARXNG_URL must be a URL that begins with http:// or https://'],
    ['RUN_WORKERS', '-1', 'RUN_WORKERS must be a whole number'],
    ['RUN_MAX_SECONDS', '0', 'RUN_MAX_SECONDS must be between 1 and'],
    ['RUN_EVENTS_TTL_SECONDS', '0', 'RUN_EVENTS_TTL_SECONDS must be between 1 and'],
    ['CONTEXT_MAX_TOKENS', '10', 'CONTEXT_MAX_TOKENS must be between 1000 and'],
    ['WEB_ALLOW_PRIVATE_HOSTS', '1', 'WEB_ALLOW_PRIVATE_HOSTS must be true or false'],
    ['SUBSCRIBER_BUFFER_EVENTS', '0', 'SUBSCRIBER_BUFFER_EVENTS must be between 1 and'],
    ['CORS_ORIGINS', 'https://a.example/', 'CORS_ORIGINS "https://a.example/" is no origin'],
    ['CORS_ORIGINS', '*', 'CORS_ORIGINS "*" is no origin'],
    ['GRAPHIQL', 'yes', 'GRAPHIQL must be true or false'],
    ['INTROSPECTION', '1', 'INTROSPECTION must be true or false'],
    ['LOG_LEVEL', 'loud', 'LOG_LEVEL must be trace, debug, info, warn, error, fatal or silent'],
  ])('refuses %s=%s with one line', (name, value, line) => {
    expect(linesFor({ [name]: value })).toEqual([expect.stringContaining(line)]);
  });

  it('names every mistake at once', () => {
    expect(linesFor({ PORT: 'x', LOG_LEVEL: 'y', GRAPHIQL: 'z' })).toHaveLength(3);
  });

  it('never repeats a secret that it refuses', () => {
    const text = linesFor({
      ADMIN_API_KEY: 'hush hush',
      LLM_API_KEY: 'hush hush',
      DEV_API_KEY: 'hush',
      DATABASE_URL: 'mysql://u:hush@db/x',
    }).join();
    expect(text).not.toContain('hush');
  });

  it('takes an empty value for none', () => {
    const names = [
      'PORT',
      'DATABASE_URL',
      'REDIS_URL',
      'ADMIN_API_KEY',
      'DEV_API_KEY',
      'GRAPHIQL',
      'LOG_LEVEL',
      'DATA_DIR',
    ];
    expect(readConfig(Object.fromEntries(names.map((name) => [name, ''])))).toEqual(readConfig({}));
  });

  it('switches the development conveniences off outside development, unless it is told otherwise', () => {
    expect(readConfig(servers)).toMatchObject({ embedded: false, graphiql: false, introspection: false });
    expect(readConfig({ REDIS_URL: servers.REDIS_URL })).toMatchObject({ graphiql: false, introspection: false });
    expect(readConfig({ ...servers, GRAPHIQL: 'true' })).toMatchObject({ graphiql: true, introspection: false });
  });

  it('refuses a development key beside real stores', () => {
    expect(linesFor({ ...servers, DEV_API_KEY: secret })).toEqual([expect.stringContaining('embedded stores only')]);
  });

  it('cannot be changed after it was read', () => {
    expect(Object.isFrozen(readConfig({}))).toBe(true);
  });

  it('is documented: the page and .env.example name every variable that is read, and no other', () => {
    const read = [...readFileSync('src/config.ts', 'utf8').matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map((match) => match[1]);
    const page = readFileSync('docs/configuration.md', 'utf8');
    const rows = page.split('\n').filter((line) => line.startsWith('| `'));
    const documented = rows.flatMap((row) =>
      [...(row.split('|')[1] ?? '').matchAll(/`([A-Z_]+)`/g)].map((match) => match[1]),
    );
    expect(new Set(documented)).toEqual(new Set(read));
    const example = readFileSync('.env.example', 'utf8');
    const offered = [...example.matchAll(/^#?\s?([A-Z_]+)=/gm)].map((match) => match[1]);
    expect(read.filter((name) => !offered.includes(name))).toEqual([]);
  });
});
