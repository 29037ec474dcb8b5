// Why a page or a search could not be had, in words for a model.

export type PageErrorCode =
  | 'INVALID_URL'
  | 'ADDRESS_REFUSED'
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'TOO_MANY_REDIRECTS'
  | 'HTTP_ERROR'
  | 'TOO_LARGE'
  | 'UNREADABLE'
  | 'NO_SUCH_PAGE'
  | 'NOT_CONFIGURED'
  | 'SEARCH_FAILED';

/** Thrown by everything under tools/web and turned into an error result by the tools. */
export class PageError extends Error {
  override readonly name = 'PageError';

  constructor(
    readonly code: PageErrorCode,
    message: string,
  ) {
    super(message);
  }
}
