// A conversation in units that stay whole: an ordinary message, or a message with tool calls together with all its results.
import { errorResult } from '../../tools/tool-definition.js';
import type { ToolCall } from '../provider/provider-types.js';
import type {
  NewToolMessage,
  StoredAssistantMessage,
  StoredMessage,
  StoredToolMessage,
  StoredUserMessage,
} from './conversation-message.js';

export interface OrdinaryUnit {
  kind: 'ordinary';
  message: StoredUserMessage | StoredAssistantMessage;
}

export interface GroupUnit {
  kind: 'group';
  caller: StoredAssistantMessage & { toolCalls: ToolCall[] };
  /** One for each call, in call order. */
  results: (NewToolMessage & { id?: string })[];
}

export type ConversationUnit = OrdinaryUnit | GroupUnit;

const hasCalls = (message: StoredMessage): message is GroupUnit['caller'] =>
  message.role === 'assistant' && (message.toolCalls?.length ?? 0) > 0;

const interruption = errorResult(
  'INTERRUPTED',
  'The run ended before this call was answered. It may or may not have been executed: check before you repeat it.',
);

const interrupted = (call: ToolCall): NewToolMessage => ({ role: 'tool', toolCallId: call.id, ...interruption });

interface OpenGroup {
  kind: 'open';
  caller: GroupUnit['caller'];
  answers: Map<string, StoredToolMessage>;
}

/** An id that comes again in a later message names the later call: an answer belongs to the last message before it that made the call. */
function collect(messages: readonly StoredMessage[]): (OrdinaryUnit | OpenGroup)[] {
  const units: (OrdinaryUnit | OpenGroup)[] = [];
  const groupOfCall = new Map<string, OpenGroup>();
  for (const message of messages) {
    if (message.role === 'tool') {
      const answers = groupOfCall.get(message.toolCallId)?.answers;
      // The first answer counts; one that nothing asked for is left out.
      if (answers && !answers.has(message.toolCallId)) answers.set(message.toolCallId, message);
    } else if (hasCalls(message)) {
      const group: OpenGroup = { kind: 'open', caller: message, answers: new Map() };
      for (const call of message.toolCalls) groupOfCall.set(call.id, group);
      units.push(group);
    } else if (message.content !== '') {
      units.push({ kind: 'ordinary', message });
    }
  }
  return units;
}

/** The conversation as a provider accepts it, whatever a crash left of it: every call answered once, directly after it, in call order. */
export function toUnits(messages: readonly StoredMessage[]): ConversationUnit[] {
  return collect(messages).map((unit) => {
    if (unit.kind === 'ordinary') return unit;
    const { caller, answers } = unit;
    return {
      kind: 'group',
      caller,
      results: caller.toolCalls.map((call) => answers.get(call.id) ?? interrupted(call)),
    };
  });
}

/** What to append so that no call is open any more; for the next start after a run that died between two results. */
export function closingResults(messages: readonly StoredMessage[]): NewToolMessage[] {
  const groups = collect(messages).filter((unit) => unit.kind === 'open');
  const isLastWith = (id: string, group: OpenGroup): boolean =>
    groups.findLast((other) => other.caller.toolCalls.some((call) => call.id === id)) === group;
  return groups.flatMap((group) =>
    group.caller.toolCalls
      .filter((call) => !group.answers.has(call.id) && isLastWith(call.id, group))
      .map((call) => interrupted(call)),
  );
}
