// Which IP addresses are on the public internet. Everything else is refused: ours, the machine's, the cloud's.
import { BlockList, isIP } from 'node:net';

const refusedIpv4 = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  refusedIpv4.addSubnet(network, prefix, 'ipv4');
}

/** Global unicast. What carries an IPv4 address inside (mapped, NAT64, 6to4, Teredo) is outside of it or refused below. */
const globalIpv6 = new BlockList();
globalIpv6.addSubnet('2000::', 3, 'ipv6');

const refusedIpv6 = new BlockList();
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  refusedIpv6.addSubnet(network, prefix, 'ipv6');
}

/** @param address an IP address in text form; anything else is not public */
export function isPublicAddress(address: string): boolean {
  const bare = address.split('%')[0] ?? '';
  const family = isIP(bare);
  if (family === 4) return !refusedIpv4.check(bare, 'ipv4');
  return family === 6 && globalIpv6.check(bare, 'ipv6') && !refusedIpv6.check(bare, 'ipv6');
}
