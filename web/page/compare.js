// compare: several runs and groups of runs over each other, what differs in their recipes, and what their metrics came
// to. A group is a band with its mean.
import {colour, el, setText, table} from '/dom.js';
import {ACTIVE_MS, Live, QUIET_MS, getJson, isActive, keepAddress, poll} from '/live.js';
import {Band, Series} from '/series.js';
import * as text from '/text.js';
import {View, bindControls, nameItems, putAddress} from '/view.js';
import {RunCharts} from '/run_charts.js';

const RUNS_MOST = 8; // and groups: curves that can be told apart
const RECIPES_MOST = 100; // of a group that are read
const VALUES_SHOWN = 3;
const DRAW_MS = 250;
const LISTED = 200; // runs, the newest, whose changes say that a group has changed
const PAUSE_TIMES = 10; // as long as an answer takes, before bands are asked for again

const byId = (id) => document.getElementById(id);

// {"a": {"b": 1}} is {"a.b": "1"}
function flat(value, prefix, into) {
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    for (const [key, inner] of Object.entries(value)) flat(inner, prefix ? `${prefix}.${key}` : key, into);
  else into.set(prefix, typeof value === 'string' ? value : JSON.stringify(value));
  return into;
}

function head(run, at) {
  const swatch = el('span', {class: 'swatch'});
  swatch.style.background = colour(`curve-${at + 1}`);
  return el('span', {}, swatch, el('a', {href: run.href, text: run.title}));
}

// What the recipes of a group have in common; where they differ how many there are, and the first of them.
function common(flats) {
  const keys = new Set(flats.flatMap((map) => [...map.keys()]));
  return new Map([...keys].map((key) => {
    const values = [...new Set(flats.map((map) => map.get(key) ?? '–'))];
    return [key, values.length === 1 ? values[0]
      : `${values.slice(0, VALUES_SHOWN).join(', ')}${values.length > VALUES_SHOWN ? `, … (${values.length})` : ''}`];
  }));
}

// The keys in which the recipes differ, the others left out. recipes: a list for each run or group.
export function differences(recipes) {
  const flats = recipes.map((list) => common(list.map((recipe) => flat(recipe, '', new Map()))));
  const keys = [...new Set(flats.flatMap((map) => [...map.keys()]))];
  return keys.filter((key) => new Set(flats.map((map) => map.get(key))).size > 1)
    .map((key) => ({key, values: flats.map((map) => map.get(key) ?? null)}));
}

function withHeads(node, runs) {
  runs.forEach((run, at) => node.querySelectorAll('thead th')[at + 1].replaceChildren(head(run, at)));
  return node;
}

function showRecipes(runs, base) {
  const rows = differences(runs.map((run) => run.recipes));
  byId('recipes').replaceChildren(rows.length === 0
    ? el('p', {class: 'quiet', text: 'Their recipes are the same.'})
    : withHeads(table([
      {title: 'Key', cell: (row) => row.key},
      ...runs.map((run, at) => ({title: run.title, cell: (row) => el('span', {
        class: row.values[at] === row.values[base] ? '' : 'differs', text: row.values[at] ?? '–'})})),
    ], rows), runs));
}

// How far a value is from the baseline's: "1.7519 (−2.1 %)".
function beside(value, base, isBase) {
  if (value === null || isBase || !base) return text.loss(value);
  const percent = 100 * (value - base) / Math.abs(base);
  const sign = percent > 0 ? '+' : percent < 0 ? '−' : '±';
  return `${text.loss(value)} (${sign}${Math.abs(percent).toFixed(Math.abs(percent) < 10 ? 1 : 0)} %)`;
}

function isBetterHigh(name) {
  return /per_second|accuracy|utilization|bleu/.test(name);
}

function showMetrics(runs, base) {
  const names = [...new Set(runs.flatMap((run) => run.metrics))];
  const rows = names.flatMap((name) => [
    {label: `${name}, last`, of: (run) => run.series.newest(name)},
    {label: `${name}, ${isBetterHigh(name) ? 'highest' : 'lowest'}`,
     of: (run) => isBetterHigh(name) ? run.series.highest(name) : run.series.lowest(name)}]);
  byId('metrics').replaceChildren(withHeads(table([
    {title: 'Metric', cell: (row) => row.label},
    ...runs.map((run, at) => ({title: run.title, class: 'number', cell: (row) =>
      beside(row.of(run), row.of(runs[base]), at === base)})),
  ], rows), runs));
}

