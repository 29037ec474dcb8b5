import { describe, expect, it } from 'vitest';
import { citedUrls, unverifiedCitations } from '../../../src/research/citations.js';
import { createConcurrencyGate } from '../../../src/research/concurrency-gate.js';

describe('the addresses in an answer', () => {
  it.each([
    ['See https://a.example/tides.', ['https://a.example/tides']],
    ['(https://a.example/tides), and so on', ['https://a.example/tides']],
    ['[the table](https://a.example/tides?y=1#may)!', ['https://a.example/tides?y=1#may']],
    ['[https://a.example](https://a.example)', ['https://a.example']],
    ['https://a.example/Fundy_(bay)', ['https://a.example/Fundy_(bay)']],
    ['(see https://a.example/Fundy_(bay))', ['https://a.example/Fundy_(bay)']],
    [
      '**https://a.example/x** <https://b.example/y> "http://c.example"',
      ['https://a.example/x', 'https://b.example/y', 'http://c.example'],
    ],
    ['https://a.example/x and again https://a.example/x', ['https://a.example/x']],
    ['https:// is no address, nor is ftp://a.example', []],
  ])('are found in %j', (text, urls) => {
    expect(citedUrls(text)).toEqual(urls);
  });

  it('are unverified when nobody fetched them, whatever the fragment and the last slash', () => {
    const fetched = ['https://a.example/', 'https://b.example/x'];
    const text = 'https://a.example and https://B.example/x/#part, but https://c.example/y and https://b.example/X';
    expect(unverifiedCitations(text, fetched)).toEqual(['https://c.example/y', 'https://b.example/X']);
    expect(unverifiedCitations('nothing', [])).toEqual([]);
  });
});

describe('a concurrency gate', () => {
  it('runs so many at a time, the others in order, and goes on after a failure', async () => {
    const gate = createConcurrencyGate(2);
    const log: string[] = [];
    const finish = new Map<string, () => void>();
    const never = new AbortController().signal;
    const start = (name: string) =>
      gate.run(() => {
        log.push(name);
        return new Promise<string>((resolve, reject) => {
          finish.set(name, () => (name === 'a' ? reject(new Error('a failed')) : resolve(name)));
        });
      }, never);
    const all = Promise.allSettled(['a', 'b', 'c', 'd'].map(start));
    await expect.poll(() => log).toEqual(['a', 'b']);
    finish.get('a')!();
    await expect.poll(() => log).toEqual(['a', 'b', 'c']);
    finish.get('c')!();
    await expect.poll(() => log).toEqual(['a', 'b', 'c', 'd']);
    finish.get('b')!();
    finish.get('d')!();
    expect((await all).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled', 'fulfilled']);
  });

  it('lets any number wait for one signal without a warning of the process', async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error): void => void warnings.push(warning);
    process.on('warning', hear);
    const gate = createConcurrencyGate(1);
    const abort = new AbortController();
    let began = 0;
    const all = Array.from({ length: 50 }, () =>
      gate.run(() => new Promise<void>(() => (began += 1)), abort.signal).catch(() => 'let go'),
    );
    abort.abort(new Error('cancelled'));
    expect(await Promise.all(all.slice(1))).toEqual(Array.from({ length: 49 }, () => 'let go'));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', hear);
    expect({ began, warnings }).toEqual({ began: 1, warnings: [] });
  });

  it('lets go of who is aborted while waiting, and of nobody else', async () => {
    const gate = createConcurrencyGate(1);
    const abort = new AbortController();
    let finish = (): void => {};
    const first = gate.run(() => new Promise<void>((resolve) => (finish = resolve)), new AbortController().signal);
    let began = false;
    const waiting = gate.run(async () => {
      began = true;
    }, abort.signal);
    const last = gate.run(async () => 'last', new AbortController().signal);
    const reason = new Error('cancelled');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(gate.run(async () => {}, abort.signal)).rejects.toBe(reason);
    finish();
    await first;
    expect(await last).toBe('last');
    expect(began).toBe(false);
  });
});
