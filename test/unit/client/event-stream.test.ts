// Server-sent events, however the network cuts them into chunks.
import { array, assert, asyncProperty, nat } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readEventStream, type ServerSentEvent } from '../../../src/client/event-stream.js';

async function read(bytes: Uint8Array, cuts: number[]): Promise<ServerSentEvent[]> {
  async function* chunks(): AsyncGenerator<Uint8Array, undefined> {
    let from = 0;
    for (const to of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
      yield bytes.subarray(from, to);
      from = to;
    }
    return undefined;
  }
  const events: ServerSentEvent[] = [];
  for await (const event of readEventStream(chunks())) events.push(event);
  return events;
}

describe('an event stream', () => {
  it('is read the same wherever it is cut, within characters and line ends too', async () => {
    const text =
      ':\n\nevent: next\ndata: {"a": "👩‍👩‍👧 é"}\n\n:\r\n\r\nevent:next\r\ndata:1\r\ndata: 2\r\n\r\ndata: x: y\r\revent: complete\ndata:\n\nevent: next\ndata: cut';
    const bytes = new TextEncoder().encode(text);
    const expected = [
      { event: 'next', data: '{"a": "👩‍👩‍👧 é"}' },
      { event: 'next', data: '1\n2' },
      { event: 'message', data: 'x: y' },
      { event: 'complete', data: '' },
    ];
    expect(await read(bytes, [])).toEqual(expected);
    await assert(
      asyncProperty(array(nat(bytes.length), { maxLength: 40 }), async (cuts) => {
        expect(await read(bytes, cuts)).toEqual(expected);
      }),
    );
    expect(await read(bytes, [...bytes.keys()])).toEqual(expected);
  });
});