function chooseBase(runs, base, choose) {
  const select = byId('base');
  select.replaceChildren(...runs.map((run, at) => el('option', {value: String(at), text: run.title})));
  select.value = String(base);
  select.addEventListener('change', () => choose(Number(select.value)));
}

const pathOf = (id) => `/api/v1/runs/${encodeURIComponent(id)}`;

async function readRun(id) {
  const path = pathOf(id);
  const [{run}, {resolved}] = await Promise.all([getJson(path), getJson(`${path}/recipe`)]);
  return {id: run.id, path, href: `/runs/${encodeURIComponent(run.id)}`, recipes: [resolved], series: new Series(path),
          title: `${run.name} ${run.id}`, metrics: [], begun: 0, state: run.state, item: run.item};
}

async function readGroup(group) {
  const series = new Band(group);
  await series.update();
  const recipes = [];
  for (const id of series.runs.slice(0, RECIPES_MOST)) recipes.push((await getJson(`${pathOf(id)}/recipe`)).resolved);
  const item = series.runs.length > 0 ? (await getJson(pathOf(series.runs[0]))).run.item : 'token';
  return {id: group, href: `/?q=${encodeURIComponent(group)}`, recipes, series, metrics: series.names, begun: 0, item,
          title: `${group}, ${series.runs.length} run${series.runs.length === 1 ? '' : 's'}`, state: 'running'};
}

function take(run, {run: now, attempts, metrics}) {
  Object.assign(run, {metrics, state: now.state, begun: attempts[0].started_ms ?? now.created_ms});
}

async function update(run) {
  if (run.series instanceof Band) {
    const fresh = await run.series.update();
    run.metrics = run.series.names;
    return fresh;
  }
  const view = await getJson(run.path);
  take(run, view);
  return run.series.update(view.run.attempt, view.metrics.length);
}

