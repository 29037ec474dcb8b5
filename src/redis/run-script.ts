// Runs a Lua script by its hash, and by its text where a server may not know it yet.
import { createHash } from 'node:crypto';
import { Command } from 'ioredis';
import type { RedisCommands } from './redis-access.js';

/** Every key is declared: in KEYS, in the order of the script's header. */
export type RunScript = (keys: readonly string[], values: readonly (string | number)[]) => Promise<unknown>;

/** Nothing was run: only this answer may be followed by a second attempt. */
const isUnknownScript = (error: unknown): boolean => error instanceof Error && error.message.startsWith('NOSCRIPT');

/** As `evalsha` would make it of its arguments, which it looks through for lists in them. */
class ScriptCall extends Command {
  constructor(hash: string, keys: readonly string[], values: readonly (string | number)[]) {
    super('evalsha', [], { replyEncoding: 'utf8' });
    this.args = [hash, String(keys.length), ...keys];
    for (const value of values) this.args.push(String(value));
  }

  /** Where every character is a byte, as nearly always, that is found out once for all arguments. */
  override toWritable(socket: object): string | Buffer {
    const { args } = this as { args: string[] };
    let text = `*${args.length + 1}\r\n$7\r\nevalsha\r\n`;
    for (const argument of args) text += `$${argument.length}\r\n${argument}\r\n`;
    return Buffer.byteLength(text) === text.length ? text : super.toWritable(socket);
  }
}

/** ioredis has the same as defineCommand; there each call makes a class of closures and promises that cost more than the call. */
export function defineScript(commands: RedisCommands, lua: string): RunScript {
  const hash = createHash('sha1').update(lua).digest('hex');
  // Behind a new connection there may be a new server: it is given the text with the first call, which costs no trip of its own.
  let taughtOver: object | undefined;
  return async (keys, values) => {
    if (taughtOver !== commands.stream) {
      taughtOver = commands.stream;
      return await commands.eval(lua, keys.length, ...keys, ...values);
    }
    try {
      return await commands.sendCommand(new ScriptCall(hash, keys, values));
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return await commands.eval(lua, keys.length, ...keys, ...values);
    }
  };
}
