// Logs are structured and carry no secrets, whatever a caller passes in.
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/shared/logger.js';

const secret = 'sk_0123456789abcdef0123456789abcdef';

function record(): { lines: string[]; logger: ReturnType<typeof createLogger> } {
  const lines: string[] = [];
  return { lines, logger: createLogger('info', { write: (line) => void lines.push(line) }) };
}

describe('the logger', () => {
  it.each([
    ['secret', { secret }],
    ['apiKey', { apiKey: secret }],
    ['authorization', { authorization: `Bearer ${secret}` }],
    ['headers.authorization', { headers: { authorization: `Bearer ${secret}` } }],
    ['headers["x-api-key"]', { headers: { 'x-api-key': secret } }],
    ['a secret one level down', { payload: { secret } }],
    ['an API key one level down', { input: { apiKey: secret } }],
    ['the headers of a request', { request: { headers: { authorization: `Bearer ${secret}`, 'x-api-key': secret } } }],
  ])('leaves out %s', (_, fields) => {
    const { lines, logger } = record();
    logger.info(fields, 'something happened');
    logger.child(fields).error('something else happened');
    expect(lines).toHaveLength(2);
    expect(lines.join('')).not.toContain(secret);
    expect(lines.join('')).toContain('[Redacted]');
  });

  it('writes one JSON object a line, with an ISO time and the cause of an error', () => {
    const { lines, logger } = record();
    logger.error({ error: 'x', err: new Error('outer', { cause: new Error('inner') }) }, 'failed');
    const line = JSON.parse(lines[0] ?? '') as { time: string; msg: string; err: { message: string; stack: string } };
    expect(new Date(line.time).toISOString()).toBe(line.time);
    expect(line.msg).toBe('failed');
    expect(line.err.stack).toContain('inner');
  });

  it('is silent below its level', () => {
    const { lines, logger } = record();
    logger.debug('details');
    expect(lines).toEqual([]);
  });
});
