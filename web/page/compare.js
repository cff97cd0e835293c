// compare: shows several runs and groups of runs in the same charts, with the differences of their
// recipes and results. A group is drawn as a band with its mean.
import {COMPARED_MOST, chartTools, el, pillOf, setText, swatchOf, table} from '/dom.js';
import {isEvaluated, readNewest, showNewest} from '/evaluations.js';
import {ACTIVE_MS, Live, QUIET_MS, getJson, isActive, keepAddress, poll} from '/live.js';
import {isBetterHigh, isInternal, isJudged, ordered, unitOf} from '/metric_names.js';
import {Band, Series} from '/series.js';
import * as text from '/text.js';
import {View, bindControls, nameItems, putAddress} from '/view.js';
import {RunCharts} from '/run_charts.js';

const LEGEND_MOST = 8; // curves that the legend of each chart names; more have one legend above the charts
const CURVES_MOST = 24; // metrics whose curves are all read
const VALUES_SHOWN = 3;
const DRAW_MS = 250;
const LISTED = 200; // newest runs whose changes show that a group has changed
const PAUSE_TIMES = 10; // bands are read again after a pause of this many times the duration of an answer

const byId = (id) => document.getElementById(id);

// Flattens nested objects: {"a": {"b": 1}} becomes {"a.b": "1"}.
function flat(value, prefix, into) {
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    for (const [key, inner] of Object.entries(value)) flat(inner, prefix ? `${prefix}.${key}` : key, into);
  else into.set(prefix, typeof value === 'string' ? value : JSON.stringify(value));
  return into;
}

function head(run, at) {
  return el('span', {}, swatchOf(at), el('a', {href: run.href, text: run.title}));
}

// Merges the recipes of a group: for each key its value, or the first values and their number if they differ.
function common(flats) {
  const keys = new Set(flats.flatMap((map) => [...map.keys()]));
  return new Map([...keys].map((key) => {
    const values = [...new Set(flats.map((map) => map.get(key) ?? '–'))];
    return [key, values.length === 1 ? values[0]
      : `${values.slice(0, VALUES_SHOWN).join(', ')}${values.length > VALUES_SHOWN ? `, … (${values.length})` : ''}`];
  }));
}

const LEFT_OUT = ['name', 'recipe', 'needs', 'notify']; // keys that do not affect training, as in `dtrun compare`

// Returns the keys in which the recipes differ. recipes: a list for each run or group.
export function differences(recipes) {
  const flats = recipes.map((list) => common(list.map((recipe) => flat(recipe, '', new Map()))));
  const keys = [...new Set(flats.flatMap((map) => [...map.keys()]))]
    .filter((key) => !LEFT_OUT.includes(key.split('.')[0]));
  const tasks = new Set(flats.map((map) => map.get('task')));
  const shared = (key) => tasks.size === 1 || flats.every((map) => map.has(key)); // a task has fields of its own
  return keys.filter((key) => shared(key) && new Set(flats.map((map) => map.get(key))).size > 1)
    .map((key) => ({key, values: flats.map((map) => map.get(key) ?? null)}));
}

function withHeads(node, runs, places) {
  places.forEach((place, at) => node.querySelectorAll('thead th')[at + 1].replaceChildren(head(runs[place], place)));
  return node;
}

export function hasRecipe(recipe) {
  return recipe !== null && typeof recipe === 'object' && Object.keys(recipe).length > 0;
}

// Describes the recipes in a sentence; null if a table of differences is shown.
export function recipeWords(titles, without, differing) {
  const imported = without.length === 0 ? '' : ` Imported without a recipe: ${without.join(', ')}.`;
  if (titles.length === 0) return 'None of these runs has a recipe: they were imported.';
  if (titles.length === 1) return without.length === 0 ? 'There is one recipe only.' : `Only ${titles[0]} has a recipe.${imported}`;
  if (differing > 0) return imported === '' ? null : imported.trim();
  return (without.length === 0 ? 'Their recipes are the same.' : `The recipes of ${titles.join(', ')} are the same.`) + imported;
}

