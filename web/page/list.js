// list: shows the runs that match a search, in pages; the search is kept in the address.
import {Bulk} from '/bulk.js';
import {COMPARED_MOST, el, labelsOf, pillOf, progressBar, setText, shownState} from '/dom.js';
import {ACTIVE_MS, Live, QUIET_MS, getJson, isActive, poll} from '/live.js';
import * as text from '/text.js';

const PAGE = 100; // runs

const byId = (id) => document.getElementById(id);

const USUAL = {step: 'Progress', loss: 'Loss', valid_loss: 'Validation', tokens_per_second: 'Speed', created: 'Started', elapsed: 'Took'};
const WORDS = ['q', 'state', 'tag', 'group', 'sort', 'archived']; // arguments of one value, in the page's address and in the API

// What the list shows; the address stores it.
class Query {
  constructor() {
    const given = new URLSearchParams(location.search);
    for (const name of WORDS) this[name] = given.get(name) ?? '';
    this.filters = given.getAll('filter').filter((text) => text !== '');
    this.columns = this.listOf(given.get('columns'));
    this.without = this.listOf(given.get('without')).filter((key) => key in USUAL);
    this.page = Math.max(1, Number.parseInt(given.get('page') ?? '1', 10) || 1);
  }

  listOf(text) {
    return [...new Set((text ?? '').split(',').map((key) => key.trim()).filter((key) => key !== ''))];
  }

  get isSearched() {
    return this.filters.length > 0 || ['q', 'state', 'tag', 'group'].some((name) => this[name] !== '');
  }

  set(changes) {
    Object.assign(this, {page: 1}, changes);
    const address = new URL(location.href);
    const values = {...Object.fromEntries(WORDS.map((name) => [name, this[name]])), columns: this.columns.join(','),
                    without: this.without.join(','), page: this.page > 1 ? this.page : ''};
    for (const [name, value] of Object.entries(values)) {
      if (value === '') address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    address.searchParams.delete('filter');
    for (const text of this.filters) address.searchParams.append('filter', text);
    history.replaceState(null, '', address);
  }

  get asked() {
    const asked = new URLSearchParams({limit: PAGE, offset: (this.page - 1) * PAGE});
    for (const name of WORDS) if (this[name] !== '') asked.set(name, this[name]);
    if (this.columns.length > 0) asked.set('columns', this.columns.join(','));
    for (const text of this.filters) asked.append('filter', text);
    return asked;
  }
}

// Returns the header of the speed column: "Tokens/s (last)", or "Speed (last)" if the units differ
// and each row shows its own.
function speedUnit(runs) {
  const units = new Set(runs.map((run) => text.speedUnit(run.item)));
  return (units.size > 1 ? 'Speed' : [...units][0] ?? text.speedUnit('token')) + ' (last)';
}

function speedOf(run, unit) {
  const speed = text.count(run.tokens_per_second);
  return unit === 'Speed (last)' && run.tokens_per_second !== null
    ? `${speed} ${text.speedUnit(run.item).toLowerCase()}` : speed;
}

// Formats the value of a column: a number, a text, or null.
function valueOf(value) {
  return typeof value === 'number' ? (Number.isInteger(value) && Math.abs(value) < 1e6 ? text.count(value) : text.compact(value))
    : value ?? '–';
}

function row(run, now, unit, query, ticked, tick) {
  const cell = (name, title, ...content) =>
    el('td', {class: name, 'data-title': title}, ...content);
  const link = el('a', {href: `/runs/${encodeURIComponent(run.id)}`, class: 'run-link'},
    el('strong', {text: run.name}), el('code', {text: run.id}));
  const steps = text.count(run.step)
    + (run.steps_total > 0 ? ` / ${text.count(run.steps_total)}` : '');
  const box = el('input', {type: 'checkbox', 'aria-label': `Compare ${run.name} ${run.id}`,
                           onchange: (event) => tick(run.id, event.target.checked)});
  box.checked = ticked.has(run.id);
  const usual = {
    step: () => cell('progress', 'Progress', el('span', {class: 'steps', text: steps}),
                     progressBar(run.step, run.steps_total, shownState(run))),
    loss: () => cell(run.diverged ? 'number bad' : 'number', 'Loss', text.lossOf(run)),
    valid_loss: () => cell('number', 'Validation', text.loss(run.valid_loss)),
    tokens_per_second: () => cell('number', unit, speedOf(run, unit)),
    created: () => cell('number time', 'Started', el('span', {
      title: text.dateTime(run.started_ms ?? run.created_ms),
      text: text.ago(run.started_ms ?? run.created_ms, now)})),
    elapsed: () => cell('number', 'Took', text.duration(run.elapsed_seconds)),
  };
  const chosen = (key) => {
    const value = run.columns?.[key];
    return cell(`number extra${value === 'nan' ? ' bad' : ''}`, key, el('span', {title: value ?? '', text: valueOf(value)}));
  };
  const labels = labelsOf(run);
  return el('tr', {},
    cell('who', 'Run', link, ...labels.length === 0 ? [] : [el('div', {class: 'labels'}, ...labels)]),
    cell('what', 'State', pillOf(run)),
    ...Object.keys(usual).filter((key) => !query.without.includes(key)).map((key) => usual[key]()),
    ...query.columns.map(chosen),
    cell('tick', 'Compare', box));
}

// Table rows that are replaced only if their run changed, which keeps the focus.
class Rows {
  constructor(body) {
    this.body = body;
    this.shown = new Map(); // id -> {key, node}
  }

