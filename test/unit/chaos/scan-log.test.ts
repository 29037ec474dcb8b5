// The reader of server logs finds what nobody was told.
import { expect, it } from 'vitest';
import { scanLog } from '../../chaos/support/scan-log.js';

const line = (level: number, msg: string): string => JSON.stringify({ level, time: 'now', msg });

it('accepts lines of operation and warnings, the inspector, and the half line of a killed process', () => {
  const half = line(30, 'request').slice(0, 30);
  const text = [line(30, 'listening'), line(40, 'lost a connection'), 'Debugger listening on ws://x', half].join('\n');
  expect(scanLog(text)).toEqual([]);
});

it('finds errors, fatal ones, and whatever the runtime prints', () => {
  const crash = ['node:internal/process/promises:389', 'UnhandledPromiseRejection: reason'];
  const warning = '(node:1) MaxListenersExceededWarning: Possible EventTarget memory leak detected.';
  const text = [line(50, 'unexpected error'), line(60, 'could not start'), ...crash, warning].join('\n');
  expect(scanLog(text).map(({ reason }) => reason)).toEqual([
    'is an error',
    'is an error',
    'is no log line',
    'is no log line',
    'is no log line',
  ]);
});
