// What a user of the package imports as scratchpad/client.
export { createClient, type Client, type ClientOptions, type Research } from './create-client.js';
export { ScratchpadError, type ErrorCode, type GraphqlFailure, type InputIssue } from './client-error.js';
export type { CallOptions, RequestOptions } from './graphql-client.js';
export type { JsonObject, JsonValue } from './operations.js';
export type { Page, PageOptions } from './page.js';
export type { FollowOptions } from './resumed.js';
export type { ResearchWishes, RunEvent, RunResult, WatchOptions } from './run-events.js';
export type {
  Content,
  Entry,
  EntryOptions,
  EventOptions,
  FollowedEntry,
  Scratchpad,
  ScratchpadEvent,
  Scratchpads,
  ScratchpadState,
} from './scratchpads.js';
export type { Thread, Threads } from './threads.js';
