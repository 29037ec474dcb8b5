// Made by `npm run schema` out of schema.graphql and operations.graphql: change those.

/** The text of an operation, and what the compiler knows about it. */
export type Operation<Data, Variables> = string & { readonly types?: (variables: Variables) => Data };

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type EventState = 'COMPLETED' | 'ERROR' | 'IN_PROGRESS' | 'SUCCESS';

export type ResearchPhase =
  | 'DELEGATED'
  | 'FINISHED'
  | 'PLANNING'
  | 'QUEUED'
  | 'RESEARCHING'
  | 'SCRATCHPAD_UPDATED'
  | 'STARTED'
  | 'SYNTHESISING'
  | 'WORKER_COMPLETED'
  | 'WORKER_FAILED';

export type RunStatus = 'CANCELLED' | 'COMPLETED' | 'EXPIRED' | 'FAILED' | 'IN_PROGRESS' | 'QUEUED';

export type ScratchpadOperation =
  'APPEND' | 'CLEAR' | 'CLEAR_CONTENT' | 'CLEAR_ENTRIES' | 'DELETE' | 'EXPIRE' | 'READ' | 'UPDATE';

export type ThreadFieldsFragment = { id: string; metaData: JsonObject; createdAt: string; owner: { id: string } };

export type ScratchpadFieldsFragment = {
  id: string;
  metaData: JsonObject;
  createdAt: string;
  updatedAt: string;
  owner: { id: string } | null;
  thread: { id: string } | null;
};

export type ContentFieldsFragment = { text: string; version: string; updatedAt: string | null };

export type EntryFieldsFragment = {
  id: string;
  content: string;
  author: string | null;
  runId: string | null;
  createdAt: string;
};

export type PageFieldsFragment = {
  startCursor: string | null;
  endCursor: string | null;
  hasNextPage: boolean;
  hasPreviousPage: boolean;
};

export type CreateThreadMutationVariables = Exact<{
  metaData?: JsonObject | null | undefined;
}>;

export type CreateThreadMutation = {
  createThread: { thread: { id: string; metaData: JsonObject; createdAt: string; owner: { id: string } } };
};

export type UpdateThreadMutationVariables = Exact<{
  id: string;
  metaData: JsonObject;
}>;

export type UpdateThreadMutation = {
  updateThread: { thread: { id: string; metaData: JsonObject; createdAt: string; owner: { id: string } } };
};

export type DeleteThreadMutationVariables = Exact<{
  id: string;
}>;

export type DeleteThreadMutation = { deleteThread: { deletedThreadId: string } };

export type ThreadQueryVariables = Exact<{
  id: string;
}>;

export type ThreadQuery = {
  thread: { id: string; metaData: JsonObject; createdAt: string; owner: { id: string } } | null;
};

export type ThreadsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;

export type ThreadsQuery = {
  viewer: {
    threads: {
      totalCount: number;
      pageInfo: {
        startCursor: string | null;
        endCursor: string | null;
        hasNextPage: boolean;
        hasPreviousPage: boolean;
      };
      edges: Array<{ node: { id: string; metaData: JsonObject; createdAt: string; owner: { id: string } } }>;
    };
  } | null;
};

export type CreateScratchpadMutationVariables = Exact<{
  threadId: string;
  metaData?: JsonObject | null | undefined;
}>;

export type CreateScratchpadMutation = {
  createScratchpad: {
    scratchpad: {
      id: string;
      metaData: JsonObject;
      createdAt: string;
      updatedAt: string;
      owner: { id: string } | null;
      thread: { id: string } | null;
    };
  };
};

export type UpdateScratchpadMutationVariables = Exact<{
  id: string;
  metaData: JsonObject;
}>;

export type UpdateScratchpadMutation = {
  updateScratchpad: {
    scratchpad: {
      id: string;
      metaData: JsonObject;
      createdAt: string;
      updatedAt: string;
      owner: { id: string } | null;
      thread: { id: string } | null;
    };
  };
};

export type DeleteScratchpadMutationVariables = Exact<{
  id: string;
}>;

export type DeleteScratchpadMutation = { deleteScratchpad: { deletedScratchpadId: string } };

export type ScratchpadQueryVariables = Exact<{
  id: string;
}>;

export type ScratchpadQuery = {
  scratchpad: {
    id: string;
    metaData: JsonObject;
    createdAt: string;
    updatedAt: string;
    owner: { id: string } | null;
    thread: { id: string } | null;
  } | null;
};

export type ScratchpadByThreadQueryVariables = Exact<{
  threadId: string;
}>;