export async function showCompare() {
  const given = new URLSearchParams(location.search);
  const listed = (text) => (text ?? '').split(',').filter((id) => id !== '');
  const allGroups = given.getAll('group'); // a name may have a comma
  const allIds = [...new Set(listed(document.body.dataset.runs ?? given.get('runs')))];
  const groups = allGroups.slice(0, RUNS_MOST);
  const ids = allIds.slice(0, RUNS_MOST - groups.length);
  const count = ids.length + groups.length;
  const leftOut = new Set(); // what is not in the comparison, in words
  const asked = allGroups.length + allIds.length;
  if (asked > RUNS_MOST)
    leftOut.add(`Only ${RUNS_MOST} curves can be told apart: ${asked - RUNS_MOST} of ${asked} are left out (${
      [...allGroups.slice(groups.length), ...allIds.slice(ids.length)].join(', ')}).`);
  const showLeftOut = () => {
    byId('left-out').hidden = leftOut.size === 0;
    setText(byId('left-out'), [...leftOut].join('\n'));
  };
  const view = new View();
  const charts = new RunCharts(byId('charts'), view);
  let runs = null;
  let base = Math.min(Math.max(0, Number.parseInt(given.get('base') ?? '0', 10) || 0),
                      Math.max(0, count - 1));
  const tables = () => {
    showRecipes(runs, base);
    showMetrics(runs, base);
  };

  const readZooms = (list) => Promise.all(list.filter((run) => !run.gone).map((run) => run.series.readZoom(view)));

  bindControls(view);
  view.listen(async (changes) => {
    if (!runs) return;
    if ('from' in changes || 'to' in changes)
      await readZooms(runs);
    charts.draw();
  }, () => {});

  // null for a run that is not there
  const readThere = async (id) => {
    try {
      return await readRun(id);
    } catch (error) {
      if (!error.gone) throw error;
      leftOut.add(`There is no run '${id}': it may have been removed.`);
      return null;
    }
  };
  // As update(); a run that was removed stays as it was last.
  const renewed = async (run) => {
    if (run.gone) return false;
    try {
      return await update(run);
    } catch (error) {
      if (!error.gone) throw error;
      run.gone = true;
      leftOut.add(`${run.title} was removed; its curves are shown as they last were.`);
      return false;
    }
  };
  const there = () => runs.filter((run) => !run.gone && !(run.series instanceof Band)).map((run) => run.id);

  const begin = async () => {
    runs = (await Promise.all([...groups.map(readGroup), ...ids.map(readThere)])).filter((run) => run !== null);
    base = Math.min(base, Math.max(0, runs.length - 1));
    nameItems(runs.map((run) => run.item));
    charts.setSources(runs.map((run) => ({source: run.series, title: run.title, short: run.id, begun: () => run.begun,
                                      item: () => run.item})),
                      undefined, keepAddress && groups.length === 0
                        ? (name) => keepAddress({runs: there().join(',')}, name, view)
                        : keepAddress && count === 1 ? (name) => keepAddress({group: groups[0]}, name, view) : null);
    chooseBase(runs, base, (at) => {
      base = at;
      const address = new URL(location.href);
      address.searchParams.set('base', String(at));
      putAddress(address);
      tables();
    });
  };

  let followedBefore = ''; // the runs of the stream
  let drawing = 0; // a timer: what is told is drawn so often
  const draw = () => {
    drawing = 0;
    charts.setNames([...new Set(runs.flatMap((run) => run.metrics))]);
    charts.draw();
    tables();
  };
  const told = (news) => {
    const run = runs?.find((one) => one.id === news.run);
    if (!run) return;
    if (news.view) take(run, news.view);
    const known = (!news.view || news.view.run.attempt === run.series.attempt)
      && (!news.attempt || run.series.add(news.attempt, news.series ?? {}, view));
    if (!known) again(true); // an attempt more: what it undid is the server's to say
    else if (drawing === 0) drawing = setTimeout(draw, DRAW_MS);
  };
  const again = poll(async () => {
    byId('none').hidden = count > 0;
    byId('comparison').hidden = count === 0;
    if (count === 0) return QUIET_MS;
    if (!runs) await begin();
    byId('comparison').hidden = runs.length === 0;
    showLeftOut();
    if (runs.length === 0) return null;
    const end = Math.max(...runs.map((run) => run.series.lastStep));
    const fresh = (await Promise.all(runs.map(renewed))).includes(true);
    showLeftOut();
    if (view.zoomed && (runs[0].series.zoom === null || (fresh && (view.to ?? end) >= end)))
      await readZooms(runs);
    const words = (n, word) => n === 0 ? [] : [`${n} ${word}${n > 1 ? 's' : ''}`];
    setText(byId('summary'), [...words(groups.length, 'group'), ...words(runs.length - groups.length, 'run')].join(', '));
    charts.setNames([...new Set(runs.flatMap((run) => run.metrics))]);
    if (fresh) {
      charts.draw();
      tables();
    }
    const followed = there();
    if (followed.join() !== followedBefore) streams.forEach((stream) => stream.stop());
    followedBefore = followed.join();
    const open = streams.filter((stream) => stream.ofGroups || followed.length > 0);
    open.forEach((stream) => stream.follow(null));
    const waits = open.map((stream) => stream.wait);
    if (!waits.includes(null)) return Math.min(...waits);
    return groups.length === 0 && runs.some((run) => isActive(run.state)) ? ACTIVE_MS : QUIET_MS;
  });

  // What is new of a group is not told, but that something is: then its band is asked for.
  const bands = () => runs.filter((run) => run.series instanceof Band);
  let renewing = 0; // a timer
  let renewAfter = 0; // when it may be asked for again
  const renew = async () => {
    const began = performance.now();
    try {
      const fresh = (await Promise.all(bands().map(update))).includes(true);
      if (fresh && view.zoomed) await readZooms(bands());
      if (fresh) draw();
    } catch {
      again(true); // which says what is wrong
    }
    renewing = 0;
    renewAfter = performance.now() + Math.max(ACTIVE_MS, PAUSE_TIMES * (performance.now() - began));
  };
  const groupsTold = (news) => {
    const concerns = (row) => bands().some(({series}) => series.group === row.group || series.runs.includes(row.id));
    if (runs && renewing === 0 && news.runs.some(concerns))
      renewing = setTimeout(renew, Math.max(0, renewAfter - performance.now()));
  };
  const streams = [];
  if (ids.length > 0)
    streams.push(new Live(() => `/api/v1/live?${new URLSearchParams({runs: there().join(',')})}`, () => again(true), told));
  if (groups.length > 0)
    streams.push(Object.assign(new Live(() => `/api/v1/live?limit=${LISTED}`, () => again(true), groupsTold), {ofGroups: true}));
}
