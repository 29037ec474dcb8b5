// Reading: one scratchpad against bare Mercurius, and the nested page against Mercurius with loaders over Prisma and ioredis.
import { checkData, graphqlShot, runLoad, type Shot } from '../http-load.js';
import { interleave, pick, type Plan, type Work } from '../rounds.js';
import type { ServerProcess } from '../server-process.js';
import { median, medianRatio, type Row } from '../table.js';
import type { World } from '../world.js';
import { beside, withLongRounds } from './append.js';

const threads = 50;
const entries = 20;

const readDocument = `query Read($id: ID!) {
  scratchpad(id: $id) {
    id content { text updatedAt }
    entries(first: ${entries}) { edges { node { id content createdAt } } }
  }
}`;
const pageDocument = `query Page {
  viewer { id name threads(first: ${threads}) { edges { node { id createdAt scratchpad {
    id content { text updatedAt } entryCount
    entries(first: ${entries}) { edges { node { id content createdAt } } }
  } } } } }
}`;

interface PadAnswer {
  content: { text: string };
  entries: { edges: { node: { id: string; content: string; createdAt: string } }[] };
}

const isWhole = ({ content, entries: { edges } }: PadAnswer): boolean =>
  content.text.startsWith('What is known') &&
  edges.length === entries &&
  edges.every(({ node }) => node.content.startsWith('finding') && node.id !== '' && node.createdAt !== '');

/** @returns the pads, each with a content and its entries */
export async function fillThreads(world: World, server: ServerProcess): Promise<string[]> {
  const pads = [];
  for (let thread = 0; thread < threads; thread += 1) {
    const id = await world.createScratchpad(server);
    pads.push(id);
    await world.run(
      server,
      `mutation ($input: SetScratchpadContentInput!) { setScratchpadContent(input: $input) { content { version } } }`,
      { input: { scratchpadId: id, text: `What is known of topic ${thread}. `.repeat(20) } },
    );
    for (let entry = 0; entry < entries; entry += 1) {
      await world.run(
        server,
        `mutation ($input: AppendScratchpadEntryInput!) { appendScratchpadEntry(input: $input) { entry { id } } }`,
        { input: { scratchpadId: id, content: `finding ${entry} of topic ${thread}: `.repeat(4) } },
      );
    }
  }
  return pads;
}

export async function measureReads(world: World, plan: Plan): Promise<Row[]> {
  const [ours, mercurius] = await Promise.all([world.startOurs(), world.startBaseline('mercurius')]);
  const pads = await fillThreads(world, ours);
  const measure = async (
    plan: Plan,
    connections: number,
    work: Work,
    shotFor: (lane: number, headers: Record<string, string>) => Shot,
  ) => {
    const side = (server: ServerProcess, headers: Record<string, string>) => (requests: number) =>
      runLoad({ server, connections, requests, shotFor: (lane) => shotFor(lane, headers) });
    const results = await interleave(plan, work, {
      ours: side(ours, { authorization: `Bearer ${world.tenant.secret}` }),
      mercurius: side(mercurius, {}),
    });
    const cpu = { ours: pick(results.ours, 'cpuMicroseconds'), theirs: pick(results.mercurius, 'cpuMicroseconds') };
    return {
      measure: "µs of the server's CPU for each",
      ours: median(cpu.ours),
      theirs: median(cpu.theirs),
      result: medianRatio(cpu.theirs, cpu.ours),
      beside: beside(results.ours, results.mercurius),
    };
  };
  const read = await measure(withLongRounds(plan), 50, { warmUp: 8000, round: 3000 }, (lane, headers) =>
    graphqlShot(
      readDocument,
      { id: pads[lane % pads.length] },
      checkData(({ scratchpad }: { scratchpad: PadAnswer }) => isWhole(scratchpad)),
      headers,
    ),
  );
  const page = await measure(plan, 8, { warmUp: 200, round: 80 }, (_lane, headers) =>
    graphqlShot(
      pageDocument,
      {},
      checkData(
        ({ viewer }: { viewer: { threads: { edges: { node: { scratchpad: PadAnswer } }[] } } }) =>
          viewer.threads.edges.length === threads && viewer.threads.edges.every(({ node }) => isWhole(node.scratchpad)),
      ),
      headers,
    ),
  );
  await Promise.all([ours, mercurius].map((server) => server.stop()));
  return [
    {
      what: `nested page: ${threads} threads, content, ${entries} entries each; 8 connections`,
      against: 'Mercurius + JIT, loaders over Prisma and ioredis',
      aim: { atLeast: 2 },
      ...page,
    },
    {
      what: `one scratchpad: content and ${entries} entries; 50 connections`,
      against: 'bare Mercurius + JIT',
      aim: { atLeast: 1 },
      ...read,
    },
  ];
}
