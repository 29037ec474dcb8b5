// PageInfo of the Relay cursor connection specification.
import type { Page } from '../../../shared/pagination.js';
import type { Builder } from '../builder.js';

export const addPageInfo = (builder: Builder) =>
  builder.objectRef<Page<unknown>['pageInfo']>('PageInfo').implement({
    fields: (t) => ({
      hasNextPage: t.exposeBoolean('hasNextPage'),
      hasPreviousPage: t.exposeBoolean('hasPreviousPage'),
      startCursor: t.exposeString('startCursor', { nullable: true }),
      endCursor: t.exposeString('endCursor', { nullable: true }),
    }),
  });

export type PageInfoRef = ReturnType<typeof addPageInfo>;
