// Credentials: 256 random bits behind a recognisable prefix, shown once, kept only as a hash.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** How an API key begins, so that a person and a secret scanner recognise one. */
export const apiKeyPrefix = 'spk_';

/** How an agent token begins. */
export const agentTokenPrefix = 'spa_';

const shownCharacters = 12;

/** A fresh credential. `prefix` says which kind it is. */
export const createSecret = (prefix: string): string => prefix + randomBytes(32).toString('base64url');

/** SHA-256, hexadecimal. A slow hash would add nothing: there is no guessing 256 random bits. */
export const hashSecret = (secret: string): string => hash('sha256', secret, 'hex');

/** The part of a secret that may be shown for ever: enough to recognise it, nothing to use it with. */
export const visiblePrefix = (secret: string): string => secret.slice(0, shownCharacters);

/** Compares what `hashSecret` made, in constant time. */
export const isSameHash = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(given), Buffer.from(expected));
