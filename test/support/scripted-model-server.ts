// A stand-in for a model provider: an OpenAI-compatible server over real HTTP and SSE that says what a script tells it to.
// It objects to a request that no reply was written for, and to a reply that nobody asked for.
import {
  errorReply,
  startModelServer,
  type ModelRequest,
  type ModelServer,
  type Reply,
} from '../../script/demo.d/model-server.js';

export {
  callsReply,
  chunkOf,
  errorReply,
  textReply,
  type ModelRequest,
  type Reply,
  type RequestBody,
  type ScriptedCall,
  type WireMessage,
} from '../../script/demo.d/model-server.js';

export interface ScriptedReply {
  /** Which requests this reply is for; absent: any. */
  when?: (request: ModelRequest) => boolean;
  reply: Reply | ((request: ModelRequest) => Reply);
}

export interface ScriptedModelServer extends ModelServer {
  /** Adds replies that are used once each: a request takes the first unused one that is meant for it. */
  script(...replies: (Reply | ScriptedReply)[]): void;
  /** Answers, by rule, what no scripted reply is left for; undefined: not meant to be asked. */
  respond(rule: (request: ModelRequest) => Reply | undefined): void;
  /** @throws when a request came unexpectedly or a reply was not used */
  verify(): void;
}

export async function startScriptedModelServer(): Promise<ScriptedModelServer> {
  const replies: (ScriptedReply & { used: boolean })[] = [];
  const unexpected: ModelRequest[] = [];
  let rule: (request: ModelRequest) => Reply | undefined = () => undefined;

  function choose(request: ModelRequest): Reply | undefined {
    const scripted = replies.find((candidate) => !candidate.used && (candidate.when?.(request) ?? true));
    if (!scripted) return rule(request);
    scripted.used = true;
    return typeof scripted.reply === 'function' ? scripted.reply(request) : scripted.reply;
  }

  const server = await startModelServer((request) => {
    const reply = choose(request);
    if (!reply) unexpected.push(request);
    // 400 is an answer that no client tries again after.
    return reply ?? errorReply(400, 'No reply was scripted for this request.');
  });

  return {
    ...server,
    script(...added) {
      replies.push(...added.map((entry) => ({ ...('reply' in entry ? entry : { reply: entry }), used: false })));
    },
    respond(newRule) {
      rule = newRule;
    },
    verify() {
      const unused = replies.filter((reply) => !reply.used).length;
      const last = (request: ModelRequest) => JSON.stringify(request.body.messages.at(-1)).slice(0, 200);
      if (unexpected.length > 0) {
        throw new Error(`${unexpected.length} unexpected model request(s): ${unexpected.map(last).join(' | ')}`);
      }
      if (unused > 0) throw new Error(`${unused} scripted reply(s) were never asked for`);
    },
  };
}
