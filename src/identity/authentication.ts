// From a secret to a principal, and the end of that principal when its key or token is revoked, expires or is deleted.
import type { PrismaClient } from '../generated/prisma/client.js';
import type { Clock } from '../shared/clock.js';
import { unauthenticated, type DomainError } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';
import { createCredentialRows, credentialIdOf, type Credential, type CredentialTerm } from './credential-rows.js';
import type { Principal } from './principal.js';
import { createSecretHasher, hashSecret, isSameHash } from './secrets.js';

export interface Authentication {
  /**
   * The principal behind a secret, for one request or operation, which counts against the limit of its key. A busy client costs two SQL
   * statements a second: hits are cached for one, misses never.
   * @throws DomainError UNAUTHENTICATED for a missing, unknown, expired or revoked secret, RATE_LIMITED; at once or by a promise
   */
  authenticate(secret: string | undefined): Principal | Promise<Principal>;
  /** The same without counting: for what opens a connection and asks nothing yet. @throws DomainError UNAUTHENTICATED */
  identify(secret: string | undefined): Promise<Principal>;
  /** Calls `onEnd` once, within 2 s of the credential's revocation, expiry or deletion on any process. Returns the way to stop. */
  watch(principal: Principal, onEnd: (error: DomainError) => void): () => void;
  /** Forgets what is cached of a user's keys and tokens, so that a change made here holds here at once. */
  forgetUser(userId: string): void;
  /** Ends the background loop and writes down the last uses that are still in memory. */
  close(): Promise<void>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'apiKey' | 'agentToken'>;
  /** The administrator's secret; undefined means that there is no administrator. */
  administratorSecret: string | undefined;
  /** Counts a request of this key. @throws DomainError RATE_LIMITED */
  countRequest: (credentialId: string) => Promise<void> | undefined;
  now: Clock;
  logger: Logger;
}

interface CachedCredential extends Credential {
  staleAtMs: number;
}

const cacheMs = 1000;
/** With less than this left, SQL is asked ahead: no request of a busy client waits for it once a second. */
const renewalMs = 500;
/** Two looks take less than the two seconds in which a revocation has to hold. */
const checkIntervalMs = 750;
const lastUseIntervalMs = 5000;
const sweepAboveCredentials = 10_000;

const isLive = ({ revokedAt, expiresAt }: Omit<CredentialTerm, 'id'>, now: Date): boolean =>
  revokedAt === null && (expiresAt === null || expiresAt > now);

const ownerOf = ({ principal }: Credential): string =>
  principal.kind === 'user' ? principal.userId : principal.ownerId;

