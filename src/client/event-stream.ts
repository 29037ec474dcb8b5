// Reads server-sent events off an HTTP answer.

export interface ServerSentEvent {
  event: string;
  data: string;
}

/** Every whole event, as soon as it is there; what the connection's end cuts off is dropped. Comments are read over. */
export async function* readEventStream(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent, undefined> {
  const decoder = new TextDecoder();
  // Pieces of the line that is not complete yet: a content of a mebibyte is one line that comes in many chunks.
  let pieces: string[] = [];
  let endsWithReturn = false;
  let event = 'message';
  let data: string[] = [];
  for await (const chunk of chunks) {
    let text = decoder.decode(chunk, { stream: true });
    if (endsWithReturn && text.startsWith('\n')) text = text.slice(1);
    endsWithReturn = text === '' ? endsWithReturn : text.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    const rest = lines.pop() ?? '';
    for (const end of lines) {
      const line = pieces.join('') + end;
      pieces = [];
      if (line === '') {
        if (data.length > 0) yield { event, data: data.join('\n') };
        event = 'message';
        data = [];
        continue;
      }
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
      if (field === 'event') event = value;
      if (field === 'data') data.push(value);
    }
    if (rest !== '') pieces.push(rest);
  }
  return undefined;
}
