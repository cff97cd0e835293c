// metric_names: describes metrics by name: title, number format, whether high is good, whether internal.
import {BETTER_HIGH, METRICS} from '/metric_table.js';
import * as text from '/text.js';

// Every name outside this table is the user's and is shown exactly as it is stored.
const KNOWN = new Map(METRICS.map((metric) => [metric.name, metric]));
const PLACES = new Map(METRICS.filter(({internal}) => !internal).map(({name}, at) => [name, at]));

// Splits "gpu_used_bytes_rank_3" into {base: 'gpu_used_bytes', rank: '3'}; rank is null for other names.
export function splitRank(name) {
  const [, base, rank] = /^(.+)_rank_(\d+)$/.exec(name) ?? [null, name, null];
  return {base, rank};
}

export function titleOf(name) {
  const {base, rank} = splitRank(name);
  const title = KNOWN.get(base)?.title;
  return title === undefined ? name : rank === null ? title : `${title}, rank ${rank}`;
}

// The title inside a sentence: dtrun's own begins in lower case, a user's name is unchanged.
export function wordsOf(name, title) {
  return KNOWN.has(splitRank(name).base) ? title[0].toLowerCase() + title.slice(1) : title;
}

export function isInternal(name) {
  return KNOWN.get(splitRank(name).base)?.internal ?? /^gpu_/.test(name);
}

// Returns true if one value can be better than another, unlike those of a learning rate or a size.
export function isJudged(name) {
  const known = KNOWN.get(name);
  return known ? known.better !== '' : !isInternal(name) && (isBetterHigh(name) || /loss|perplexity|bits_per|error/.test(name));
}

export function isBetterHigh(name) {
  return BETTER_HIGH.some((word) => name.includes(word));
}

// Sorts names for the reader: dtrun's own, then the user's in their order, internal ones last.
export function ordered(names) {
  const place = (name) => PLACES.get(name) ?? PLACES.size + (isInternal(name) ? 1 : 0);
  return [...names].sort((a, b) => place(a) - place(b));
}

// The unit of a metric by its name, for text.number: 'bytes', 'seconds' or ''.
export function unitOf(name) {
  const {base} = splitRank(name);
  return base.endsWith('_bytes') ? 'bytes' : base.endsWith('_seconds') ? 'seconds' : '';
}

export function formatOf(name) {
  return {bytes: text.bytes, seconds: text.shortTime}[unitOf(name)] ?? text.compact;
}
