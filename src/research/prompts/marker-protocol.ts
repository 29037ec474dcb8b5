// The words with which agents mark what they write to the shared scratchpad, so that others can tell a fact from a hope.

export const markers = {
  /** The supervisor's plan, in the content. */
  strategy: '[STRATEGY]',
  /** A question that is closed or given up, in the content, so that nobody takes it up again. */
  tombstone: '[TOMBSTONE]',
  pending: '[PENDING]',
  verified: '[VERIFIED]',
  unverified: '[UNVERIFIED]',
  failedUrl: '[FAILED URL]',
} as const;
