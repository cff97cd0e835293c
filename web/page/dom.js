// dom: creates all elements of the page. Text is set with textContent only, so that text from a run
// is never parsed as HTML.

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class') node.className = value;
    else if (name === 'text') node.textContent = value;
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// Returns the current value of a colour of the style sheet.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const COMPARED_MOST = 20; // runs that are compared: more curves cannot be distinguished
const HUES = 8; // --curve-1 to --curve-8
const DASHES = [[], [7, 4], [2, 3]];

// Returns how the curve of one of several runs is drawn: colours repeat with another dash.
export function strokeOf(at) {
  return {colour: `curve-${1 + at % HUES}`, dash: DASHES[Math.floor(at / HUES) % DASHES.length]};
}

// A piece of such a curve, for headings and legends.
export function swatchOf(at) {
  const swatch = el('span', {class: `swatch dash-${Math.floor(at / HUES) % DASHES.length}`});
  swatch.style.setProperty('--ink', colour(strokeOf(at).colour));
  return swatch;
}

// Changes the text only if it differs, which keeps a selection of the reader.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const states = ['waiting', 'queued', 'preparing', 'starting', 'running', 'stopping', 'finished', 'failed',
                'stopped', 'removed'];

// activity: a more precise description than the state, if there is one.
export function pill(state, activity = state) {
  const known = activity !== state ? 'held' : states.includes(state) ? state : 'queued';
  return el('span', {class: `pill ${known}`, text: activity});
}

// Returns the state by which a run is coloured: a run whose newest loss is not a number is not good.
export function shownState(run) {
  return run.diverged && ['finished', 'running', 'stopping'].includes(run.state) ? 'failed' : run.state;
}

// A run that has diverged is red, and says so.
export function pillOf(run) {
  if (!run.diverged || ['failed', 'stopped'].includes(run.state)) return pill(run.state, run.activity);
  return el('span', {class: 'pill failed', text: run.activity === 'diverged' || run.state === 'finished' ? 'diverged' : `${run.activity}, diverged`});
}

// Returns the group and the tags of a run, for lists and for the page of a run.
export function labelsOf(run) {
  const group = run.group === '' ? []
    : [el('a', {class: 'group', href: `/group?name=${encodeURIComponent(run.group)}`, title: `Group ${run.group}: all its runs`,
                text: run.group})];
  return [...group, ...run.tags.split(' ').filter((word) => word !== '').map((word) =>
    el('a', {class: 'tag', href: `/?tag=${encodeURIComponent(word)}`, title: `Tag ${word}: runs that have it`, text: word}))];
}

// The elements that search and show charts.
export function chartTools() {
  const byId = (id) => document.getElementById(id);
  return {search: byId('find-metrics'), hidden: byId('hidden-metrics'), none: byId('no-metrics')};
}

export function progressBar(step, total, state) {
  const share = total > 0 ? Math.min(1, Math.max(0, step / total)) : 0;
  const fill = el('div', {class: `fill ${states.includes(state) ? state : ''}`});
  fill.style.width = `${(share * 100).toFixed(2)}%`;
  return el('div', {class: 'bar', role: 'progressbar', 'aria-valuemin': 0, 'aria-valuemax': 100,
                    'aria-valuenow': Math.round(share * 100), 'aria-label': 'Steps done'}, fill);
}

// columns: [{title, class, cell: (item) => string or node}]
export function table(columns, items) {
  const cell = (column, item) => {
    const value = column.cell(item);
    const td = el('td', {class: column.class || '', 'data-title': column.title});
    td.append(value); // a string becomes a text node
    return td;
  };
  return el('table', {class: 'plain'},
    el('thead', {}, el('tr', {}, ...columns.map((column) =>
      el('th', {scope: 'col', class: column.class || '', text: column.title})))),
    el('tbody', {}, ...items.map((item) =>
      el('tr', {}, ...columns.map((column) => cell(column, item))))));
}

// Tabs above one panel, with arrow keys as in the ARIA practices.
export class Tabs {
  constructor(list, panel, onSelect) {
    this.list = list;
    this.panel = panel;
    this.onSelect = onSelect;
    this.selected = null;
    this.chosen = null; // by the reader
    list.addEventListener('keydown', (event) => this.move(event));
  }

  // tabs: [{key, title}]; keeps the selected tab if it still exists, else selects the first.
  set(tabs) {
    const keys = tabs.map((tab) => tab.key).join('\n');
    if (keys === this.keys) return;
    this.keys = keys;
    this.list.replaceChildren(...tabs.map((tab) =>
      el('button', {type: 'button', role: 'tab', class: 'tab', 'data-key': tab.key,
                    'aria-controls': this.panel.id, text: tab.title,
                    onclick: () => this.choose(tab.key)})));
    this.select(tabs.some((tab) => tab.key === this.chosen) ? this.chosen : tabs[0].key);
  }

  choose(key) {
    this.chosen = key;
    this.select(key);
  }

  select(key) {
    this.selected = key;
    for (const button of this.list.children) {
      const on = button.dataset.key === key;
      button.setAttribute('aria-selected', on ? 'true' : 'false');
      button.tabIndex = on ? 0 : -1;
      if (on) this.panel.setAttribute('aria-label', button.textContent);
    }
    this.onSelect(key);
  }

  move(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    const buttons = [...this.list.children];
    if (!step || buttons.length === 0) return;
    const at = buttons.findIndex((button) => button.dataset.key === this.selected);
    const next = buttons[(at + step + buttons.length) % buttons.length];
    event.preventDefault();
    next.focus();
    this.choose(next.dataset.key);
  }
}
