// An HTTP response whose head carries what every answer of this server carries.
import { ServerResponse, type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders } from 'node:http';

/**
 * Common headers join the others when the head is written: setting each by itself, for Node to collect them again, is a good part of
 * what a small request costs.
 */
export class HttpAnswer<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Names in lower case. Set before anything is written. */
  commonHeaders: Readonly<Record<string, string>> = {};

  override writeHead(
    status: number,
    reasonOrHeaders?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    const isPlain =
      typeof reasonOrHeaders === 'object' && !Array.isArray(reasonOrHeaders) && this.getHeaderNames().length === 0;
    if (isPlain) return super.writeHead(status, { ...this.commonHeaders, ...reasonOrHeaders });
    for (const [name, value] of Object.entries(this.commonHeaders)) {
      if (!this.hasHeader(name)) this.setHeader(name, value);
    }
    return typeof reasonOrHeaders === 'string'
      ? super.writeHead(status, reasonOrHeaders, headers)
      : super.writeHead(status, reasonOrHeaders);
  }
}
