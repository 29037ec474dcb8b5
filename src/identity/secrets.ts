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

/** Secrets that come again and again are hashed once, and remembered for no longer than this. */
const rememberedMs = 1000;
const mostRemembered = 1000;

/**
 * `hashSecret` for what every request brings along. A Map compares texts only where their hashes, which nobody outside can work out, are
 * equal: no time tells how much of a secret is right.
 */
export function createSecretHasher(hashOne = hashSecret): (secret: string, at: Date) => string {
  const hashes = new Map<string, string>();
  let forgetAtMs = 0;
  return (secret, at) => {
    const nowMs = at.getTime();
    if (nowMs >= forgetAtMs || hashes.size > mostRemembered) {
      hashes.clear();
      forgetAtMs = nowMs + rememberedMs;
    }
    let secretHash = hashes.get(secret);
    if (secretHash === undefined) {
      secretHash = hashOne(secret);
      hashes.set(secret, secretHash);
    }
    return secretHash;
  };
}

/** The part of a secret that may be shown for ever: enough to recognise it, nothing to use it with. */
export const visiblePrefix = (secret: string): string => secret.slice(0, shownCharacters);

/** Compares what `hashSecret` made, in constant time. */
export const isSameHash = (given: string, expected: string): boolean =>
  timingSafeEqual(Buffer.from(given), Buffer.from(expected));
