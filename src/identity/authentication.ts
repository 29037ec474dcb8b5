// From a secret to a principal, and the end of that principal when its key is revoked, expires or is deleted.
import type { PrismaClient } from '../generated/prisma/client.js';
import type { Clock } from '../shared/clock.js';
import { unauthenticated, type DomainError } from '../shared/errors.js';
import type { Logger } from '../shared/logger.js';
import type { Principal, UserPrincipal } from './principal.js';
import { hashSecret, isSameSecret } from './secrets.js';

export interface Authentication {
  /**
   * The principal behind a secret. A busy client costs one SQL statement a second: hits are cached that long, misses never.
   * @throws DomainError UNAUTHENTICATED for a missing, unknown, expired or revoked secret
   */
  authenticate(secret: string | undefined): Promise<Principal>;
  /** Calls `onEnd` once, within 2 s of the key's revocation, expiry or deletion on any process. Returns the way to stop. */
  watch(principal: Principal, onEnd: (error: DomainError) => void): () => void;
  /** Forgets what is cached of a user's keys, so that a change made here holds here at once. */
  forgetUser(userId: string): void;
  /** Ends the background loop and writes down the last uses that are still in memory. */
  close(): Promise<void>;
}

interface Dependencies {
  prisma: Pick<PrismaClient, 'apiKey'>;
  /** The administrator's secret; undefined means that there is no administrator. */
  administratorSecret: string | undefined;
  now: Clock;
  logger: Logger;
}

interface CachedKey {
  principal: UserPrincipal;
  expiresAt: Date | null;
  staleAtMs: number;
}

const cacheMs = 1000;
const checkIntervalMs = 1000;
const lastUseIntervalMs = 5000;
const sweepAboveKeys = 10_000;

const isLive = (key: { revokedAt: Date | null; expiresAt: Date | null }, now: Date): boolean =>
  key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now);

export function createAuthentication({ prisma, administratorSecret, now, logger }: Dependencies): Authentication {
  const cache = new Map<string, CachedKey>();
  const lookups = new Map<string, Promise<UserPrincipal>>();
  const watchers = new Map<string, Set<(error: DomainError) => void>>();
  const lastUses = new Map<string, Date>();

  async function lookUp(secretHash: string): Promise<UserPrincipal> {
    const askedAtMs = now().getTime();
    const key = await prisma.apiKey.findUnique({
      where: { secretHash },
      select: { id: true, ownerId: true, revokedAt: true, expiresAt: true },
    });
    if (!key || !isLive(key, now())) throw unauthenticated();
    const principal: UserPrincipal = { kind: 'user', userId: key.ownerId, apiKeyId: key.id };
    if (cache.size > sweepAboveKeys) sweepCache();
    cache.set(secretHash, { principal, expiresAt: key.expiresAt, staleAtMs: askedAtMs + cacheMs });
    return principal;
  }

  function sweepCache(): void {
    const nowMs = now().getTime();
    for (const [hash, entry] of cache) if (entry.staleAtMs <= nowMs) cache.delete(hash);
  }

  /** Concurrent first requests of one key share one statement. */
  function lookUpOnce(secretHash: string): Promise<UserPrincipal> {
    const running = lookups.get(secretHash);
    if (running) return running;
    const lookup = lookUp(secretHash).finally(() => lookups.delete(secretHash));
    lookups.set(secretHash, lookup);
    return lookup;
  }

  async function endDeadWatchers(): Promise<void> {
    const watched = [...watchers.keys()];
    if (watched.length === 0) return;
    const keys = await prisma.apiKey.findMany({
      where: { id: { in: watched } },
      select: { id: true, revokedAt: true, expiresAt: true },
    });
    const live = new Set(keys.filter((key) => isLive(key, now())).map((key) => key.id));
    for (const id of watched) if (!live.has(id)) endWatchersOf(id);
  }

  function endWatchersOf(apiKeyId: string): void {
    const ending = watchers.get(apiKeyId) ?? [];
    watchers.delete(apiKeyId);
    for (const onEnd of ending) onEnd(unauthenticated());
  }

  async function writeLastUses(): Promise<void> {
    const uses = [...lastUses];
    lastUses.clear();
    for (const [id, lastUsedAt] of uses) {
      await prisma.apiKey.updateMany({ where: { id }, data: { lastUsedAt } });
    }
  }

  // With SQL away nobody can tell whether a key was revoked: what is open stays open until SQL answers again.
  const checkTimer = setInterval(() => {
    endDeadWatchers().catch((error: unknown) =>
      logger.warn({ error }, 'could not check the keys of open subscriptions'),
    );
  }, checkIntervalMs);
  const lastUseTimer = setInterval(() => {
    writeLastUses().catch((error: unknown) => logger.warn({ error }, 'could not write when keys were last used'));
  }, lastUseIntervalMs);
  checkTimer.unref();
  lastUseTimer.unref();

  return {
    async authenticate(secret) {
      if (secret === undefined || secret === '') throw unauthenticated();
      if (administratorSecret !== undefined && isSameSecret(secret, administratorSecret)) {
        return { kind: 'administrator' };
      }
      const secretHash = hashSecret(secret);
      const cached = cache.get(secretHash);
      const at = now();
      if (cached && cached.staleAtMs > at.getTime()) {
        if (cached.expiresAt !== null && cached.expiresAt <= at) throw unauthenticated();
        lastUses.set(cached.principal.apiKeyId, at);
        return cached.principal;
      }
      const principal = await lookUpOnce(secretHash);
      lastUses.set(principal.apiKeyId, at);
      return principal;
    },

    watch(principal, onEnd) {
      if (principal.kind !== 'user') return () => {};
      const { apiKeyId } = principal;
      const callbacks = watchers.get(apiKeyId) ?? new Set();
      watchers.set(apiKeyId, callbacks.add(onEnd));
      return () => {
        callbacks.delete(onEnd);
        if (callbacks.size === 0 && watchers.get(apiKeyId) === callbacks) watchers.delete(apiKeyId);
      };
    },

    forgetUser(userId) {
      for (const [hash, { principal }] of cache) if (principal.userId === userId) cache.delete(hash);
    },

    async close() {
      clearInterval(checkTimer);
      clearInterval(lastUseTimer);
      await writeLastUses().catch((error: unknown) =>
        logger.warn({ error }, 'could not write when keys were last used'),
      );
    },
  };
}
