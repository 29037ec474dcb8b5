// Connections to permitted addresses only, decided where the connection is made: nothing is looked up a second time.
import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector } from 'undici';
import { PageError } from './page-error.js';
import { isPublicAddress } from './public-address.js';

/** All addresses of a host. */
export type ResolveHost = (hostname: string) => Promise<string[]>;

export interface GuardedAgentOptions {
  /** @default isPublicAddress */
  isPermitted?: (address: string) => boolean;
  /** @default the system's resolver */
  resolve?: ResolveHost;
  connectTimeoutMs: number;
}

const resolveWithSystem: ResolveHost = async (hostname) =>
  (await lookup(hostname, { all: true, verbatim: true })).map(({ address }) => address);

const refusal = (): PageError =>
  new PageError('ADDRESS_REFUSED', 'This address is not on the public internet and cannot be read.');

export function createGuardedAgent(options: GuardedAgentOptions): Agent {
  const { isPermitted = isPublicAddress, resolve = resolveWithSystem, connectTimeoutMs } = options;

  /** One address that is not permitted makes the whole host suspicious: it is refused, not picked around. */
  async function resolvePermitted(hostname: string): Promise<{ address: string; family: number }[]> {
    const addresses = await resolve(hostname).catch(() => []);
    if (addresses.length === 0) throw new PageError('UNREACHABLE', 'The host of this address was not found.');
    if (!addresses.every(isPermitted)) throw refusal();
    return addresses.map((address) => ({ address, family: isIP(address) }));
  }

  const lookupPermitted: LookupFunction = (hostname, { all }, callback) => {
    const answer = async (): Promise<void> => {
      const found = await resolvePermitted(hostname).catch((error: Error) => error);
      if (found instanceof Error) callback(found, '');
      else if (all) callback(null, found);
      else callback(null, found[0]?.address ?? '', found[0]?.family);
    };
    void answer();
  };
  const connect = buildConnector({ timeout: connectTimeoutMs, lookup: lookupPermitted });

  return new Agent({
    connect(target, callback) {
      const hostname = target.hostname.replace(/^\[|\]$/g, '');
      // An address in the URL itself is never looked up.
      if (isIP(hostname) !== 0 && !isPermitted(hostname)) {
        callback(refusal(), null);
        return;
      }
      connect(target, (error, socket) => {
        if (error || !socket) {
          callback(error ?? new Error('No connection was made.'), null);
        } else if (!isPermitted(socket.remoteAddress ?? '')) {
          socket.destroy();
          callback(refusal(), null);
        } else {
          callback(null, socket);
        }
      });
    },
  });
}