export type ScratchpadByThreadQuery = {
  scratchpadByThread: {
    id: string;
    metaData: JsonObject;
    createdAt: string;
    updatedAt: string;
    owner: { id: string } | null;
    thread: { id: string } | null;
  } | null;
};

export type ScratchpadsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;

export type ScratchpadsQuery = {
  scratchpads: {
    totalCount: number;
    pageInfo: { startCursor: string | null; endCursor: string | null; hasNextPage: boolean; hasPreviousPage: boolean };
    edges: Array<{
      node: {
        id: string;
        metaData: JsonObject;
        createdAt: string;
        updatedAt: string;
        owner: { id: string } | null;
        thread: { id: string } | null;
      };
    }>;
  };
};

export type ScratchpadStateQueryVariables = Exact<{
  id: string;
}>;

export type ScratchpadStateQuery = {
  scratchpad: {
    entryCount: number | null;
    formattedView: string | null;
    eventCursor: string | null;
    expiresAt: string | null;
    content: { text: string; version: string; updatedAt: string | null } | null;
  } | null;
};

export type EventCursorQueryVariables = Exact<{
  id: string;
}>;

export type EventCursorQuery = { scratchpad: { eventCursor: string | null } | null };

export type ContentQueryVariables = Exact<{
  id: string;
}>;

export type ContentQuery = {
  scratchpad: { content: { text: string; version: string; updatedAt: string | null } | null } | null;
};

export type SetContentMutationVariables = Exact<{
  id: string;
  text: string;
  expectedVersion?: string | null | undefined;
  idempotencyKey?: string | null | undefined;
}>;

export type SetContentMutation = {
  setScratchpadContent: { content: { text: string; version: string; updatedAt: string | null } };
};

export type ClearContentMutationVariables = Exact<{
  id: string;
}>;

export type ClearContentMutation = { clearScratchpadContent: { scratchpad: { id: string } } };

export type AppendEntryMutationVariables = Exact<{
  id: string;
  content: string;
  idempotencyKey: string;
}>;

export type AppendEntryMutation = {
  appendScratchpadEntry: {
    entry: { id: string; content: string; author: string | null; runId: string | null; createdAt: string };
  };
};

