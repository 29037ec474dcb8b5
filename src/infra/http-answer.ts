// An HTTP response whose head carries what every answer of this server carries.
import { ServerResponse, type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders } from 'node:http';

/**
 * Common headers join the others when the head is written, as a plain list: setting each by itself, or making an object of all of them, is a
 * good part of what a small request costs.
 */
export class HttpAnswer<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Names, in lower case, and values in turn. Set before anything is written. */
  commonHeaders: readonly string[] = [];

  override writeHead(
    status: number,
    reasonOrHeaders?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    const isPlain =
      typeof reasonOrHeaders === 'object' && !Array.isArray(reasonOrHeaders) && this.getHeaderNames().length === 0;
    if (isPlain) {
      const all: OutgoingHttpHeader[] = [];
      for (let at = 0; at < this.commonHeaders.length; at += 2) {
        const name = this.commonHeaders[at]!;
        if (reasonOrHeaders[name] === undefined) all.push(name, this.commonHeaders[at + 1]!);
      }
      for (const name of Object.keys(reasonOrHeaders)) {
        const value = reasonOrHeaders[name];
        if (value !== undefined) all.push(name, value);
      }
      return super.writeHead(status, all);
    }
    for (let at = 0; at < this.commonHeaders.length; at += 2) {
      const name = this.commonHeaders[at]!;
      if (!this.hasHeader(name)) this.setHeader(name, this.commonHeaders[at + 1]!);
    }
    return typeof reasonOrHeaders === 'string'
      ? super.writeHead(status, reasonOrHeaders, headers)
      : super.writeHead(status, reasonOrHeaders);
  }
}
