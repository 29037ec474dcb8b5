// Logs are structured and carry no secrets, whatever a caller passes in.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createLogger, writePlainLine } from '../../../src/shared/logger.js';

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

describe('standard output', () => {
  const start = (program: string) =>
    spawn(
      process.execPath,
      [
        '--import',
        'tsx',
        '--input-type=module',
        '--eval',
        `import { createLogger } from ${JSON.stringify(fileURLToPath(new URL('../../../src/shared/logger.ts', import.meta.url)))};
         const logger = createLogger('info');
         ${program}`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
  const read = async (child: ReturnType<typeof start>): Promise<string> => {
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await once(child, 'close');
    return text;
  };

  it.each(['process.exit(3)', 'logger.fatal("last words")', 'throw new Error("a bug")', 'process.exitCode = 3'])(
    'has every line in order when the process ends by %s',
    async (end) => {
      const child = start(`for (let line = 0; line < 100; line += 1) logger.info({ line }, 'x'); ${end}`);
      const lines = (await read(child)).trim().split('\n').slice(0, 100);
      expect(lines.map((line) => (JSON.parse(line) as { line: number }).line)).toEqual([...Array(100).keys()]);
    },
  );

  it('that nobody reads any more does not hold the process up', async () => {
    const child = start(`let line = 0;
      setInterval(() => { logger.info({ line: (line += 1) }, 'x'); if (line === 100) process.exit(7); }, 5);`);
    child.stdout.destroy();
    const [code] = (await once(child, 'exit')) as [number];
    expect(code).toBe(7);
  });
});

describe('a plain line', () => {
  const members = { path: '/a "quoted" path', status: 200, stream: true, outcome: undefined, msg: 'request' };

  it('is what the logger itself would write', () => {
    const { lines, logger } = record();
    logger.info(members);
    writePlainLine(logger, members);
    const [own, plain] = lines.map((line) => ({ ...(JSON.parse(line) as object), time: '' }));
    expect(plain).toEqual(own);
    expect(lines[1]).toMatch(/^\{.*"time":"\d{4}-\d\d-\d\dT[\d:.]+Z".*\}\n$/);
  });

  it('is left out where the level is above it', () => {
    const lines: string[] = [];
    writePlainLine(createLogger('warn', { write: (line) => void lines.push(line) }), members);
    expect(lines).toEqual([]);
  });

  it('says in a plain line when it was written, also where many are within one millisecond', async () => {
    const { lines, logger } = record();
    const before = Date.now();
    for (let round = 0; round < 5; round += 1) {
      for (let number = 0; number < 20; number += 1) writePlainLine(logger, { number });
      await delay(5);
    }
    const times = lines.map((line) => Date.parse((JSON.parse(line) as { time: string }).time));
    expect(times).toHaveLength(100);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times[0]).toBeGreaterThanOrEqual(before);
    expect(times.at(-1)! - times[0]!).toBeGreaterThanOrEqual(15);
    expect(times.at(-1)).toBeLessThanOrEqual(Date.now());
  });
});
