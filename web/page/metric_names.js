// metric_names: what the page knows about metrics by name: title, number format, whether high is good, whether internal.
import * as text from '/text.js';

// Metrics that dtrun itself records. Every other name is the user's and is shown exactly as it is stored.
const KNOWN = {
  loss: 'Loss', valid_loss: 'Validation loss', valid_bleu: 'Validation BLEU', learning_rate: 'Learning rate',
  gradient_norm: 'Gradient norm', tokens_per_second: 'Tokens/s', step_seconds: 'Step time',
  outside_seconds: 'Time outside steps', flops_per_second: 'FLOP/s', matmul_flops_per_second: 'FLOP/s of matmuls',
  least_step_seconds: 'Fastest possible step', held_bytes: 'Memory in use', sent_bytes: 'Bytes sent a step',
  gpu_used_bytes: 'GPU memory', gpu_busy_percent: 'GPU utilization, %', gpu_temperature_c: 'GPU temperature, °C',
  gpu_power_watts: 'GPU power, W', loss_scale: 'Loss scale',
  skipped_steps: 'Skipped steps',
};
const FIRST = ['loss', 'valid_loss', 'valid_bleu']; // what a run is judged by
const INTERNAL = ['outside_seconds', 'flops_per_second', 'matmul_flops_per_second', 'least_step_seconds', 'held_bytes',
                  'sent_bytes', 'loss_scale', 'skipped_steps'];
const BETTER_HIGH = ['per_second', 'accuracy', 'utilization', 'bleu']; // dt_metric_more_is_better

// {base: 'gpu_used_bytes', rank: '3'} of "gpu_used_bytes_rank_3"; rank is null for other names.
export function splitRank(name) {
  const [, base, rank] = /^(.+)_rank_(\d+)$/.exec(name) ?? [null, name, null];
  return {base, rank};
}

export function titleOf(name) {
  const {base, rank} = splitRank(name);
  return !Object.hasOwn(KNOWN, base) ? name : rank === null ? KNOWN[base] : `${KNOWN[base]}, rank ${rank}`;
}

// The title inside a sentence: dtrun's own begins in lower case, a user's name is unchanged.
export function wordsOf(name, title) {
  return Object.hasOwn(KNOWN, splitRank(name).base) ? title[0].toLowerCase() + title.slice(1) : title;
}

export function isInternal(name) {
  return INTERNAL.includes(splitRank(name).base) || /^gpu_/.test(name);
}

// Whether one value is better than another: of a learning rate or a size none is.
export function isJudged(name) {
  return !isInternal(name) && (isBetterHigh(name) || name === 'step_seconds' || /loss|perplexity|error/.test(name));
}

export function isBetterHigh(name) {
  return BETTER_HIGH.some((word) => name.includes(word));
}

// The names in the order of a reader's interest: losses, then the others in their order, internal ones last.
export function ordered(names) {
  const place = (name) => FIRST.includes(name) ? FIRST.indexOf(name) : isInternal(name) ? FIRST.length + 1 : FIRST.length;
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
