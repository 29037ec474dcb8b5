// A server that cannot start leaves nothing behind that would keep working: no timer, no connection.
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createApp } from '../../../src/app.js';
import { readConfig } from '../../../src/config.js';
import { createLogger } from '../../../src/shared/logger.js';
import { startService, type Service } from '../../support/service.js';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

it('whose address is taken ends its timers and its connections', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.once('listening', resolve));
  const { port } = taken.address() as AddressInfo;
  const config = readConfig({ PORT: String(port), DATABASE_URL: service.databaseUrl, REDIS_URL: service.redis.url });
  const connectionsOf = async (): Promise<number> =>
    String(await service.redis.client().client('LIST')).match(/name=scratchpad-/g)?.length ?? 0;
  const before = await connectionsOf();
  const set = vi.spyOn(globalThis, 'setInterval');
  const cleared = vi.spyOn(globalThis, 'clearInterval');
  await expect(createApp(config, { logger: createLogger('silent') })).rejects.toThrow(/EADDRINUSE/);
  const endings = new Set(cleared.mock.calls.map(([timer]) => timer));
  // Those of authentication at least, so that this is about something.
  expect(set.mock.calls.length).toBeGreaterThanOrEqual(2);
  const left = set.mock.calls.filter((_call, index) => !endings.has(set.mock.results[index]?.value));
  expect(left.map(([callback, ms]) => `${ms} ms: ${String(callback)}`)).toEqual([]);
  await expect.poll(connectionsOf).toBe(before);
  set.mockRestore();
  cleared.mockRestore();
  await new Promise((resolve) => taken.close(resolve));
});
