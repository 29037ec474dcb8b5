// The program behind script/demo: a whole deep-research run, shown and judged, with a model of our own or with a real one.
import { createGraphqlClient, type GraphqlClient } from '../../src/client/graphql-client.js';
import { describeFailure, research } from '../../src/terminal/research-command.js';
import { createRunView, type RunView } from '../../src/terminal/run-view.js';
import { ephemeralRowsIn } from './ephemeral-rows.js';
import { clientToolRequests, judge, localToolExecutions } from './judges.js';
import { recordRun, type RunRecording, type WireLog } from './recording.js';
import { startResearchModel } from './research-model.js';
import { startServerProcess } from './server-process.js';
import { startSmallWeb, type SmallWeb } from './small-web.js';

const question = 'Which is taller, the lighthouse of Île Vierge or the Tower of Hercules, and by how much?';
const secondQuestion =
  'Look both up side by side: which is taller, Jeddah Light or the present tower on the Eddystone rocks?';

const { stdout } = process;
const print = (text = ''): boolean => stdout.write(`${text}\n`);
const heading = (text: string): boolean => print(`\n${text}\n${'─'.repeat(text.length)}`);
const usesColours = stdout.isTTY && !process.env['NO_COLOR'];

const createView = (): RunView => {
  const write = (text: string): boolean => stdout.write(text);
  return createRunView({
    writeProgress: write,
    writeAnswer: write,
    isOneScreen: true,
    colours: usesColours,
    width: Math.min(stdout.columns ?? 110, 120),
  });
};

type Close = () => Promise<void>;
const opened: Close[] = [];
let leaving: Promise<void> | undefined;

/** In the reverse order, each once, whatever fails. */
async function closeAll(): Promise<void> {
  for (const close of opened.splice(0).toReversed()) await close().catch(() => {});
}

/** Remembered while it is still starting: whoever leaves in that moment leaves nothing behind. */
async function keep<Thing extends { close: Close }>(thing: Promise<Thing>): Promise<Thing> {
  opened.push(async () => (await thing).close());
  return await thing;
}

/** A library of a few pages, which the server is allowed to read although it is on this machine. */
const smallWebSettings = ({ searchUrl }: SmallWeb): Record<string, string> => ({
  SEARXNG_URL: searchUrl,
  WEB_ALLOW_PRIVATE_HOSTS: 'true',
});

function showVerdicts(working: RunRecording, failing: RunRecording): boolean {
  heading('Verdicts');
  const answer = (faults: string[]): string => (faults.length === 0 ? 'NO' : 'YES');
  const both = [working, failing];
  print(`CLIENT_TOOL_REQUEST_SURFACED=${answer(both.flatMap(clientToolRequests))}`);
  print(`LOCAL_TOOL_EXECUTOR_USED=${answer(both.flatMap(localToolExecutions))}`);
  const verdicts = judge(working, failing);
  for (const { name, faults } of verdicts) {
    print(`${name}=${faults.length === 0 ? 'PASS' : 'FAIL'}`);
    for (const fault of new Set(faults)) print(`  ${fault}`);
  }
  return verdicts.every(({ faults }) => faults.length === 0);
}

async function demonstrate(): Promise<boolean> {
  print(
    'No model is configured (LLM_BASE_URL), so a rule-based one answers, over real HTTP. Nothing leaves this machine.',
  );
  const web = await keep(startSmallWeb());
  const model = await keep(startResearchModel({ paceMs: 15 }));
  const server = await keep(
    startServerProcess({
      LLM_BASE_URL: model.baseUrl,
      LLM_API_KEY: 'no-key-is-needed',
      LLM_MODEL: 'rules',
      ...smallWebSettings(web),
    }),
  );
  print(`Server ${server.url}, model ${model.baseUrl}, search ${web.searchUrl}, documents ${web.siteUrl}`);

  const wire: WireLog = { operations: [], results: [] };
  const client: GraphqlClient = createGraphqlClient({
    url: server.url,
    key: server.developmentKey,
    observe: {
      sent: (document) => void wire.operations.push(document),
      received: (result) => void wire.results.push(result),
    },
  });
  const ownThreads: string[] = [];
  async function perform(asked: string): Promise<RunRecording> {
    print(`Question: ${asked}\n`);
    const view = createView();
    const recording = await recordRun(asked, { client, wire, model, ownThreads, show: (event) => view.show(event) });
    view.close();
    return recording;
  }

  heading('One worker after the other: the second builds on what the first noted');
  const working = await perform(question);
  heading("Two workers side by side, and one worker's provider dies in the middle of a sentence");
  model.dieUnder('Eddystone');
  const failing = await perform(secondQuestion);
  await server.stop();
  const ephemeralRows = await ephemeralRowsIn(server.dataDirectory);
  return showVerdicts({ ...working, ephemeralRows }, { ...failing, ephemeralRows });
}

/** The same question, the same server, somebody else's model. */
async function askRealModel(baseUrl: string): Promise<boolean> {
  const { LLM_API_KEY = '', LLM_MODEL = '', SEARXNG_URL = '' } = process.env;
  if (LLM_MODEL === '') throw new Error('Name a model of this provider: LLM_MODEL.');
  const search =
    SEARXNG_URL === ''
      ? smallWebSettings(await keep(startSmallWeb()))
      : { SEARXNG_URL, WEB_ALLOW_PRIVATE_HOSTS: 'false' };
  print(`The model ${LLM_MODEL} at ${baseUrl} answers. It costs what your provider takes.`);
  print(SEARXNG_URL === '' ? 'SEARXNG_URL is not set: it searches a small library.' : `It searches ${SEARXNG_URL}.`);
  const server = await keep(startServerProcess({ LLM_BASE_URL: baseUrl, LLM_API_KEY, LLM_MODEL, ...search }));
  heading(question);
  const view = createView();
  const code = await research(
    { question },
    {
      client: createGraphqlClient({ url: server.url, key: server.developmentKey }),
      view,
      writeAnswer: (text) => stdout.write(text),
      onInterrupt: () => () => {},
    },
  );
  return code === 0;
}

function leave(signal: NodeJS.Signals): void {
  process.exitCode = signal === 'SIGINT' ? 130 : 143;
  leaving ??= closeAll().then(() => process.exit());
}
process.on('SIGINT', leave).on('SIGTERM', leave);

try {
  const baseUrl = process.env['LLM_BASE_URL'];
  const isGood = baseUrl ? await askRealModel(baseUrl) : await demonstrate();
  if (!leaving) process.exitCode = isGood ? 0 : 1;
} catch (error) {
  if (!leaving) {
    process.stderr.write(`${describeFailure(error)}\n`);
    process.exitCode = 1;
  }
} finally {
  await (leaving ?? closeAll());
}
