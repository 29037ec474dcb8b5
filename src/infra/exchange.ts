// One request and its answer, as the surfaces are handed it. What a small request does not want is made when it is asked for.
import type { IncomingMessage } from 'node:http';
import type { HttpExchange, RequestNotes } from '../shared/http-exchange.js';
import type { Logger } from '../shared/logger.js';
import type { HttpAnswer } from './http-answer.js';
import { readBody } from './http-body.js';
import { isLoopbackCall } from './http-origin.js';

/** What the exchanges of one server have in common. */
export interface ExchangeScope {
  readonly logger: Logger;
  readonly maxBodyBytes: number;
  /** Known once the server listens. */
  listensOnLoopback: boolean;
}

// A class for its speed: accessors in an object literal make a dictionary of every such object, and whatever touches one slow.
export class Exchange implements HttpExchange {
  readonly startedAt = performance.now();
  /** It was refused because its answer took too long: what comes now is nobody's any more. */
  isOverdue = false;
  private owedSince: number | undefined;
  readonly notes: RequestNotes = {
    outcome: undefined,
    operation: undefined,
    operationName: undefined,
    stream: undefined,
  };
  private ownLogger: Logger | undefined;
  private parameters: URLSearchParams | undefined;

  constructor(
    readonly request: IncomingMessage,
    readonly response: HttpAnswer,
    readonly path: string,
    private readonly search: string,
    readonly requestId: string,
    private readonly scope: ExchangeScope,
  ) {}

  get logger(): Logger {
    return (this.ownLogger ??= this.scope.logger.child({ requestId: this.requestId }));
  }

  get searchParams(): URLSearchParams {
    return (this.parameters ??= new URLSearchParams(this.search));
  }

  get loopback(): boolean {
    return this.scope.listensOnLoopback && isLoopbackCall(this.request);
  }

  /** For how long, since the first look at it, an answer has been owed to a client that has sent everything; in milliseconds. */
  owedForMs(now: number): number {
    if (!this.request.complete || this.response.headersSent || this.response.destroyed) return 0;
    this.owedSince ??= now;
    return now - this.owedSince;
  }

  readBody(): Promise<Buffer> {
    return readBody(this.request, this.scope.maxBodyBytes);
  }

  note(notes: RequestNotes): void {
    Object.assign(this.notes, notes);
  }
}
