// How much a run may do.

/** Turns of a run on a tenant's thread: a supervisor, or any assistant. */
export const RUN_MAX_TURNS = 24;
/** The fewest that a caller may give a research run: one to delegate (or to note a finding), and one, without tools, to answer (or to report). */
export const LEAST_RESEARCH_TURNS = 2;
/** Turns of a delegated worker. */
export const RESEARCH_WORKER_MAX_TURNS = 8;
/** Workers of one supervisor side by side, unless its caller says otherwise. */
export const DEFAULT_MAX_WORKERS = 3;
/** What a caller may say. */
export const MOST_WORKERS = 10;
/** Of one run in all: a model that never stops delegating does not cost for ever. */
export const MOST_DELEGATIONS = 32;
