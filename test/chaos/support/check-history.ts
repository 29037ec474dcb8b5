// Judges what clients saw of one scratchpad. Pure: it can be given any history, also a wrong one.
import type { AcknowledgedAppend, AcknowledgedSet, LedgerEntry, PadHistory, Received } from './history.js';
import { isTorn, readMark, type TextMark } from './marked-text.js';

export type ProblemKind =
  | 'lost' // an acknowledged write is not there
  | 'duplicate' // something is there, or was told, twice
  | 'order' // two orders of the same entries, or an order against time
  | 'torn' // a text that is not the text that somebody wrote
  | 'gap' // a subscriber was not told of something
  | 'unknown' // a subscriber was told of something that is not there
  | 'two successors' // a version was replaced twice
  | 'stale'; // an older text where a newer one must be

export interface Problem {
  kind: ProblemKind;
  detail: string;
}

type Report = (kind: ProblemKind, detail: string) => void;

/** @returns nothing when the history is one that the service promises */
export function checkHistory(history: PadHistory): Problem[] {
  const problems: Problem[] = [];
  const report: Report = (kind, detail) => problems.push({ kind, detail });
  checkLedger(history.ledger, report);
  checkAppends(history.appends, history.ledger, report);
  checkRealTime(history.appends, history.ledger, report);
  for (const [name, events] of history.subscribers) checkSubscriber(name, events, history, report);
  checkVersions(history, report);
  return problems;
}

function checkLedger(ledger: readonly LedgerEntry[], report: Report): void {
  const ids = new Set<string>();
  const names = new Set<string>();
  for (const { id, content } of ledger) {
    const mark = readMark(content);
    if (isTorn(mark)) report('torn', `entry ${id} is not what anybody wrote`);
    if (ids.has(id)) report('duplicate', `entry ${id} is in the ledger twice`);
    else if (names.has(mark.name)) report('duplicate', `the text ${mark.name} is in the ledger twice`);
    ids.add(id);
    names.add(mark.name);
  }
}

function checkAppends(appends: readonly AcknowledgedAppend[], ledger: readonly LedgerEntry[], report: Report): void {
  const contents = new Map(ledger.map(({ id, content }) => [id, content]));
  const answered = new Map<string, string>();
  for (const { name, entry } of appends) {
    const stored = contents.get(entry.id);
    if (stored === undefined) report('lost', `${name} was acknowledged as ${entry.id} and is not in the ledger`);
    else if (stored !== entry.content)
      report('torn', `${name} was acknowledged with another text than ${entry.id} has`);
    if (readMark(entry.content).name !== name) report('torn', `the answer to ${name} tells of another text`);
    const before = answered.get(entry.id);
    if (before !== undefined) report('duplicate', `${entry.id} is the answer to both ${before} and ${name}`);
    answered.set(entry.id, name);
  }
}

/** What was answered before another was sent is before it in the ledger. */
function checkRealTime(appends: readonly AcknowledgedAppend[], ledger: readonly LedgerEntry[], report: Report): void {
  const byId = new Map(appends.map((append) => [append.entry.id, append]));
  let earliest: AcknowledgedAppend | undefined;
  for (const { id } of ledger.toReversed()) {
    const append = byId.get(id);
    if (!append) continue;
    if (earliest && earliest.answeredAtMs < append.startedAtMs) {
      report('order', `${earliest.name} was answered before ${append.name} was sent, and stands behind it`);
    }
    if (!earliest || append.answeredAtMs < earliest.answeredAtMs) earliest = append;
  }
}

function checkSubscriber(name: string, events: readonly Received[], history: PadHistory, report: Report): void {
  const told = events.flatMap(({ entry }) => entry ?? []);
  checkTold(name, told, history.ledger, report);
  let last = 0;
  for (const { operation, content } of events) {
    if (operation !== 'UPDATE') continue;
    if (!content) {
      report('gap', `${name} was told of a rewrite without its text`);
      continue;
    }
    if (isTorn(content)) report('torn', `${name} was given a torn text as version ${content.version}`);
    if (Number(content.version) < last) report('order', `${name} got version ${content.version} after ${last}`);
    last = Math.max(last, Number(content.version));
  }
  const { version } = history.content;
  if (last !== Number(version)) report('gap', `${name} last knew version ${last}, and the content is at ${version}`);
}

/** A subscriber that began with nothing was told of exactly the ledger. */
function checkTold(name: string, told: readonly LedgerEntry[], ledger: readonly LedgerEntry[], report: Report): void {
  const places = new Map(ledger.map(({ id }, place) => [id, place]));
  const seen = new Set<string>();
  let last = -1;
  for (const { id, content } of told) {
    const place = places.get(id);
    if (place === undefined) {
      report('unknown', `${name} was told of ${id}, which is not in the ledger`);
      continue;
    }
    if (seen.has(id)) report('duplicate', `${name} was told of ${id} twice`);
    else if (place < last) report('order', `${name} was told of ${id} after an entry that stands behind it`);
    if (ledger[place]?.content !== content) report('torn', `${name} was given another text than ${id} has`);
    seen.add(id);
    last = Math.max(last, place);
  }
  const missed = ledger.filter(({ id }) => !seen.has(id));
  if (missed.length > 0) {
    report('gap', `${name} was not told of ${missed.length} entries, the first of them ${missed[0]?.id}`);
  }
}

function checkVersions({ sets, content, subscribers }: PadHistory, report: Report): void {
  const texts = new Map<string, string>();
  const note = (version: string, digest: string, who: string): void => {
    const known = texts.get(version);
    if (known !== undefined && known !== digest) report('torn', `version ${version} has two texts, says ${who}`);
    texts.set(version, digest);
  };
  const nameDigest = (mark: TextMark): string => mark.name;
  const answered = new Map<string, AcknowledgedSet>();
  for (const set of sets) {
    const before = answered.get(set.version);
    if (before) report('duplicate', `version ${set.version} is the answer to both ${before.name} and ${set.name}`);
    answered.set(set.version, set);
    note(set.version, set.name, set.client);
  }
  for (const [name, events] of subscribers) {
    for (const { content: told } of events) if (told) note(told.version, nameDigest(told), name);
  }
  if (content.version !== '0') {
    const mark = readMark(content.text);
    if (isTorn(mark)) report('torn', 'the content is not what anybody wrote');
    note(content.version, nameDigest(mark), 'the store');
  }
  const versions = [...texts.keys()].map(Number).sort((one, other) => one - other);
  const newest = versions.at(-1) ?? 0;
  if (newest > Number(content.version))
    report('stale', `version ${newest} was known; the content is at ${content.version}`);
  checkSuccessors(sets, versions, report);
}

/** Who replaces exactly one version leaves none between it and the new one. */
function checkSuccessors(sets: readonly AcknowledgedSet[], versions: readonly number[], report: Report): void {
  const places = new Map(versions.map((version, place) => [version, place]));
  for (const { name, version, expectedVersion } of sets) {
    if (expectedVersion === null) continue;
    const between = versions[(places.get(Number(version)) ?? 0) - 1] ?? 0;
    if (between > Number(expectedVersion)) {
      report('two successors', `${expectedVersion} was followed by ${between}, and ${name} replaced it by ${version}`);
    }
  }
}