export type EntriesQueryVariables = Exact<{
  id: string;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;

export type EntriesQuery = {
  scratchpad: {
    entries: {
      totalCount: number;
      pageInfo: {
        startCursor: string | null;
        endCursor: string | null;
        hasNextPage: boolean;
        hasPreviousPage: boolean;
      };
      edges: Array<{
        node: { id: string; content: string; author: string | null; runId: string | null; createdAt: string };
      }>;
    } | null;
  } | null;
};

export type ClearEntriesMutationVariables = Exact<{
  id: string;
}>;

export type ClearEntriesMutation = { clearScratchpadEntries: { scratchpad: { id: string } } };

export type ClearMutationVariables = Exact<{
  id: string;
}>;

export type ClearMutation = { clearScratchpad: { scratchpad: { id: string } } };

export type ScratchpadEventsSubscriptionVariables = Exact<{
  id: string;
  after?: string | null | undefined;
}>;

export type ScratchpadEventsSubscription = {
  scratchpadEvents: {
    cursor: string;
    operation: ScratchpadOperation;
    scratchpadId: string;
    expiresAt: string | null;
    runId: string | null;
    assistantId: string | null;
    replayed: boolean;
    occurredAt: string;
    entry: { id: string; content: string; author: string | null; runId: string | null; createdAt: string } | null;
    content: { text: string; version: string; updatedAt: string | null } | null;
  };
};

export type FollowEntriesSubscriptionVariables = Exact<{
  id: string;
  after?: string | null | undefined;
}>;

export type FollowEntriesSubscription = {
  scratchpadEvents: {
    cursor: string;
    operation: ScratchpadOperation;
    entry: { id: string; content: string; author: string | null; runId: string | null; createdAt: string } | null;
  };
};

export type StartResearchMutationVariables = Exact<{
  threadId: string;
  question: string;
  model?: string | null | undefined;
  maxTurns?: number | null | undefined;
  maxWorkers?: number | null | undefined;
}>;

export type StartResearchMutation = { startResearch: { run: { id: string } } };

export type CancelRunMutationVariables = Exact<{
  id: string;
}>;

export type CancelRunMutation = { cancelRun: { run: { id: string } } };

export type RunQueryVariables = Exact<{
  id: string;
}>;

export type RunQuery = {
  run: {
    id: string;
    status: RunStatus;
    output: string | null;
    unverifiedCitations: Array<string>;
    turnCount: number;
    lastError: { code: string; message: string } | null;
    childRuns: Array<{
      id: string;
      status: RunStatus;
      task: string;
      lastError: { code: string; message: string } | null;
    }>;
  } | null;
};

export type RunEventsSubscriptionVariables = Exact<{
  id: string;
  after?: string | null | undefined;
}>;

export type RunEventsSubscription = {
  runEvents:
    | {
        __typename: 'ContentEvent';
        delta: string;
        cursor: string;
        runId: string;
        originRunId: string;
        occurredAt: string;
      }
    | {
        __typename: 'ReasoningEvent';
        delta: string;
        cursor: string;
        runId: string;
        originRunId: string;
        occurredAt: string;
      }
    | {
        __typename: 'ResearchStatusEvent';
        phase: ResearchPhase;
        activity: string;
        state: EventState;
        tool: string | null;
        cursor: string;
        runId: string;
        originRunId: string;
        occurredAt: string;
      }
    | {
        __typename: 'ScratchpadEvent';
        operation: ScratchpadOperation;
        state: EventState;
        tool: string | null;
        assistantId: string | null;
        cursor: string;
        runId: string | null;
        originRunId: string | null;
        occurredAt: string;
        entry: { id: string; content: string; author: string | null; runId: string | null; createdAt: string } | null;
        content: { text: string; version: string; updatedAt: string | null } | null;
      };
};

const threadFields = 'fragment threadFields on Thread{id owner{id}metaData createdAt}';
const scratchpadFields = 'fragment scratchpadFields on Scratchpad{id owner{id}thread{id}metaData createdAt updatedAt}';
const contentFields = 'fragment contentFields on ScratchpadContent{text version updatedAt}';
const entryFields = 'fragment entryFields on ScratchpadEntry{id content author runId createdAt}';
const pageFields = 'fragment pageFields on PageInfo{startCursor endCursor hasNextPage hasPreviousPage}';
export const createThreadOperation: Operation<CreateThreadMutation, CreateThreadMutationVariables> =
  'mutation createThread($metaData:JSONObject){createThread(input:{metaData:$metaData}){thread{...threadFields}}}' +
  threadFields;
export const updateThreadOperation: Operation<UpdateThreadMutation, UpdateThreadMutationVariables> =
  'mutation updateThread($id:ID!$metaData:JSONObject!){updateThread(input:{threadId:$id metaData:$metaData}){thread{...threadFields}}}' +
  threadFields;
export const deleteThreadOperation: Operation<DeleteThreadMutation, DeleteThreadMutationVariables> =
  'mutation deleteThread($id:ID!){deleteThread(input:{threadId:$id}){deletedThreadId}}';
export const threadOperation: Operation<ThreadQuery, ThreadQueryVariables> =
  'query thread($id:ID!){thread(id:$id){...threadFields}}' + threadFields;
export const threadsOperation: Operation<ThreadsQuery, ThreadsQueryVariables> =
  'query threads($first:Int$after:String$last:Int$before:String){viewer{threads(first:$first after:$after last:$last before:$before){totalCount pageInfo{...pageFields}edges{node{...threadFields}}}}}' +
  pageFields +
  threadFields;
export const createScratchpadOperation: Operation<CreateScratchpadMutation, CreateScratchpadMutationVariables> =
  'mutation createScratchpad($threadId:ID!$metaData:JSONObject){createScratchpad(input:{threadId:$threadId metaData:$metaData}){scratchpad{...scratchpadFields}}}' +
  scratchpadFields;
export const updateScratchpadOperation: Operation<UpdateScratchpadMutation, UpdateScratchpadMutationVariables> =
  'mutation updateScratchpad($id:ID!$metaData:JSONObject!){updateScratchpad(input:{scratchpadId:$id metaData:$metaData}){scratchpad{...scratchpadFields}}}' +
  scratchpadFields;
export const deleteScratchpadOperation: Operation<DeleteScratchpadMutation, DeleteScratchpadMutationVariables> =
  'mutation deleteScratchpad($id:ID!){deleteScratchpad(input:{scratchpadId:$id}){deletedScratchpadId}}';
export const scratchpadOperation: Operation<ScratchpadQuery, ScratchpadQueryVariables> =
  'query scratchpad($id:ID!){scratchpad(id:$id){...scratchpadFields}}' + scratchpadFields;
export const scratchpadByThreadOperation: Operation<ScratchpadByThreadQuery, ScratchpadByThreadQueryVariables> =
  'query scratchpadByThread($threadId:ID!){scratchpadByThread(threadId:$threadId){...scratchpadFields}}' +
  scratchpadFields;
export const scratchpadsOperation: Operation<ScratchpadsQuery, ScratchpadsQueryVariables> =
  'query scratchpads($first:Int$after:String$last:Int$before:String){scratchpads(first:$first after:$after last:$last before:$before){totalCount pageInfo{...pageFields}edges{node{...scratchpadFields}}}}' +
  pageFields +
  scratchpadFields;
export const scratchpadStateOperation: Operation<ScratchpadStateQuery, ScratchpadStateQueryVariables> =
  'query scratchpadState($id:ID!){scratchpad(id:$id){content{...contentFields}entryCount formattedView eventCursor expiresAt}}' +
  contentFields;
export const eventCursorOperation: Operation<EventCursorQuery, EventCursorQueryVariables> =
  'query eventCursor($id:ID!){scratchpad(id:$id){eventCursor}}';
export const contentOperation: Operation<ContentQuery, ContentQueryVariables> =
  'query content($id:ID!){scratchpad(id:$id){content{...contentFields}}}' + contentFields;
export const setContentOperation: Operation<SetContentMutation, SetContentMutationVariables> =
  'mutation setContent($id:ID!$text:String!$expectedVersion:String$idempotencyKey:String){setScratchpadContent(input:{scratchpadId:$id text:$text expectedVersion:$expectedVersion idempotencyKey:$idempotencyKey}){content{...contentFields}}}' +
  contentFields;
export const clearContentOperation: Operation<ClearContentMutation, ClearContentMutationVariables> =
  'mutation clearContent($id:ID!){clearScratchpadContent(input:{scratchpadId:$id}){scratchpad{id}}}';
export const appendEntryOperation: Operation<AppendEntryMutation, AppendEntryMutationVariables> =
  'mutation appendEntry($id:ID!$content:String!$idempotencyKey:String!){appendScratchpadEntry(input:{scratchpadId:$id content:$content idempotencyKey:$idempotencyKey}){entry{...entryFields}}}' +
  entryFields;
export const entriesOperation: Operation<EntriesQuery, EntriesQueryVariables> =
  'query entries($id:ID!$first:Int$after:String$last:Int$before:String){scratchpad(id:$id){entries(first:$first after:$after last:$last before:$before){totalCount pageInfo{...pageFields}edges{node{...entryFields}}}}}' +
  pageFields +
  entryFields;
export const clearEntriesOperation: Operation<ClearEntriesMutation, ClearEntriesMutationVariables> =
  'mutation clearEntries($id:ID!){clearScratchpadEntries(input:{scratchpadId:$id}){scratchpad{id}}}';
export const clearOperation: Operation<ClearMutation, ClearMutationVariables> =
  'mutation clear($id:ID!){clearScratchpad(input:{scratchpadId:$id}){scratchpad{id}}}';
export const scratchpadEventsOperation: Operation<ScratchpadEventsSubscription, ScratchpadEventsSubscriptionVariables> =
  'subscription scratchpadEvents($id:ID!$after:String){scratchpadEvents(scratchpadId:$id after:$after){cursor operation scratchpadId entry{...entryFields}content{...contentFields}expiresAt runId assistantId replayed occurredAt}}' +
  entryFields +
  contentFields;
export const followEntriesOperation: Operation<FollowEntriesSubscription, FollowEntriesSubscriptionVariables> =
  'subscription followEntries($id:ID!$after:String){scratchpadEvents(scratchpadId:$id after:$after){cursor operation entry{...entryFields}}}' +
  entryFields;
export const startResearchOperation: Operation<StartResearchMutation, StartResearchMutationVariables> =
  'mutation startResearch($threadId:ID!$question:String!$model:String$maxTurns:Int$maxWorkers:Int){startResearch(input:{threadId:$threadId question:$question model:$model maxTurns:$maxTurns maxWorkers:$maxWorkers}){run{id}}}';
export const cancelRunOperation: Operation<CancelRunMutation, CancelRunMutationVariables> =
  'mutation cancelRun($id:ID!){cancelRun(input:{runId:$id}){run{id}}}';
export const runOperation: Operation<RunQuery, RunQueryVariables> =
  'query run($id:ID!){run(id:$id){id status output unverifiedCitations turnCount lastError{code message}childRuns{id status task lastError{code message}}}}';
export const runEventsOperation: Operation<RunEventsSubscription, RunEventsSubscriptionVariables> =
  'subscription runEvents($id:ID!$after:String){runEvents(runId:$id after:$after){__typename cursor runId originRunId occurredAt ...on ResearchStatusEvent{phase activity state tool}...on ScratchpadEvent{operation state tool assistantId entry{...entryFields}content{...contentFields}}...on ContentEvent{delta}...on ReasoningEvent{delta}}}' +
  entryFields +
  contentFields;
