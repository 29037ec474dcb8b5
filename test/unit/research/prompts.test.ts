import { describe, expect, it } from 'vitest';
import { lastTurnNote } from '../../../src/research/prompts/last-turn-note.js';
import { markers } from '../../../src/research/prompts/marker-protocol.js';
import { supervisorPrompt } from '../../../src/research/prompts/supervisor-prompt.js';
import { workerPrompt } from '../../../src/research/prompts/worker-prompt.js';
import { hydrateTools, type RunRole } from '../../../src/tools/hydrate.js';
import { reservedToolNames, type Capability } from '../../../src/tools/platform-tool-map.js';

const mentioned = (prompt: string) => [...reservedToolNames].filter((name) => prompt.includes(name));
const offered = (types: Capability[], role: RunRole) =>
  hydrateTools(
    types.map((type) => ({ type })),
    role,
  ).map(({ name }) => name);

describe('a prompt', () => {
  it('names only tools that its role is offered', () => {
    const supervisor = supervisorPrompt({ maxTurns: 24, maxWorkers: 3 });
    const worker = workerPrompt({ maxTurns: 8 });
    expect(offered(['scratchpad'], 'RESEARCH')).toEqual(expect.arrayContaining(mentioned(supervisor)));
    expect(mentioned(supervisor)).toEqual(['read_scratchpad', 'update_scratchpad', 'delegate_research_task']);
    expect(offered(['web_search', 'scratchpad'], 'RESEARCH_WORKER')).toEqual(expect.arrayContaining(mentioned(worker)));
    expect(mentioned(worker)).not.toContain('update_scratchpad');
  });

  it('explains every marker, and says how many turns there are', () => {
    for (const prompt of [supervisorPrompt({ maxTurns: 17, maxWorkers: 3 }), workerPrompt({ maxTurns: 17 })]) {
      expect(Object.values(markers).filter((marker) => !prompt.includes(marker))).toEqual([]);
      expect(prompt).toContain('You have 17 turns.');
      expect(prompt).toBe(prompt.trim());
    }
    expect(lastTurnNote).toContain('last turn');
  });
});
