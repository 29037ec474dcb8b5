// What a tenant sees of the rows that it owns: all but the threads and assistants that are private to a delegated worker.

/** The filter of relations that lead from a tenant's own rows to threads and assistants. */
export const visible = { ephemeral: false } as const;

/** The filter of every look-up of threads and assistants on behalf of a tenant; the runtime alone goes around it. */
export const visibleTo = (ownerId: string): { ownerId: string; ephemeral: false } => ({ ownerId, ...visible });