export function createAuthentication(dependencies: Dependencies): Authentication {
  const { prisma, administratorSecret, countRequest, now, logger } = dependencies;
  const rows = createCredentialRows(prisma);
  const administratorHash = administratorSecret === undefined ? undefined : hashSecret(administratorSecret);
  const hashOf = createSecretHasher();
  const cache = new Map<string, CachedCredential>();
  /** An answer that was on its way when something changed is not remembered, nor shared with who asks from now on. */
  let changes = 0;
  const lookups = new Map<string, Promise<Credential>>();
  const watchers = new Map<string, Set<(error: DomainError) => void>>();
  /** Watched credentials whose rows were gone at the last look. */
  let missedBefore = new Set<string>();
  const lastUses = new Map<string, Date>();

  async function lookUp(secret: string, secretHash: string): Promise<Credential> {
    const askedAtMs = now().getTime();
    const changesBefore = changes;
    const credential = await rows.find(secret);
    if (!credential || !isLive(credential, now())) {
      cache.delete(secretHash);
      throw unauthenticated();
    }
    if (cache.size > sweepAboveCredentials) sweepCache();
    if (changes === changesBefore) cache.set(secretHash, { ...credential, staleAtMs: askedAtMs + cacheMs });
    return credential;
  }

  function sweepCache(): void {
    const nowMs = now().getTime();
    for (const [hash, entry] of cache) if (entry.staleAtMs <= nowMs) cache.delete(hash);
  }

  /** Concurrent first requests with one secret share one statement. */
  function lookUpOnce(secret: string, secretHash: string): Promise<Credential> {
    const running = lookups.get(secretHash);
    if (running) return running;
    const lookup = lookUp(secret, secretHash).finally(() => {
      if (lookups.get(secretHash) === lookup) lookups.delete(secretHash);
    });
    lookups.set(secretHash, lookup);
    return lookup;
  }

  /**
   * A credential without a row went with what it was for, and DELETE is on its way to whoever watches that: a second look ends what
   * nobody told.
   */
  async function endDeadWatchers(): Promise<void> {
    const watched = [...watchers.keys()];
    const terms = new Map((watched.length === 0 ? [] : await rows.termsOf(watched)).map((term) => [term.id, term]));
    const missing = watched.filter((id) => !terms.has(id));
    for (const id of watched) {
      const term = terms.get(id);
      if (term ? !isLive(term, now()) : missedBefore.has(id)) endWatchersOf(id);
    }
    missedBefore = new Set(missing);
  }

  function endWatchersOf(credentialId: string): void {
    const ending = watchers.get(credentialId) ?? [];
    watchers.delete(credentialId);
    for (const onEnd of ending) onEnd(unauthenticated());
  }

  /** What could not be written stays for the next time, behind the others. */
  async function writeLastUses(): Promise<void> {
    // What is used meanwhile is for the next time.
    const uses = [...lastUses];
    for (const [id, lastUsedAt] of uses) {
      lastUses.delete(id);
      try {
        await rows.noteUse(id, lastUsedAt);
      } catch (error) {
        if (!lastUses.has(id)) lastUses.set(id, lastUsedAt);
        throw error;
      }
    }
  }

  /** From the cache; undefined when SQL has to be asked. */
  function recall(secret: string, secretHash: string, at: Date): Principal | undefined {
    const cached = cache.get(secretHash);
    if (!cached || cached.staleAtMs <= at.getTime()) return undefined;
    if (cached.expiresAt !== null && cached.expiresAt <= at) throw unauthenticated();
    lastUses.set(cached.id, at);
    // Without SQL the next one to be told so is who comes when the second is over.
    if (cached.staleAtMs - at.getTime() < renewalMs) lookUpOnce(secret, secretHash).catch(() => undefined);
    return cached.principal;
  }

  async function find(secret: string, secretHash: string, at: Date): Promise<Principal> {
    if (administratorHash !== undefined && isSameHash(secretHash, administratorHash)) {
      return { kind: 'administrator' };
    }
    const { id, principal } = await lookUpOnce(secret, secretHash);
    lastUses.set(id, at);
    return principal;
  }

  function identifyNow(secret: string | undefined): Principal | Promise<Principal> {
    if (secret === undefined || secret === '') throw unauthenticated();
    const at = now();
    const secretHash = hashOf(secret, at);
    return recall(secret, secretHash, at) ?? find(secret, secretHash, at);
  }

  function countedFor(principal: Principal): Principal | Promise<Principal> {
    const counting = countRequest(credentialIdOf(principal) ?? principal.kind);
    return counting ? counting.then(() => principal) : principal;
  }

  // With SQL away nobody can tell whether a credential was revoked: what is open stays open until SQL answers again.
  const checkTimer = setInterval(() => {
    endDeadWatchers().catch((error: unknown) =>
      logger.warn({ error }, 'could not check the credentials of open subscriptions'),
    );
  }, checkIntervalMs);
  const lastUseTimer = setInterval(() => {
    writeLastUses().catch((error: unknown) =>
      logger.warn({ error }, 'could not write when credentials were last used'),
    );
  }, lastUseIntervalMs);
  checkTimer.unref();
  lastUseTimer.unref();

  return {
    authenticate(secret) {
      const found = identifyNow(secret);
      return found instanceof Promise ? found.then(countedFor) : countedFor(found);
    },

    identify: async (secret) => await identifyNow(secret),

    watch(principal, onEnd) {
      const credentialId = credentialIdOf(principal);
      if (credentialId === undefined) return () => {};
      const callbacks = watchers.get(credentialId) ?? new Set();
      watchers.set(credentialId, callbacks.add(onEnd));
      return () => {
        callbacks.delete(onEnd);
        if (callbacks.size === 0 && watchers.get(credentialId) === callbacks) watchers.delete(credentialId);
      };
    },

    forgetUser(userId) {
      changes += 1;
      lookups.clear();
      for (const [hash, credential] of cache) if (ownerOf(credential) === userId) cache.delete(hash);
    },

    async close() {
      clearInterval(checkTimer);
      clearInterval(lastUseTimer);
      await writeLastUses().catch((error: unknown) =>
        logger.warn({ error }, 'could not write when credentials were last used'),
      );
    },
  };
}
