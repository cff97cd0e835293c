// evaluations: shows results of evaluation tasks with their standard errors: steps of a run, or the newest of several runs.
import {el, table} from '/dom.js';
import {getJson} from '/live.js';
import {isBetterHigh} from '/metric_names.js';
import * as text from '/text.js';

const STEPS_SHOWN = 6; // the first step and the newest ones

// Returns the value and its error with the same decimals: ['0.4350', '0.0351']; perplexities are large.
function labelsOf({value, stderr}) {
  if (value === null) return ['nan', null];
  const decimals = Math.abs(value) >= 1e5 ? 0 : Math.abs(value) >= 100 ? 2 : 4;
  const format = new Intl.NumberFormat('en', {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
  const put = (number) => Math.abs(number) >= 1e9 ? number.toExponential(3) : format.format(number);
  return [put(value), stderr === null ? null : put(stderr)];
}

// Returns a row for each metric of each task. columns: [{tasks: {NAME: result}}]
export function rowsOf(columns) {
  const names = [...new Set(columns.flatMap(({tasks}) => Object.keys(tasks)))];
  return names.flatMap((task) => {
    const metrics = new Set(columns.flatMap(({tasks}) => Object.keys(tasks[task]?.metrics ?? {})));
    return [...metrics].map((metric) => ({
      name: `${task}/${metric}`, task, metric,
      results: columns.map(({tasks}) => tasks[task]?.metrics?.[metric] === undefined ? null : tasks[task]),
    }));
  });
}

// A row above the metrics of a task: its name, its rows, and how many of these lost their beginning.
function taskHead(row, width) {
  const {rows, cut} = row.results.findLast((one) => one !== null);
  const words = `${text.count(rows)} rows${cut > 0 ? `, ${text.count(cut)} cut` : ''}`;
  return el('tr', {class: 'task'}, el('th', {scope: 'colgroup', colspan: width},
    el('b', {text: row.task}), ' ',
    el('span', {class: 'quiet', text: words,
                title: cut > 0 ? 'cut: prompts that were longer than the context lost their beginning' : null})));
}

function valueCell(row, at, best, note) {
  const result = row.results[at];
  if (result === null) return '–';
  const [value, error] = labelsOf(result.metrics[row.metric]);
  const part = (words) => el('span', {class: 'quiet whole', text: words});
  return el('span', {},
            el('span', {class: `whole ${best ? 'best' : ''}`, title: best ? 'best of these' : null, text: value}),
            ...error === null ? [] : [' ', part(`± ${error}`)], ...note === '' ? [] : [' ', part(note)]);
}

// Returns the places of the best values; none if all are equal.
function bestPlaces(row) {
  const values = row.results.map((result) => result?.metrics[row.metric].value ?? null);
  const there = values.filter((value) => value !== null);
  if (new Set(there).size < 2) return [];
  const best = isBetterHigh(row.name) ? Math.max(...there) : Math.min(...there);
  return values.map((value, at) => value === best ? at : -1).filter((at) => at >= 0);
}

// columns: [{title, tasks, noteOf: (task) => string}]
function resultsTable(columns) {
  const rows = rowsOf(columns);
  const made = table([
    {title: 'Metric', cell: (row) => row.metric},
    ...columns.map((column, at) => ({title: column.title, class: 'number', cell: (row) =>
      valueCell(row, at, bestPlaces(row).includes(at), column.noteOf?.(row.task) ?? '')})),
  ], rows);
  const lines = [...made.tBodies[0].rows];
  rows.forEach((row, at) => {
    if (at === 0 || rows[at - 1].task !== row.task) lines[at].before(taskHead(row, columns.length + 1));
  });
  made.classList.add('results');
  return made;
}

// The results of a run, newest step first.
export class Evaluations {
  constructor(card, node, path) {
    Object.assign(this, {card, node, path: `${path}/evaluations?most=${STEPS_SHOWN}`, shown: ''});
  }

  async update() {
    const {steps, evaluations} = await getJson(this.path);
    const key = JSON.stringify([steps, evaluations]);
    if (key === this.shown) return;
    this.shown = key;
    this.card.hidden = steps === 0;
    const columns = [...evaluations].reverse().map(({step, tasks}) => ({title: `step ${text.count(step)}`, tasks}));
    const more = steps - columns.length;
    this.node.replaceChildren(resultsTable(columns), ...more <= 0 ? [] : [el('p', {class: 'quiet',
      text: `and ${text.count(more)} more step${more > 1 ? 's' : ''} between the first and these: the charts have all`})]);
  }
}

// Returns the newest result of each task of a run: {NAME: {step, metrics, ...}}.
export async function readNewest(path) {
  return (await getJson(`${path}/evaluations?most=1`)).newest;
}

// Shows the newest results of several runs side by side. runs: [{title, newest}]; head: makes the heading of a run.
export function showNewest(card, node, runs, head) {
  const columns = runs.map(({title, newest}) => ({title, tasks: newest, noteOf: (task) => `@${newest[task]?.step}`}));
  card.hidden = columns.every(({tasks}) => Object.keys(tasks).length === 0);
  if (card.hidden) return;
  const made = resultsTable(columns);
  const heads = [...made.querySelectorAll('thead th')].slice(1);
  heads.forEach((cell, at) => cell.replaceChildren(head(at)));
  node.replaceChildren(made);
}

// Returns true if the table of evaluations has this metric of a run.
export function isEvaluated(name, runs) {
  return runs.some(({newest}) => Object.entries(newest)
    .some(([task, result]) => Object.keys(result?.metrics ?? {}).some((metric) => `${task}/${metric}` === name)));
}