function showRecipes(runs, base) {
  byId('recipes').closest('section').hidden = runs.length < 2; // the table of a single group has its own differences
  const places = runs.map((_, at) => at).filter((at) => runs[at].recipes.some(hasRecipe));
  const compared = places.map((at) => runs[at]);
  const rows = places.length < 2 ? [] : differences(compared.map((run) => run.recipes.filter(hasRecipe)));
  const against = Math.max(0, places.indexOf(base));
  const words = recipeWords(compared.map((run) => run.title),
                            runs.filter((run) => !compared.includes(run)).map((run) => run.title), rows.length);
  byId('recipes').replaceChildren(...rows.length === 0 ? []
    : [withHeads(table([
      {title: 'Key', class: 'words', cell: (row) => row.key},
      ...compared.map((run, at) => ({title: run.title, class: 'words', cell: (row) => el('span', {
        class: row.values[at] === row.values[against] ? '' : 'differs', text: row.values[at] ?? '–'})})),
    ], rows), runs, places)], ...words === null ? [] : [el('p', {class: 'quiet', text: words})]);
}

// Returns the difference to the baseline's value as text like "−2.1 %"; '' if there is none to show.
export function differenceOf(value, base) {
  if (value === null || base === null || !base) return '';
  const percent = 100 * (value - base) / Math.abs(base);
  if (!Number.isFinite(percent)) return '';
  const sign = percent > 0 ? '+' : percent < 0 ? '−' : '±';
  const size = Math.abs(percent);
  return `${sign}${size < 10 ? size.toFixed(1) : size < 1e5 ? size.toFixed(0) : text.compact(size)} %`;
}

// Returns the indices of the best of several values; none if all are equal or only one is known.
export function bestOf(values, high) {
  const there = values.filter((value) => value !== null && Number.isFinite(value));
  if (there.length < 2 || new Set(there).size < 2) return [];
  const best = high ? Math.max(...there) : Math.min(...there);
  return values.map((value, at) => value === best ? at : -1).filter((at) => at >= 0);
}

function metricCell(row, at, base) {
  const difference = at === base ? '' : differenceOf(row.values[at], row.values[base]);
  const best = row.best.includes(at);
  return el('span', {class: best ? 'best' : '', title: best ? 'best of these' : null},
    el('span', {class: 'whole', text: row.labels[at]}),
    difference === '' ? '' : ' ', difference === '' ? null : el('span', {class: 'whole', text: `(${difference})`}));
}

function showMetrics(runs, base, internal) {
  const names = ordered([...new Set(runs.flatMap((run) => run.metrics))]).filter((name) => (internal || !isInternal(name)) && !isEvaluated(name, runs));
  const row = (name, words, of) => {
    const values = runs.map(of);
    return {label: `${name}, ${words}`, values, labels: text.rowLabels(values, unitOf(name)),
            best: isJudged(name) ? bestOf(values, isBetterHigh(name)) : []};
  };
  const rows = names.flatMap((name) => [
    row(name, 'last', (run) => run.series.newest(name)),
    ...!isJudged(name) ? []
      : isBetterHigh(name) ? [row(name, 'highest', (run) => run.series.highest(name))]
        : [row(name, 'lowest', (run) => run.series.lowest(name))]]);
  byId('metrics').replaceChildren(withHeads(table([
    {title: 'Metric', class: 'words', cell: (item) => item.label},
    ...runs.map((run, at) => ({title: run.title, class: 'number', cell: (item) => metricCell(item, at, base)})),
  ], rows), runs, runs.map((_, at) => at)));
}

// A group has no results of its own.
function showEvaluations(runs) {
  const places = runs.map((_, at) => at).filter((at) => !(runs[at].series instanceof Band));
  showNewest(byId('evaluations-card'), byId('evaluations'), places.map((at) => runs[at]), (at) => head(runs[places[at]], places[at]));
}

// --- the runs of a group, best first

