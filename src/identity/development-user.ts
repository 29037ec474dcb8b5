// With embedded stores there is one developer at one machine: a user is there from the start, with a key that can be shown.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PrismaClient } from '../generated/prisma/client.js';
import { createId } from '../shared/ids.js';
import { apiKeyColumns } from './api-key-service.js';
import { agentTokenPrefix, apiKeyPrefix, createSecret, hashSecret } from './secrets.js';

const userName = 'Developer';
const keyName = 'development key';
const fileName = 'development-key';

interface Dependencies {
  prisma: Pick<PrismaClient, 'apiKey' | 'user'>;
  /** Where a made-up secret is kept between starts, readable by its owner only. */
  dataDirectory: string;
  /** The secret that the developer chose; undefined: one is made. */
  chosenSecret: string | undefined;
}

/** Makes sure that the development user exists and that its secret works. Returns the secret. */
export async function ensureDevelopmentUser({ prisma, dataDirectory, chosenSecret }: Dependencies): Promise<string> {
  if (chosenSecret?.startsWith(agentTokenPrefix)) {
    throw new Error(`DEV_API_KEY begins with ${agentTokenPrefix}, as agent tokens do: choose another one`);
  }
  const path = join(dataDirectory, fileName);
  const secret = chosenSecret ?? (await readSecret(path)) ?? createSecret(apiKeyPrefix);
  const known = await prisma.apiKey.findUnique({ where: { secretHash: hashSecret(secret) } });
  const isUsable = known === null || (known.revokedAt === null && known.expiresAt === null);
  if (!isUsable && chosenSecret !== undefined) throw new Error('DEV_API_KEY was revoked: choose another one');

  const working = isUsable ? secret : createSecret(apiKeyPrefix);
  if (known === null || !isUsable) {
    const ownerId = await findOrCreateUser(prisma);
    await prisma.apiKey.create({ data: apiKeyColumns(ownerId, keyName, working) });
  }
  if (chosenSecret === undefined) await writeFile(path, `${working}\n`, { mode: 0o600 });
  return working;
}

async function readSecret(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim() || undefined;
  } catch {
    // Not there yet: the first start.
    return undefined;
  }
}

async function findOrCreateUser(prisma: Dependencies['prisma']): Promise<string> {
  const earlier = await prisma.apiKey.findFirst({
    where: { name: keyName, owner: { name: userName } },
    orderBy: { id: 'asc' },
  });
  if (earlier) return earlier.ownerId;
  const user = await prisma.user.create({ data: { id: createId('user'), name: userName } });
  return user.id;
}
