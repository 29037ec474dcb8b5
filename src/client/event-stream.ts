// Reads server-sent events off an HTTP answer.

export interface ServerSentEvent {
  event: string;
  data: string;
}

function parseEvent(block: string): ServerSentEvent | undefined {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const [, field, value = ''] = /^([^:]+)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'event') event = value;
    if (field === 'data') data.push(value);
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n') };
}

/** Every whole event, as soon as it is there; what the connection's end cuts off is dropped. Comments are read over. */
export async function* readEventStream(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent, undefined> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split(/\r\n\r\n|\n\n|\r\r/);
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event) yield event;
    }
  }
  return undefined;
}