  show(runs, now, query, ticked, tick) {
    const unit = speedUnit(runs);
    const columns = [...query.columns, '', ...query.without].join();
    const rows = runs.map((run) => {
      const key = JSON.stringify(run) + unit + columns + text.ago(run.started_ms ?? run.created_ms, now);
      const old = this.shown.get(run.id);
      if (old && old.key === key) return old.node;
      const node = row(run, now, unit, query, ticked, tick);
      const focused = old && old.node.contains(document.activeElement)
        ? document.activeElement.tagName.toLowerCase() : null;
      if (old) old.node.replaceWith(node);
      if (focused) node.querySelector(focused).focus();
      this.shown.set(run.id, {key, node});
      return node;
    });
    rows.forEach((node, at) => {
      if (this.body.children[at] !== node) this.body.insertBefore(node, this.body.children[at] ?? null);
    });
    while (this.body.children.length > rows.length) this.body.lastElementChild.remove();
  }
}

function showPages(query, total) {
  const pages = Math.max(1, Math.ceil(total / PAGE));
  byId('pages').hidden = pages === 1 && query.page === 1;
  byId('before').disabled = query.page <= 1;
  byId('after').disabled = query.page >= pages;
  setText(byId('page'), `Page ${text.count(query.page)} of ${text.count(pages)}`);
}

// Adds and removes heads of columns.
function showHeads(query, sortBy) {
  const heads = document.querySelector('#runs thead tr');
  for (const head of heads.querySelectorAll('th[data-sort]:not(.extra)')) head.hidden = query.without.includes(head.dataset.sort);
  const chosen = [...heads.querySelectorAll('.extra')];
  if (chosen.map((head) => head.dataset.sort).join() === query.columns.join()) return;
  for (const head of chosen) head.remove();
  for (const key of query.columns)
    heads.querySelector('.tick').before(el('th', {scope: 'col', class: 'number extra', 'data-sort': key, title: key},
      el('button', {type: 'button', text: key, onclick: () => sortBy(key)})));
}

function showSort(query) {
  for (const head of document.querySelectorAll('#runs th[data-sort]')) {
    const on = query.sort.replace('-', '') === head.dataset.sort;
    if (on) head.setAttribute('aria-sort', query.sort.startsWith('-') ? 'descending' : 'ascending');
    else head.removeAttribute('aria-sort');
  }
}

function showProblem(words) {
  byId('problem').hidden = words === '';
  setText(byId('problem'), words);
}

// Fills the suggestions with the keys that runs have.
async function suggestKeys() {
  const {recipe, metrics} = await getJson('/api/v1/keys');
  const options = (keys) => keys.map((key) => el('option', {value: key}));
  const ends = metrics.flatMap((name) => [name, `${name}.min`, `${name}.max`]);
  byId('column-keys').replaceChildren(...options([...recipe, ...ends]));
  byId('filter-keys').replaceChildren(...options([...recipe, ...ends, 'name', 'state', 'tags', 'group', 'step', 'elapsed']));
}

// Adds a filter or a column if the server understands it; shows why not.
async function addIf(input, asked, add) {
  const words = input.value.trim();
  if (words === '') return;
  try {
    const {problem} = await getJson(`/api/v1/keys?${new URLSearchParams({[asked]: words})}`);
    showProblem(problem ?? '');
    if (problem) return;
  } catch (error) {
    showProblem(error.message);
    return;
  }
  input.value = '';
  add(words);
}

// The panel that adds filters and columns.
function bindChooser(query, change) {
  let asked = false;
  byId('choose').addEventListener('click', () => {
    const open = byId('chooser').hidden;
    byId('chooser').hidden = !open;
    byId('choose').setAttribute('aria-expanded', open ? 'true' : 'false');
    if (open) byId('filter').focus();
    if (open && !asked) suggestKeys().then(() => { asked = true; }).catch(() => {}); // typing needs no suggestions
  });
  const onSubmit = (form, work) => byId(form).addEventListener('submit', (event) => {
    event.preventDefault();
    work();
  });
  onSubmit('filter-form', () => addIf(byId('filter'), 'filter', (words) =>
    change({filters: [...new Set([...query.filters, words])]})));
  onSubmit('column-form', () => addIf(byId('column'), 'column', (words) =>
    change({columns: [...new Set([...query.columns, ...query.listOf(words)])]})));
  byId('usual').append(...Object.entries(USUAL).map(([key, title]) => {
    const box = el('input', {type: 'checkbox', onchange: () => change({
      without: box.checked ? query.without.filter((one) => one !== key) : [...query.without, key]})});
    box.checked = !query.without.includes(key);
    return el('label', {}, box, ` ${title}`);
  }));
}

export function showList() {
  const query = new Query();
  const rows = new Rows(document.querySelector('#runs tbody'));
  const ticked = new Set();
  let asked = 0;

  const bulk = new Bulk(byId('bulk'), (words) => setText(byId('full'), words));
  const showBulk = () => bulk.show(shown.runs.filter((run) => ticked.has(run.id)));
  const showTicked = (full) => {
    setText(byId('full'), full ? `At most ${COMPARED_MOST} runs can be compared: untick one first.` : '');
    byId('compare').hidden = ticked.size < 2;
    byId('compare').href = `/compare?runs=${[...ticked].map(encodeURIComponent).join(',')}`;
    setText(byId('compare'), `Compare ${ticked.size} runs`);
    showBulk();
  };
  const tick = (id, on) => {
    const full = on && ticked.size === COMPARED_MOST; // no more runs can be ticked
    if (on && !full) ticked.add(id);
    else ticked.delete(id);
    for (const box of document.querySelectorAll('#runs .tick input'))
      box.checked = [...ticked].some((run) => box.closest('tr').querySelector('code').textContent === run);
    showTicked(full);
  };

  let shown = {runs: [], total: 0, active: 0, time_ms: 0};

  const show = () => {
    const {runs, time_ms: now, total} = shown;
    const active = runs.filter((run) => isActive(run.state)).length; // of this page
    const searched = query.isSearched;
    byId('loading').hidden = true;
    byId('runs').hidden = runs.length === 0;
    byId('empty').hidden = total > 0 || searched;
    byId('nothing').hidden = total > 0 || !searched;
    byId('search').hidden = total === 0 && !searched;
    setText(byId('summary'), total === 0 && !searched ? '' : `${text.count(total)} ${searched ? 'found' : 'in all'}`
      + (shown.active > 0 ? ', ' : ''));
    byId('active').hidden = !(shown.active > 0);
    setText(byId('active'), `${text.count(shown.active)} active${searched ? ' in all' : ''}`);
    setText(document.querySelector('#runs th[data-sort=tokens_per_second] button'), speedUnit(runs));
    showHeads(query, sortBy);
    rows.show(runs, now, query, ticked, tick);
    showPages(query, total);
    showBulk();
    showSort(query);
    return active;
  };
  const again = poll(async () => {
    const mine = ++asked;
    let answer;
    try {
      answer = await getJson(`/api/v1/runs?${query.asked}`);
    } catch (error) {
      if (!error.refused) throw error;
      live.stop();
      showProblem(error.message); // of a filter in the address
      byId('loading').hidden = true;
      return null;
    }
    if (mine !== asked) return ACTIVE_MS;
    showProblem('');
    shown = answer;
    const active = show();
    live.follow(null);
    return live.wait ?? (active > 0 ? ACTIVE_MS : QUIET_MS);
  });
  // Merges the changed runs into the list, and applies the new order.
  const onNews = (news) => {
    const known = new Map([...shown.runs, ...news.runs].map((run) => [run.id, run]));
    if (!news.order.every((id) => known.has(id))) {
      again(true); // the stream is newer than the last answer
      return;
    }
    shown = {...news, runs: news.order.map((id) => known.get(id))};
    show();
  };
  const live = new Live(() => `/api/v1/live?${query.asked}`, () => again(true), onNews);
  const change = (changes) => {
    query.set(changes);
    live.stop(); // the stream is of another list
    showChips();
    again(true);
  };
  const sortBy = (key) => change({sort: query.sort === key ? `-${key}` : query.sort === `-${key}` ? '' : key});
  const showChips = () => {
    const without = (list, value) => query[list].filter((one) => one !== value);
    const chips = [
      ...['group', 'tag'].filter((name) => query[name] !== '')
        .map((name) => ({kind: name, words: query[name], drop: () => change({[name]: ''})})),
      ...query.filters.map((words) => ({kind: 'filter', words, drop: () => change({filters: without('filters', words)})})),
      ...query.columns.map((words) => ({kind: 'column', words, drop: () => change({
        columns: without('columns', words), sort: query.sort.replace(/^-/, '') === words ? '' : query.sort})})),
    ];
    byId('chips').hidden = chips.length === 0;
    byId('chips').replaceChildren(...chips.map(({kind, words, drop}) => el('li', {class: `chip ${kind}`},
      el('span', {class: 'quiet', text: `${kind} `}), el('span', {class: 'words', text: words}),
      el('button', {type: 'button', class: 'icon', 'aria-label': `Remove ${kind} ${words}`, text: '×', onclick: drop}))));
  };
  bindChooser(query, change);
  showChips();
  byId('q').value = query.q;
  byId('of-state').value = query.state;
  byId('archived').checked = query.archived === '1';
  byId('archived').addEventListener('change', () => change({archived: byId('archived').checked ? '1' : ''}));
  byId('q').addEventListener('input', () => change({q: byId('q').value}));
  byId('of-state').addEventListener('change', () => change({state: byId('of-state').value}));
  byId('before').addEventListener('click', () => change({page: query.page - 1}));
  byId('after').addEventListener('click', () => change({page: query.page + 1}));
  for (const head of document.querySelectorAll('#runs th[data-sort] button'))
    head.addEventListener('click', () => sortBy(head.parentNode.dataset.sort));
}
