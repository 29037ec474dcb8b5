// The working state of a scratchpad: content and entries as GraphQL sees them.
import type { ContentState, EntryState } from '../../../scratchpads/data-plane.js';
import type { Builder } from '../builder.js';
import { addConnection } from '../connections.js';
import { ofEventAlone } from '../shared-results.js';
import type { PageInfoRef } from './page-info.js';

export function addScratchpadState(builder: Builder, pageInfo: PageInfoRef) {
  const content = builder.objectRef<ContentState>('ScratchpadContent').implement({
    description: 'The replaceable working body.',
    extensions: ofEventAlone,
    fields: (t) => ({
      text: t.exposeString('text'),
      version: t.exposeString('version', {
        description:
          'Opaque. Changes with every write; give it back as expectedVersion to refuse a lost update. Content never set has version 0.',
      }),
      updatedAt: t.expose('updatedAt', { type: 'DateTime', nullable: true }),
    }),
  });
  const entry = builder.objectRef<EntryState>('ScratchpadEntry').implement({
    description: 'One finding in the append-only ledger.',
    extensions: ofEventAlone,
    fields: (t) => ({
      id: t.exposeID('id'),
      content: t.exposeString('content'),
      author: t.exposeString('author', {
        nullable: true,
        description:
          "Who appended it, as a label: an assistant's or agent token's name; null for the owner's own API key.",
      }),
      runId: t.exposeID('runId', { nullable: true, description: 'The run that appended it, when one did.' }),
      createdAt: t.expose('createdAt', { type: 'DateTime' }),
    }),
  });
  const entries = addConnection(builder, { name: 'ScratchpadEntry', node: entry, pageInfo });
  return { content, entry, entryConnection: entries.connection, entryEdge: entries.edge };
}

export type ScratchpadStateRefs = ReturnType<typeof addScratchpadState>;
