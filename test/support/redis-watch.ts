// Every command that reaches a Redis server, as Redis itself tells it (MONITOR).
import { setTimeout as delay } from 'node:timers/promises';
import type { TestRedis } from './redis.js';

export interface RedisWatch {
  /** The commands of others since the last call, in order: names, keys and arguments. Pings and connects are left out. */
  take(): Promise<string[]>;
  close(): void;
}

const noise = /^(ping|echo|info|client|hello|select|config|monitor|script)\b/i;

export async function watchRedis(redis: TestRedis): Promise<RedisWatch> {
  const monitor = await redis.client().monitor();
  const marker = redis.client();
  let seen: string[] = [];
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    // What a script does inside is part of its one command.
    if (source !== 'lua') seen.push(args.join(' '));
  });
  let marks = 0;
  return {
    async take() {
      const mark = `mark-${(marks += 1)}`;
      await marker.echo(mark);
      while (!seen.includes(`echo ${mark}`)) await delay(1);
      const at = seen.indexOf(`echo ${mark}`);
      const taken = seen.slice(0, at);
      seen = seen.slice(at + 1);
      return taken.filter((command) => !noise.test(command));
    },
    close: () => monitor.disconnect(),
  };
}
