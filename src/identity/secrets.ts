// Credentials: 256 random bits behind a recognisable prefix, shown once, kept only as a hash.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** How an API key begins, so that a person and a secret scanner recognise one. */
export const apiKeyPrefix = 'spk_';

/** How an agent token begins. */
export const agentTokenPrefix = 'spa_';

const shownCharacters = 12;

/** A fresh credential. `prefix` says which kind it is. */
export const createSecret = (prefix: string): string => prefix + randomBytes(32).toString('base64url');

/** SHA-256, hexadecimal. A slow hash would add nothing: there is no guessing 256 random bits. */
export const hashSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex');

/** The part of a secret that may be shown for ever: enough to recognise it, nothing to use it with. */
export const visiblePrefix = (secret: string): string => secret.slice(0, shownCharacters);

/** Compares in constant time, whatever the lengths. */
export const isSameSecret = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(hashSecret(given)), Buffer.from(hashSecret(expected)));
