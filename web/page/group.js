// group: shows the runs of a group: a curve for each, coloured by a key in which their recipes differ, the keys against a
// metric, and a table.
import {COMPARED_MOST, chartTools, el, pillOf, setText, table} from '/dom.js';
import {QUIET_MS, getJson, isActive, poll} from '/live.js';
import {isBetterHigh, isJudged, ordered, unitOf} from '/metric_names.js';
import {coloursOf, drawParallel, shown} from '/parallel.js';
import {Band, RunsOfGroup} from '/series.js';
import * as text from '/text.js';
import {View, bindControls, nameItems, putAddress} from '/view.js';
import {RunCharts} from '/run_charts.js';

const CURVES_MOST = 50; // a larger group is drawn as its best runs and a band of all
const BEST = 20;
const AXES_MOST = 8;
const KEY_MOST = 10; // values of a key that the legend names
const ROWS = 50; // rows of the table before all are shown
const PAUSE_TIMES = 10; // pause before the next reading, as a multiple of the duration of the last one
const PAUSE_LEAST = 2000;

const byId = (id) => document.getElementById(id);
const runLink = (run) => `/runs/${encodeURIComponent(run.id)}`;

// Sorts by a value; runs without one come last in both directions.
export function sortedBy(runs, valueOf, falling) {
  const order = (a, b) => typeof a === 'number' && typeof b === 'number' ? a - b : String(a) < String(b) ? -1 : a === b ? 0 : 1;
  return [...runs].sort((one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)];
    if (a === null || b === null) return (a === null) - (b === null);
    return falling ? order(b, a) : order(a, b);
  });
}

class Settings {
  constructor() {
    const given = new URLSearchParams(location.search);
    this.name = given.get('name') ?? '';
    this.colour = given.get('colour') ?? '';
    this.metric = given.get('metric') ?? '';
    this.sort = given.get('sort') ?? '';
  }

  set(changes) {
    Object.assign(this, changes);
    const address = new URL(location.href);
    for (const name of ['colour', 'metric', 'sort'])
      if (this[name] === '') address.searchParams.delete(name);
      else address.searchParams.set(name, this[name]);
    putAddress(address);
  }
}

function summaryOf(runs) {
  const states = new Map();
  for (const run of runs) {
    const state = run.diverged && ['finished', 'running'].includes(run.state) ? 'diverged' : run.state;
    states.set(state, (states.get(state) ?? 0) + 1);
  }
  return `${text.count(runs.length)} run${runs.length === 1 ? '' : 's'}: ${[...states].map(([state, count]) => `${text.count(count)} ${state}`).join(', ')}`;
}

// The table of the runs: sorted by any column; ticked runs are compared.
class Members {
  constructor(settings, onSort) {
    this.settings = settings;
    this.onSort = onSort;
    this.ticked = new Set();
    this.whole = false; // shows all rows
  }

  tick(id, box) {
    const full = box.checked && this.ticked.size === COMPARED_MOST;
    if (full) box.checked = false;
    else if (box.checked) this.ticked.add(id);
    else this.ticked.delete(id);
    setText(byId('full'), full ? `At most ${COMPARED_MOST} runs can be compared: untick one first.` : '');
    byId('compare').hidden = this.ticked.size < 2;
    byId('compare').href = `/compare?runs=${[...this.ticked].map(encodeURIComponent).join(',')}`;
    setText(byId('compare'), `Compare ${this.ticked.size} runs`);
  }

  // Columns that can be sorted: their key in the address, their title, and the value of a run.
  columnsOf({keys, metric, high}) {
    return [{key: 'name', title: 'Run', of: (run) => run.name}, // next to it the metric, so that a narrow screen has both
            ...metric === '' ? [] : [{key: 'best', title: `${metric}, ${high ? 'highest' : 'lowest'}`, of: (run) => run.best}],
            {key: 'state', title: 'State', of: (run) => run.state},
            ...keys.map((key, at) => ({key, title: key, of: (run) => run.keys[at]})),
            {key: 'step', title: 'Step', of: (run) => run.step}];
  }