// Sorts the members by their best value; those without a value come last.
export function ranked(members, high) {
  const worth = (member) => member.best === null ? Infinity : high ? -member.best : member.best;
  return [...members].sort((a, b) => worth(a) === worth(b) ? 0 : worth(a) - worth(b));
}

function showGroup(group) {
  const members = ranked(group.members, group.metric !== '' && group.high);
  const keys = differences(members.map((member) => [member.recipe ?? {}])).map((row) => row.key);
  const flats = members.map((member) => flat(member.recipe ?? {}, '', new Map()));
  const labels = text.rowLabels(members.map((member) => member.best), unitOf(group.metric));
  const rows = members.map((member, at) => ({...member, at}));
  const [first] = members;
  const said = members.length < 2 || first.best === null ? ''
    : `Best: ${keys.length === 0 ? first.name : keys.map((key) => `${key} = ${flats[0].get(key) ?? '–'}`).join(', ')}`
      + ` (${group.metric} ${labels[0]}, ${first.name})`;
  const more = group.leftOut;
  return el('section', {class: 'card wide-card members', 'aria-label': `Runs of ${group.id}`},
    el('div', {class: 'card-head'}, el('h2', {text: `Runs of ${group.id}, best first`})),
    said === '' ? null : el('p', {class: 'winner', text: said}),
    el('div', {class: 'scroll'}, table([
      {title: 'Run', class: 'words', cell: (row) => el('a', {href: `/runs/${encodeURIComponent(row.id)}`, text: `${row.name} ${row.id}`})},
      {title: 'State', cell: (row) => pillOf(row)},
      ...keys.map((key) => ({title: key, class: 'words', cell: (row) => flats[row.at].get(key) ?? '–'})),
      ...group.metric === '' ? [] : [{title: `${group.metric}, ${group.high ? 'highest' : 'lowest'}`, class: 'number',
        cell: (row) => el('span', {class: row.at === 0 && said !== '' ? 'best' : '', text: labels[row.at]})}],
    ], rows)),
    more > 0 ? el('p', {class: 'quiet', text: `and ${text.count(more)} more, which are not ranked`}) : null);
}

function showGroups(runs) {
  byId('groups').replaceChildren(...runs.filter((run) => run.series instanceof Band).map(showGroup));
}

function chooseBase(runs, base, choose) {
  const select = byId('base');
  select.replaceChildren(...runs.map((run, at) => el('option', {value: String(at), text: run.title})));
  select.value = String(base);
  select.parentNode.hidden = runs.length < 2;
  select.addEventListener('change', () => choose(Number(select.value)));
}

const pathOf = (id) => `/api/v1/runs/${encodeURIComponent(id)}`;

async function readRun(id) {
  const path = pathOf(id);
  const series = new Series(path);
  const [view, {resolved}] = await Promise.all([getJson(path), getJson(`${path}/recipe`)]);
  const {run} = view;
  const made = {id: run.id, path, href: `/runs/${encodeURIComponent(run.id)}`, recipes: [resolved], series, newest: {},
                title: `${run.name} ${run.id}`, item: run.item};
  take(made, view);
  if (made.metrics.length > CURVES_MOST) await series.readSummary(); // not every curve is read at once
  return made;
}

async function readGroup(group) {
  const run = {id: group, href: `/group?name=${encodeURIComponent(group)}`, series: new Band(group), newest: {}, begun: 0, state: 'running'};
  await readMembers(run);
  return run;
}

// Reads the table of a group: one answer for all its runs, with the best value of the metric that judges them.
async function readMembers(group) {
  const answer = await getJson(`/api/v1/table?recipes=1&group=${encodeURIComponent(group.id)}`);
  const count = answer.runs.length + answer.left_out;
  group.members = answer.runs.map((run) => ({...run, best: run.diverged ? null : run.best}));
  Object.assign(group, {metric: answer.metric, high: answer.higher_is_better, leftOut: answer.left_out, metrics: answer.metrics,
                        recipes: group.members.map((member) => member.recipe), item: group.members[0]?.item ?? 'token',
                        title: `${group.id}, ${count} run${count === 1 ? '' : 's'}`});
}

