// Fields that several resources have: how they are checked, shown and documented.
import { z } from '@hono/zod-openapi';
import { jsonObject, type JsonObject } from '../../shared/json.js';
import { storableText } from '../../shared/text.js';
import type { Prisma } from '../../generated/prisma/client.js';

// Schemas of shared/ are made before zod is extended with openapi(): their clones have it.

/** Text of a request that is kept exactly. */
export const text = storableText.clone();

const anyObject = { type: 'object', additionalProperties: true } as const;

const description = 'Any JSON object of at most 64 KiB and 32 levels. It replaces the one before it as a whole.';

/** Metadata in a request. */
export const metaDataInput = jsonObject.clone().openapi({ ...anyObject, description });

/** The same where it may be left out: null and absent are the same. */
export const optionalMetaDataInput = jsonObject
  .clone()
  .nullish()
  .openapi({ type: ['object', 'null'], additionalProperties: true, description });

/** Metadata in an answer. */
export const metaDataOutput = z.custom<JsonObject>().openapi({ ...anyObject, example: { topic: 'solar' } });

/** Only ever written through the jsonObject schema. */
export const toMetaData = (stored: Prisma.JsonValue): JsonObject => stored as JsonObject;

export const instant = z.string().openapi({ format: 'date-time', example: '2026-01-31T09:30:00.000Z' });

/** The SDK reads threads' and messages' instants so. */
export const unixSeconds = z.int().openapi({ description: 'Unix time in seconds.', example: 1_769_851_800 });

export const toUnixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);