  show(data) {
    const columns = this.columnsOf(data);
    const {sort} = this.settings;
    const by = columns.find(({key}) => key === sort.replace(/^-/, ''));
    const runs = by ? sortedBy(data.runs, by.of, sort.startsWith('-')) : data.runs; // best first
    const labels = text.rowLabels(runs.map((run) => run.best), unitOf(data.metric));
    const at = new Map(runs.map((run, place) => [run.id, place]));
    const cells = {
      name: (run) => el('a', {href: runLink(run)}, el('strong', {text: run.name}), ' ', el('code', {text: run.id})),
      state: (run) => pillOf(run),
      best: (run) => el('span', {class: run === data.best ? 'best' : '', text: labels[at.get(run.id)]}),
      step: (run) => text.count(run.step),
    };
    const box = (run) => {
      const made = el('input', {type: 'checkbox', 'aria-label': `Compare ${run.name} ${run.id}`,
                                onchange: (event) => this.tick(run.id, event.target)});
      made.checked = this.ticked.has(run.id);
      return made;
    };
    const swatch = (run, key, value) => {
      const span = el('span', {class: 'swatch'});
      span.style.background = run.ink;
      return key === data.colour ? el('span', {}, span, shown(value)) : shown(value);
    };
    const made = table([
      {title: 'Compare', class: 'tick', cell: box},
      ...columns.map((column) => ({
        title: column.title, class: column.key === 'name' ? 'words name' : ['best', 'step'].includes(column.key) ? 'number' : '',
        cell: cells[column.key] ?? ((run) => swatch(run, column.key, column.of(run)))})),
    ], this.whole ? runs : runs.slice(0, ROWS));
    const focused = document.activeElement?.closest?.('#members th')?.dataset.sort;
    made.querySelectorAll('thead th').forEach((head, place) => {
      if (place === 0) head.replaceChildren(el('span', {class: 'unseen', text: 'Compare'}));
      else this.sortable(head, columns[place - 1]);
    });
    byId('members').replaceChildren(made);
    const more = byId('more-members');
    more.hidden = this.whole || runs.length <= ROWS;
    setText(more, `Show all ${text.count(runs.length)} runs`);
    if (focused) byId('members').querySelector(`th[data-sort="${CSS.escape(focused)}"] button`)?.focus();
  }

  sortable(head, column) {
    const {sort} = this.settings;
    const on = sort.replace(/^-/, '') === column.key;
    head.dataset.sort = column.key;
    if (on) head.setAttribute('aria-sort', sort.startsWith('-') ? 'descending' : 'ascending');
    head.replaceChildren(el('button', {type: 'button', text: column.title, onclick: () => {
      this.settings.set({sort: sort === column.key ? `-${column.key}` : sort === `-${column.key}` ? '' : column.key});
      this.onSort();
    }}));
  }
}

function showKey({distinct, of}) {
  const few = distinct.length <= KEY_MOST ? distinct : [distinct[0], distinct[distinct.length - 1]];
  byId('key').replaceChildren(...few.map((value, at) => {
    const swatch = el('span', {class: 'swatch'});
    swatch.style.background = of(value);
    return el('span', {}, at > 0 && distinct.length > KEY_MOST ? '… ' : '', swatch, shown(value));
  }));
}

// Fills a choice with names; keeps its elements if nothing changed.
function fillChoice(select, names, value, titleOf = (name) => name) {
  if ([...select.options].map((option) => option.value).join('\n') !== names.join('\n'))
    select.replaceChildren(...names.map((name) => el('option', {value: name, text: titleOf(name)})));
  select.value = value;
}

// Returns the runs that are drawn: all of a small group, else the best.
export function drawnOf(runs) {
  const curves = runs.filter((run) => run.step > 0 || run.best !== null || run.diverged);
  return curves.length <= CURVES_MOST ? curves : curves.slice(0, BEST);
}

