// The environment, checked once and frozen: docs/configuration.md explains each variable.
import { z } from 'zod';

const wholeNumber = (minimum: number, maximum = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .regex(/^\d{1,16}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, `must be between ${minimum} and ${maximum}`);

const flag = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true');

const urlOf = (...protocols: string[]) =>
  z
    .string()
    .refine(
      (text) => URL.canParse(text) && protocols.includes(new URL(text).protocol),
      `must be a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
    );

const secret = z
  .string()
  .refine((text) => text.length >= 20 && text.length <= 200, 'must have 20 to 200 characters')
  .refine(
    (text) => /^[\x21-\x7e]+$/.test(text),
    'must consist of visible ASCII characters without spaces: it travels in a header',
  );

/** A key of somebody else's making: any length, but fit for a header. */
const headerText = z
  .string()
  .refine((text) => /^[\x21-\x7e]+$/.test(text), 'must consist of visible ASCII characters without spaces');

const origins = z.string().transform((text, context) => {
  const list = text
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '');
  for (const origin of list) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
      context.addIssue({ code: 'custom', message: `"${origin}" is no origin such as https://app.example.com` });
    }
  }
  return list;
});

const environment = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: wholeNumber(0, 65_535).default(4000),
  DATABASE_URL: urlOf('postgresql:', 'postgres:').optional(),
  REDIS_URL: urlOf('redis:', 'rediss:').optional(),
  DATA_DIR: z.string().default('.data'),
  ADMIN_API_KEY: secret.optional(),
  DEV_API_KEY: secret.optional(),
  METRICS_TOKEN: secret.optional(),
  REDIS_SCRATCHPAD_TTL_SECONDS: wholeNumber(0, 315_360_000).default(86_400),
  MAX_BODY_BYTES: wholeNumber(1024).default(8_388_608),
  RATE_LIMIT_PER_MINUTE: wholeNumber(0, 1_000_000_000).default(0),
  MAX_CONTENT_BYTES: wholeNumber(1).default(1_048_576),
  MAX_ENTRY_BYTES: wholeNumber(1).default(65_536),
  MAX_ENTRIES: wholeNumber(1).default(100_000),
  FORMATTED_VIEW_MAX_BYTES: wholeNumber(1024).default(65_536),
  SUBSCRIBER_BUFFER_EVENTS: wholeNumber(1).default(1000),
  LLM_BASE_URL: urlOf('http:', 'https:').optional(),
  LLM_API_KEY: headerText.optional(),
  LLM_MODEL: headerText.optional(),
  SEARXNG_URL: urlOf('http:', 'https:').optional(),
  RUN_WORKERS: wholeNumber(0, 1000).default(2),
  RUN_MAX_SECONDS: wholeNumber(1, 604_800).default(1800),
  RUN_EVENTS_TTL_SECONDS: wholeNumber(1, 315_360_000).default(86_400),
  CONTEXT_MAX_TOKENS: wholeNumber(1000).default(100_000),
  WEB_ALLOW_PRIVATE_HOSTS: flag.default(false),
  CORS_ORIGINS: origins.default([]),
  GRAPHIQL: flag.optional(),
  INTROSPECTION: flag.optional(),
  LOG_LEVEL: z
    .enum(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'must be trace, debug, info, warn, error, fatal or silent',
    )
    .default('info'),
});

/** Everything a process is told from outside. Bytes, seconds and counts as the names say. */
export interface Config {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Undefined: an embedded PostgreSQL (PGlite) under dataDirectory. */
  readonly databaseUrl: string | undefined;
  /** Undefined: a private redis-server with its append-only file under dataDirectory. */
  readonly redisUrl: string | undefined;
  readonly dataDirectory: string;
  /** Both stores are embedded: one machine, one developer. */
  readonly embedded: boolean;
  readonly administratorSecret: string | undefined;
  readonly developmentSecret: string | undefined;
  /** What /metrics asks for; undefined leaves it to callers on this machine. */
  readonly metricsToken: string | undefined;
  /** Lifetime of a pad's working state after its last write; 0 is for ever. */
  readonly scratchpadTtlSeconds: number;
  readonly maxBodyBytes: number;
  /** Requests a minute for each key; 0 is no limit. */
  readonly rateLimitPerMinute: number;
  readonly maxContentBytes: number;
  readonly maxEntryBytes: number;
  readonly maxEntries: number;
  readonly formattedViewMaxBytes: number;
  readonly subscriberBufferEvents: number;
  /** An OpenAI-compatible endpoint. Undefined: this server starts no runs. */
  readonly llmBaseUrl: string | undefined;
  readonly llmApiKey: string | undefined;
  /** For runs whose assistant and caller name none. */
  readonly llmModel: string | undefined;
  readonly searxngUrl: string | undefined;
  /** Root runs side by side in this process; 0 leaves them to others. */
  readonly runWorkers: number;
  readonly runMaxSeconds: number;
  readonly runEventsTtlSeconds: number;
  readonly contextMaxTokens: number;
  readonly webAllowPrivateHosts: boolean;
  readonly corsOrigins: readonly string[];
  readonly graphiql: boolean;
  readonly introspection: boolean;
  readonly logLevel: string;
}

/** One line for each mistake in the environment. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
}

/** @throws ConfigurationError that names every wrong variable and what it must be */
export function readConfig(variables: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
  const result = environment.safeParse(given);
  if (!result.success) {
    const lines = result.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`);
    throw new ConfigurationError(lines.join('\n'));
  }
  const values = result.data;
  const embedded = values.DATABASE_URL === undefined && values.REDIS_URL === undefined;
  if (values.DEV_API_KEY !== undefined && !embedded) {
    throw new ConfigurationError(
      'DEV_API_KEY works with embedded stores only: unset it, or unset DATABASE_URL and REDIS_URL',
    );
  }
  return Object.freeze({
    host: values.HOST,
    port: values.PORT,
    databaseUrl: values.DATABASE_URL,
    redisUrl: values.REDIS_URL,
    dataDirectory: values.DATA_DIR,
    embedded,
    administratorSecret: values.ADMIN_API_KEY,
    developmentSecret: values.DEV_API_KEY,
    metricsToken: values.METRICS_TOKEN,
    scratchpadTtlSeconds: values.REDIS_SCRATCHPAD_TTL_SECONDS,
    maxBodyBytes: values.MAX_BODY_BYTES,
    rateLimitPerMinute: values.RATE_LIMIT_PER_MINUTE,
    maxContentBytes: values.MAX_CONTENT_BYTES,
    maxEntryBytes: values.MAX_ENTRY_BYTES,
    maxEntries: values.MAX_ENTRIES,
    formattedViewMaxBytes: values.FORMATTED_VIEW_MAX_BYTES,
    subscriberBufferEvents: values.SUBSCRIBER_BUFFER_EVENTS,
    llmBaseUrl: values.LLM_BASE_URL,
    llmApiKey: values.LLM_API_KEY,
    llmModel: values.LLM_MODEL,
    searxngUrl: values.SEARXNG_URL,
    runWorkers: values.RUN_WORKERS,
    runMaxSeconds: values.RUN_MAX_SECONDS,
    runEventsTtlSeconds: values.RUN_EVENTS_TTL_SECONDS,
    contextMaxTokens: values.CONTEXT_MAX_TOKENS,
    webAllowPrivateHosts: values.WEB_ALLOW_PRIVATE_HOSTS,
    corsOrigins: values.CORS_ORIGINS,
    graphiql: values.GRAPHIQL ?? embedded,
    introspection: values.INTROSPECTION ?? embedded,
    logLevel: values.LOG_LEVEL,
  });
}
