// The seam between the HTTP server and the surfaces on it: what a surface is handed, and what it has to offer.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { DomainError } from './errors.js';
import type { Logger } from './logger.js';

/** What a request's log line and its metrics say beside the path, the status and the duration. */
export interface RequestNotes {
  /** "OK", or the code of the error that the client got. */
  outcome?: string;
  /** Such as "query" or "subscription". */
  operation?: string;
  operationName?: string;
  /** True for an answer that stays open by design: its duration is no latency. */
  stream?: boolean;
}

/** One request and its answer. */
export interface HttpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Without the query string. */
  readonly path: string;
  readonly searchParams: URLSearchParams;
  /** Also in the response's x-request-id header. */
  readonly requestId: string;
  /** Names the request id in every line. */
  readonly logger: Logger;
  /** The server listens on loopback and was called by a loopback name, not through a proxy: the caller is this machine. */
  readonly loopback: boolean;
  /** The whole body. @throws DomainError LIMIT_EXCEEDED over the configured size; any other error: the client went away */
  readBody(): Promise<Buffer>;
  note(notes: RequestNotes): void;
}

/** A request to change the protocol; its Origin has been checked. */
export interface UpgradeExchange {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly requestId: string;
}

/** One of the doors of the service, mounted under a path. */
export interface HttpSurface {
  /** How metrics and logs call it. */
  readonly name: string;
  /** Answers the request. What it throws is answered through `refuse` as INTERNAL. */
  handle(exchange: HttpExchange): Promise<void>;
  /** Answers in the shape of this surface a request that the server refuses before, or instead of, `handle`. */
  refuse(exchange: HttpExchange, error: DomainError, status: number): void;
  upgrade?(exchange: UpgradeExchange): void;
  /** Ends what is open by design (streams, sockets) in an orderly way; resolves within a few seconds. */
  close?(): Promise<void>;
}
