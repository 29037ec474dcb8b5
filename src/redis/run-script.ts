// Runs a Lua script by its hash, and by its text where a server does not know it yet.
import type { RedisCommands } from './redis-access.js';

/** Every key is declared: in KEYS, in the order of the script's header. */
export type RunScript = (keys: readonly string[], values: readonly (string | number)[]) => Promise<unknown>;

/** @param name unique on this client; only for traces */
export function defineScript(commands: RedisCommands, name: string, lua: string): RunScript {
  commands.defineCommand(name, { lua });
  const run = Reflect.get(commands, name) as (...values: (string | number)[]) => Promise<unknown>;
  return (keys, values) => run.call(commands, keys.length, ...keys, ...values);
}
