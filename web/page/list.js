// list: shows the runs that match a search, in pages; the search is kept in the address.
import {el, labelsOf, pillOf, progressBar, setText, shownState} from '/dom.js';
import {ACTIVE_MS, Live, QUIET_MS, getJson, isActive, poll} from '/live.js';
import * as text from '/text.js';

const PAGE = 100; // runs
const TICKED_MOST = 8; // more curves cannot be distinguished

const byId = (id) => document.getElementById(id);

class Query {
  constructor() {
    const given = new URLSearchParams(location.search);
    this.q = given.get('q') ?? '';
    this.state = given.get('state') ?? '';
    this.sort = given.get('sort') ?? '';
    this.page = Math.max(1, Number.parseInt(given.get('page') ?? '1', 10) || 1);
  }

  set(changes) {
    Object.assign(this, {page: 1}, changes);
    const address = new URL(location.href);
    for (const [name, value] of Object.entries({q: this.q, state: this.state, sort: this.sort,
                                                page: this.page > 1 ? this.page : ''})) {
      if (value === '') address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    history.replaceState(null, '', address);
  }

  get asked() {
    const asked = new URLSearchParams({limit: PAGE, offset: (this.page - 1) * PAGE});
    for (const name of ['q', 'state', 'sort']) if (this[name] !== '') asked.set(name, this[name]);
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

function row(run, now, unit, ticked, tick) {
  const cell = (name, title, ...content) =>
    el('td', {class: name, 'data-title': title}, ...content);
  const link = el('a', {href: `/runs/${encodeURIComponent(run.id)}`, class: 'run-link'},
    el('strong', {text: run.name}), el('code', {text: run.id}));
  const steps = text.count(run.step)
    + (run.steps_total > 0 ? ` / ${text.count(run.steps_total)}` : '');
  const box = el('input', {type: 'checkbox', 'aria-label': `Compare ${run.name} ${run.id}`,
                           onchange: (event) => tick(run.id, event.target.checked)});
  box.checked = ticked.has(run.id);
  return el('tr', {},
    cell('who', 'Run', link, ...labelsOf(run)),
    cell('what', 'State', pillOf(run)),
    cell('progress', 'Progress', el('span', {class: 'steps', text: steps}),
      progressBar(run.step, run.steps_total, shownState(run))),
    cell('number', 'Loss', text.lossOf(run)),
    cell('number', 'Validation', text.loss(run.valid_loss)),
    cell('number', unit, speedOf(run, unit)),
    cell('number time', 'Started', el('span', {
      title: text.dateTime(run.started_ms ?? run.created_ms),
      text: text.ago(run.started_ms ?? run.created_ms, now)})),
    cell('number', 'Took', text.duration(run.elapsed_seconds)),
    cell('tick', 'Compare', box));
}

// Table rows that are replaced only if their run changed, which keeps the focus.
class Rows {
  constructor(body) {
    this.body = body;
    this.shown = new Map(); // id -> {key, node}
  }

  show(runs, now, ticked, tick) {
    const unit = speedUnit(runs);
    const rows = runs.map((run) => {
      const key = JSON.stringify(run) + unit + text.ago(run.started_ms ?? run.created_ms, now);
      const old = this.shown.get(run.id);
      if (old && old.key === key) return old.node;
      const node = row(run, now, unit, ticked, tick);
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

function showSort(query) {
  for (const head of document.querySelectorAll('#runs th[data-sort]')) {
    const on = query.sort.replace('-', '') === head.dataset.sort;
    if (on) head.setAttribute('aria-sort', query.sort.startsWith('-') ? 'descending' : 'ascending');
    else head.removeAttribute('aria-sort');
  }
}

export function showList() {
  const query = new Query();
  const rows = new Rows(document.querySelector('#runs tbody'));
  const ticked = new Set();
  let asked = 0;

  const showTicked = (full) => {
    setText(byId('full'), full ? `At most ${TICKED_MOST} runs can be compared: untick one first.` : '');
    byId('compare').hidden = ticked.size < 2;
    byId('compare').href = `/compare?runs=${[...ticked].map(encodeURIComponent).join(',')}`;
    setText(byId('compare'), `Compare ${ticked.size} runs`);
  };
  const tick = (id, on) => {
    const full = on && ticked.size === TICKED_MOST; // no more runs can be ticked
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
    const searched = query.q !== '' || query.state !== '';
    byId('runs').hidden = runs.length === 0;
    byId('empty').hidden = total > 0 || searched;
    byId('nothing').hidden = total > 0 || !searched;
    byId('search').hidden = total === 0 && !searched;
    setText(byId('summary'), total === 0 && !searched ? '' : `${text.count(total)} ${searched ? 'found' : 'in all'}`
      + (shown.active > 0 ? ', ' : ''));
    byId('active').hidden = !(shown.active > 0);
    setText(byId('active'), `${text.count(shown.active)} active${searched ? ' in all' : ''}`);
    setText(document.querySelector('#runs th[data-sort=tokens_per_second] button'), speedUnit(runs));
    rows.show(runs, now, ticked, tick);
    showPages(query, total);
    showSort(query);
    return active;
  };
  const again = poll(async () => {
    const mine = ++asked;
    const answer = await getJson(`/api/v1/runs?${query.asked}`);
    if (mine !== asked) return ACTIVE_MS;
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
    again(true);
  };
  byId('q').value = query.q;
  byId('of-state').value = query.state;
  byId('q').addEventListener('input', () => change({q: byId('q').value}));
  byId('of-state').addEventListener('change', () => change({state: byId('of-state').value}));
  byId('before').addEventListener('click', () => change({page: query.page - 1}));
  byId('after').addEventListener('click', () => change({page: query.page + 1}));
  for (const head of document.querySelectorAll('#runs th[data-sort] button')) {
    const key = head.parentNode.dataset.sort;
    head.addEventListener('click', () => change({
      sort: query.sort === key ? `-${key}` : query.sort === `-${key}` ? '' : key}));
  }
}
