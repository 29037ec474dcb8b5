// The operations that GraphiQL opens with: the way from nothing to a scratchpad that is watched live.

export interface ExampleTab {
  query: string;
  /** JSON. */
  variables?: string;
}

const scratchpadVariables = (more: Record<string, string> = {}): string =>
  JSON.stringify({ scratchpadId: 'sp_… from createScratchpad', ...more }, undefined, 2);

export const exampleTabs: readonly ExampleTab[] = [
  {
    query: `# Who am I? Run it with Ctrl-Enter, then go on in the next tab.
query Viewer {
  viewer {
    id
    name
    createdAt
  }
}
`,
  },
  {
    query: `# First a thread, and then its scratchpad: put the thread's id into the variables below.
mutation CreateThread {
  createThread(input: { metaData: { topic: "solar" } }) {
    thread {
      id
    }
  }
}

mutation CreateScratchpad($threadId: ID!) {
  createScratchpad(input: { threadId: $threadId }) {
    scratchpad {
      id
    }
  }
}
`,
    variables: JSON.stringify({ threadId: 'thread_… from createThread' }, undefined, 2),
  },
  {
    query: `# Replaces the working body. Give expectedVersion to refuse a lost update.
mutation SetContent($scratchpadId: ID!, $text: String!) {
  setScratchpadContent(input: { scratchpadId: $scratchpadId, text: $text }) {
    content {
      text
      version
      updatedAt
    }
  }
}
`,
    variables: scratchpadVariables({ text: '# Plan\n1. Compare panels' }),
  },
  {
    query: `# Adds one entry to the ledger, at its end.
mutation Append($scratchpadId: ID!, $content: String!) {
  appendScratchpadEntry(input: { scratchpadId: $scratchpadId, content: $content }) {
    entry {
      id
      content
      createdAt
    }
  }
}
`,
    variables: scratchpadVariables({ content: 'Perovskite tandem cells passed 33 %.' }),
  },
  {
    query: `# Every change, live. Leave it running here, and write in another browser window.
subscription Watch($scratchpadId: ID!) {
  scratchpadEvents(scratchpadId: $scratchpadId, after: "") {
    cursor
    operation
    replayed
    entry {
      content
      author
    }
    content {
      text
      version
    }
    occurredAt
  }
}
`,
    variables: scratchpadVariables(),
  },
  {
    query: `# Everything of mine on one page: three SQL statements and one Redis round trip.
query Overview {
  viewer {
    threads(first: 50) {
      edges {
        node {
          id
          scratchpad {
            id
            content {
              text
            }
            entryCount
            entries(first: 20) {
              edges {
                node {
                  content
                }
              }
            }
          }
        }
      }
    }
  }
}
`,
  },
];