function take(run, {run: now, attempts, metrics}) {
  Object.assign(run, {metrics, state: now.state, begun: attempts[0].started_ms ?? now.created_ms});
}

async function update(run) {
  if (run.series instanceof Band) {
    const fresh = await run.series.update();
    if (fresh) await readMembers(run);
    return fresh;
  }
  const [view, newest] = await Promise.all([getJson(run.path), readNewest(run.path)]);
  take(run, view);
  const evaluated = JSON.stringify(newest) !== JSON.stringify(run.newest);
  run.newest = newest;
  return (await run.series.update(view.run.attempt, view.metrics.length)) || evaluated;
}

export async function showCompare() {
  const given = new URLSearchParams(location.search);
  if (given.getAll('group').length === 1 && !given.get('runs')) { // a group alone has its own page
    location.replace(`/group?name=${encodeURIComponent(given.get('group'))}`);
    return;
  }
  const listed = (text) => (text ?? '').split(',').filter((id) => id !== '');
  const allGroups = given.getAll('group'); // a name may have a comma
  const allIds = [...new Set(listed(document.body.dataset.runs ?? given.get('runs')))];
  const groups = allGroups.slice(0, COMPARED_MOST);
  const ids = allIds.slice(0, COMPARED_MOST - groups.length);
  const count = ids.length + groups.length;
  const leftOut = new Set(); // notes about runs that are not compared
  const asked = allGroups.length + allIds.length;
  if (asked > COMPARED_MOST)
    leftOut.add(`Only ${COMPARED_MOST} curves can be distinguished: ${asked - COMPARED_MOST} of ${asked} are left out (${
      [...allGroups.slice(groups.length), ...allIds.slice(ids.length)].join(', ')}).`);
  const showLeftOut = () => {
    byId('left-out').hidden = leftOut.size === 0;
    setText(byId('left-out'), [...leftOut].join('\n'));
  };
  const view = new View();
  const charts = new RunCharts(byId('charts'), view, {tools: chartTools(), crowd: count > LEGEND_MOST});
  let runs = null;
  let base = Math.min(Math.max(0, Number.parseInt(given.get('base') ?? '0', 10) || 0),
                      Math.max(0, count - 1));
  let internal = given.get('internal') === '1'; // shows dtrun's internal metrics
  const tables = () => {
    showRecipes(runs, base);
    showMetrics(runs, base, internal);
    showEvaluations(runs);
    showGroups(runs);
  };

  const namesShown = () => [...new Set(runs.flatMap((run) => run.metrics))].filter((name) => internal || !isInternal(name));
  // Reads the curves that are new: all of a few metrics, else those of the charts in the window.
  const readWanted = () => {
    const names = namesShown();
    const wanted = names.length > CURVES_MOST ? charts.wantedNow() : names;
    return Promise.all(runs.filter((run) => !run.gone).map((run) => run.series.want(wanted)));
  };
  const setNames = () => {
    const names = [...new Set(runs.flatMap((run) => run.metrics))];
    byId('internal').hidden = !names.some(isInternal);
    byId('internal').setAttribute('aria-pressed', internal ? 'true' : 'false');
    charts.setNames(namesShown());
  };
  byId('internal').addEventListener('click', () => {
    internal = !internal;
    const address = new URL(location.href);
    if (internal) address.searchParams.set('internal', '1');
    else address.searchParams.delete('internal');
    putAddress(address);
    if (!runs) return;
    setNames();
    readWanted().then(tables).catch(() => again(true)); // shows the error
  });
  const readZooms = (list) => Promise.all(list.filter((run) => !run.gone).map((run) => run.series.readZoom(view)));

  bindControls(view);
  view.listen(async (changes) => {
    if (!runs) return;
    if ('from' in changes || 'to' in changes)
      await readZooms(runs);
    charts.draw();
  }, () => {});

  // Returns null for a run that does not exist.
  const readThere = async (id) => {
    try {
      return await readRun(id);
    } catch (error) {
      if (!error.gone) throw error;
      leftOut.add(`There is no run '${id}': it may have been removed.`);
      return null;
    }
  };
  // Like update(), but keeps the last curves of a run that was removed.
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

  const showLegend = () => {
    byId('legend').hidden = runs.length <= LEGEND_MOST;
    byId('legend').replaceChildren(...runs.map((run, at) => el('li', {}, head(run, at))));
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => runs && showLegend());

  const begin = async () => {
    runs = (await Promise.all([...groups.map(readGroup), ...ids.map(readThere)])).filter((run) => run !== null);
    base = Math.min(base, Math.max(0, runs.length - 1));
    nameItems(runs.map((run) => run.item));
    showLegend();
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

  let followedBefore = ''; // runs that the stream followed last
  let drawing = 0; // a timer: news are drawn at this interval
  const draw = () => {
    drawing = 0;
    setNames();
    charts.draw();
    tables();
  };
  const onNews = (news) => {
    const run = runs?.find((one) => one.id === news.run);
    if (!run) return;
    if (news.view) take(run, news.view);
    if ((news.events ?? []).some((event) => event.event === 'evaluation')) again(true);
    const known = (!news.view || news.view.run.attempt === run.series.attempt)
      && (!news.attempt || run.series.add(news.attempt, news.series ?? {}, view));
    if (!known) again(true); // a new attempt: the server knows which points it undid
    else if (drawing === 0) drawing = setTimeout(draw, DRAW_MS);
  };
  const again = poll(async () => {
    byId('none').hidden = count > 0;
    byId('comparison').hidden = count === 0;
    if (count === 0) byId('loading').hidden = true;
    if (count === 0) return QUIET_MS;
    const first = !runs;
    if (first) await begin();
    byId('loading').hidden = true;
    byId('comparison').hidden = runs.length === 0;
    showLeftOut();
    if (runs.length === 0) return null;
    if (first) setNames();
    await readWanted();
    const end = Math.max(...runs.map((run) => run.series.lastStep));
    const fresh = (await Promise.all(runs.map(renewed))).includes(true) || first; // begin() has read the bands
    showLeftOut();
    if (view.zoomed && (runs[0].series.zoom === null || (fresh && (view.to ?? end) >= end)))
      await readZooms(runs);
    const words = (n, word) => n === 0 ? [] : [`${n} ${word}${n > 1 ? 's' : ''}`];
    setText(byId('summary'), [...words(groups.length, 'group'), ...words(runs.length - groups.length, 'run')].join(', '));
    setNames();
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

  // The stream reports only that a run of a group has changed. The group's bands are then read again.
  const bands = () => runs.filter((run) => run.series instanceof Band);
  let renewing = 0; // a timer
  let renewAfter = 0; // earliest time of the next reading
  const renew = async () => {
    const began = performance.now();
    try {
      const fresh = (await Promise.all(bands().map(update))).includes(true);
      if (fresh && view.zoomed) await readZooms(bands());
      if (fresh) draw();
    } catch {
      again(true); // shows the error
    }
    renewing = 0;
    renewAfter = performance.now() + Math.max(ACTIVE_MS, PAUSE_TIMES * (performance.now() - began));
  };
  const onGroupNews = (news) => {
    const concerns = (row) => bands().some(({series}) => series.group === row.group || series.runs.includes(row.id));
    if (runs && renewing === 0 && news.runs.some(concerns))
      renewing = setTimeout(renew, Math.max(0, renewAfter - performance.now()));
  };
  const streams = [];
  if (ids.length > 0)
    streams.push(new Live(() => `/api/v1/live?${new URLSearchParams({runs: there().join(',')})}`, () => again(true), onNews));
  if (groups.length > 0)
    streams.push(Object.assign(new Live(() => `/api/v1/live?limit=${LISTED}`, () => again(true), onGroupNews), {ofGroups: true}));
}
