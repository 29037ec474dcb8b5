// What a body that is JSON says of itself: the same at every door.
import type { IncomingHttpHeaders } from 'node:http';

/** Why the body is not read; undefined when it may be. Forms and plain text could come from a page of a foreign origin, unasked. */
export function whyNotJson(headers: IncomingHttpHeaders): string | undefined {
  // What nearly everybody sends.
  if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined) return undefined;
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  if (type.trim() !== 'application/json') return 'Send the body as JSON with "Content-Type: application/json".';
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('charset='));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset)) {
    return 'JSON travels as UTF-8: send "Content-Type: application/json; charset=utf-8".';
  }
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity';
  return encoding === 'identity' ? undefined : 'Compressed bodies are not read: send the JSON as it is.';
}