export function showGroup() {
  const settings = new Settings();
  const view = new View();
  const charts = new RunCharts(byId('charts'), view, {legend: false, tools: chartTools()});
  const curves = new RunsOfGroup();
  const band = new Band(settings.name);
  let data = null; // {runs: best first, keys, metric, high, colour, best}
  let drawn = []; // runs with a curve
  let seen = ''; // what the curves were read for

  document.title = `${settings.name} · dtrun`;
  setText(byId('name'), settings.name);
  const members = new Members(settings, () => members.show(data));
  bindControls(view);
  byId('more-members').addEventListener('click', () => {
    members.whole = true;
    members.show(data);
  });

  const banded = () => drawn.length < data.runs.length && data.runs.length > CURVES_MOST;
  const setSources = () => {
    const tokens = (run) => run.tokens_per_second > 0 && run.values[0] > 0 ? Math.round(run.tokens_per_second * run.values[0]) : null;
    const sources = drawn.map((run) => ({
      source: curves.of(run.id, () => tokens(run)), title: `${run.name} ${run.id}`, short: run.id, ink: run.ink, href: runLink(run),
      begun: () => run.begun_ms, item: () => run.item}));
    if (banded())
      sources.push({source: band, title: `mean of all ${data.runs.length}`, short: 'all', ink: colourOfBand(), begun: () => 0,
                    item: () => data.runs[0].item});
    charts.setSources(sources);
  };
  const colourOfBand = () => getComputedStyle(document.documentElement).getPropertyValue('--quiet').trim();

  const paint = () => {
    const at = data.keys.indexOf(settings.colour) >= 0 ? data.keys.indexOf(settings.colour) : 0;
    data.colour = data.keys[at] ?? '';
    const values = data.runs.map((run) => run.keys[at] ?? run.name);
    const colours = coloursOf(values);
    data.runs.forEach((run, place) => { run.ink = colours.of(values[place]); });
    byId('colour-label').hidden = data.keys.length === 0;
    fillChoice(byId('colour'), data.keys, data.colour);
    if (data.keys.length > 0) showKey(colours);
  };
  const showParallel = () => {
    byId('parallel-card').hidden = data.metric === '';
    if (data.metric === '') return;
    const names = ordered(data.metrics);
    fillChoice(byId('metric'), names.filter((name) => isJudged(name) || name === data.metric), data.metric,
               (name) => `${name}, ${isBetterHigh(name) ? 'highest' : 'lowest'}`);
    const keys = data.keys.slice(0, AXES_MOST);
    drawParallel(byId('parallel'), keys, data.metric, data.runs.map((run) => ({
      keys: run.keys.slice(0, AXES_MOST), best: run.best, ink: run.ink, first: run === data.best,
      href: run === data.best ? runLink(run) : `/compare?runs=${[data.best, run].map((one) => encodeURIComponent(one.id)).join(',')}`,
      words: `${run.name} ${run.id}: ${keys.map((key, at) => `${key} = ${shown(run.keys[at])}`).join(', ')}; ${data.metric} ${
        run.best === null ? run.diverged ? 'diverged' : '–' : text.compact(run.best)}`})));
  };
  const showWinner = () => {
    const {best} = data;
    byId('winner').hidden = !best || data.runs.length < 2;
    if (!best) return;
    const keys = data.keys.length === 0 ? best.name : data.keys.map((key, at) => `${key} = ${shown(best.keys[at])}`).join(', ');
    byId('winner').replaceChildren(`Best: ${keys} (${data.metric} ${text.rowLabels([best.best], unitOf(data.metric))[0]}, `,
                                   el('a', {href: runLink(best), text: best.name}), ')');
  };
  const showAll = () => {
    paint();
    setText(byId('summary'), summaryOf(data.runs));
    byId('in-list').hidden = false;
    byId('in-list').href = `/?group=${encodeURIComponent(settings.name)}`;
    byId('left-out').hidden = data.leftOut === 0;
    setText(byId('left-out'), `The newest ${data.runs.length} runs are shown; ${text.count(data.leftOut)} older ones are left out.`);
    setText(byId('drawn'), banded() ? `The best ${drawn.length}, and a band of all` : '');
    nameItems(data.runs.map((run) => run.item));
    showWinner();
    setSources();
    charts.setNames(data.metrics);
    charts.draw();
    showParallel();
    members.show(data);
  };
  const take = (answer) => {
    const runs = sortedBy(answer.runs.map((run) => ({...run, best: run.diverged || typeof run.best !== 'number' ? null : run.best})),
                          (run) => run.best, answer.higher_is_better);
    data = {runs, keys: answer.keys, metric: answer.metric, high: answer.higher_is_better, metrics: answer.metrics,
            leftOut: answer.left_out, best: runs[0]?.best === null ? undefined : runs[0]};
    drawn = drawnOf(runs);
  };

  const again = poll(async () => {
    const began = performance.now();
    const asked = new URLSearchParams({group: settings.name, columns: 'step_seconds'});
    if (settings.metric !== '') asked.set('metric', settings.metric);
    const answer = await getJson(`/api/v1/table?${asked}`);
    take(answer);
    byId('loading').hidden = true;
    byId('none').hidden = data.runs.length > 0;
    byId('group').hidden = data.runs.length === 0;
    if (data.runs.length === 0) return QUIET_MS;
    const now = JSON.stringify([answer.metric, answer.runs.map((run) => [run.id, run.state, run.activity, run.step, run.best])]);
    if (now !== seen) {
      seen = now;
      paint();
      setSources();
      if (curves.ids.length === 0) { // the first chart; the others are read when it is drawn
        charts.setNames(data.metrics);
        for (const name of charts.wantedNow().slice(0, 1)) curves.wanted.add(name);
      }
      await Promise.all([curves.update(drawn.map((run) => run.id)), banded() ? noteBand() : null]);
      showAll();
    }
    const pause = Math.max(PAUSE_LEAST, PAUSE_TIMES * (performance.now() - began));
    return data.runs.some((run) => isActive(run.state)) ? pause : Math.max(pause, QUIET_MS);
  });
  const noteBand = async () => {
    for (const name of curves.wanted) band.wanted.add(name);
    await band.update();
  };

  view.listen(async (changes) => {
    if (!data) return;
    if ('from' in changes || 'to' in changes) await Promise.all([curves.readZoom(view), banded() ? band.readZoom(view) : null]);
    charts.draw();
  }, () => {});
  byId('colour').addEventListener('change', () => {
    settings.set({colour: byId('colour').value});
    showAll();
  });
  byId('metric').addEventListener('change', () => {
    settings.set({metric: byId('metric').value});
    again(true);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => data && showAll());
  let width = 0;
  new ResizeObserver(() => {
    if (data && byId('parallel').clientWidth !== width) showParallel();
    width = byId('parallel').clientWidth;
  }).observe(byId('parallel'));
}
