// run_charts: shows a chart for every metric, important ones first, of one run or of several in the same charts. Charts
// are in sections by the prefix of the metric; one is made, and its points are read, when it comes into view.
import {Choice} from '/choice.js';
import {Curves} from '/curves.js';
import {el, setText, strokeOf} from '/dom.js';
import {formatOf, isInternal, ordered, splitRank, titleOf, unitOf, wordsOf} from '/metric_names.js';
import {METRICS} from '/metric_table.js';
import * as text from '/text.js';

const UNSEEN_MS = 500; // interval of drawing charts outside of the window while a run trains
const EAGER = 24; // as many open charts are drawn before they come into view
const FEW = 8; // so many charts need no search
const CAP = 12; // a longer first section begins with fewer charts
const CAPPED = {wide: 7, narrow: 3};
const READ_MS = 300; // pause before more points of open charts are read

// Charts of the known metrics; the table of metrics says which metrics a chart holds.
const CHARTS = [
  {id: 'loss', hue: 1, title: 'Loss', tall: true},
  {id: 'bleu', hue: 2, title: 'Validation BLEU'},
  {id: 'rate', hue: 3, title: 'Learning rate'},
  {id: 'speed', hue: 4, title: 'Tokens per second', fromZero: true},
  {id: 'norm', hue: 5, title: 'Gradient norm'},
  {id: 'step-time', hue: 6, title: 'Step time', fromZero: true, format: text.shortTime, kind: 'seconds'},
].map((chart) => ({...chart, names: METRICS.filter((metric) => metric.chart === chart.id).map(({name}) => name)}));
const DOTS = new Set(METRICS.filter(({dots}) => dots).map(({name}) => name));

function otherChart(name) {
  return {id: `metric-${name}`, hue: 7, title: titleOf(name), names: [name], format: formatOf(name), kind: unitOf(name)};
}

// Puts a metric that every rank records into one chart, with a line for each rank.
function rankCharts(names) {
  const charts = new Map();
  for (const name of names) {
    const {base, rank} = splitRank(name);
    if (rank === null) charts.set(name, otherChart(name));
    else {
      const chart = charts.get(`${base} ranks`) ?? {...otherChart(base), id: `ranks-${base}`, hue: 1, names: [], titles: {}};
      chart.names.push(name);
      chart.titles[name] = `rank ${rank}`;
      charts.set(`${base} ranks`, chart);
    }
  }
  for (const chart of charts.values())
    chart.names.sort((a, b) => a.length - b.length || (a < b ? -1 : 1)); // rank 10 after rank 9
  return [...charts.values()];
}

// Splits a chart into one for each metric, for several runs.
function apart(chart) {
  return chart.names.map((name, at) => at === 0 ? {...chart, names: [name]}
    : {id: `metric-${name}`, title: titleOf(name), names: [name]});
}

// --- sections

const PINNED = 'pinned ';
const SYSTEM = 'system ';

// Returns the key of the section of a chart: the prefix of its metric, as in "train/loss".
function sectionOf(chart) {
  const [name] = chart.names;
  if (CHARTS.some(({id}) => id === chart.id)) return '';
  if (isInternal(name)) return SYSTEM;
  const slash = name.indexOf('/');
  return slash > 0 ? name.slice(0, slash) : '';
}

function titleOfSection(key) {
  return {'': 'Metrics', [PINNED]: 'Pinned', [SYSTEM]: 'System'}[key] ?? key;
}

// Splits charts into [{key, charts}]: pinned ones, those without a prefix, the others in their order, dtrun's internal ones.
function sectionsOf(charts, choice) {
  const found = new Map([[PINNED, []], ['', []]]);
  for (const chart of charts) {
    const names = [...chart.names, chart.title];
    if (!choice.finds(names)) continue;
    if (chart.names.some((name) => choice.pin.has(name))) {
      found.get(PINNED).push(chart);
      continue;
    }
    if (!choice.showHidden && chart.names.some((name) => choice.hide.has(name))) continue;
    const key = sectionOf(chart);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(chart);
  }
  const internal = found.get(SYSTEM) ?? [];
  found.delete(SYSTEM);
  found.set(SYSTEM, internal);
  return [...found].map(([key, list]) => ({key, charts: list})).filter((section) => section.charts.length > 0);
}

export class RunCharts {
  // options: legend: false for many sources, which then have a colour each; crowd: more sources than the legend of a
  // chart can name; tools: elements {search, hidden, none}.
  constructor(node, view, {legend = true, crowd = false, tools = null} = {}) {
    this.node = node;
    this.view = view;
    this.legend = legend;
    this.crowd = crowd;
    this.tools = tools;
    this.choice = new Choice();
    this.cards = new Map(); // id of the chart -> {card, chart, lines, box, curves: null until it is made}
    this.sections = new Map(); // key -> {node, grid, title, more}
    this.sources = [];
    this.charts = [];
    this.whole = new Set(); // sections that show all their charts
    this.key = '';
    this.stale = new Set(); // ids of charts to draw when they become visible, or when idle
    this.asked = new Set(); // ids of charts whose points are to be read
    this.idle = this.reading = 0; // timers
    addEventListener('beforeprint', () => {
      for (const id of this.cards.keys()) if (this.isOpen(id)) this.make(id);
      for (const {curves} of this.cards.values()) curves?.resize();
      this.drawAll();
    });
    addEventListener('afterprint', () => this.cards.forEach(({curves}) => curves?.resize()));
    this.watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) entry.target.seen = entry.isIntersecting;
      if (entries.some((entry) => entry.isIntersecting)) this.drawStale();
    }, {rootMargin: '200px'});
    if (tools) this.bind(tools);
  }

  bind({search, hidden}) {
    search.value = this.choice.search;
    search.addEventListener('input', () => {
      this.choice.setSearch(search.value.trim());
      this.layOut();
    });
    hidden.addEventListener('click', () => {
      this.choice.showHidden = !this.choice.showHidden;
      this.layOut();
    });
  }

  // sources: [{source, title, short, colour, begun: () => ms, item: () => 'token' or 'row'}], each a run or
  // a group. keep: (metric) => address of a CSV file with its points; null: no download.
  setSources(sources, marks = () => [], keep = null) {
    this.sources = sources;
    this.keep = keep;
    this.marks = marks;
    for (const {curves, chart} of this.cards.values()) curves?.setSeries(this.seriesOf(chart));
  }

  // Sets the names of all metrics, adds missing charts and removes unused ones. Without metrics the
  // first three charts are shown.
  setNames(names) {
    names = ordered(names);
    const known = new Set(CHARTS.flatMap((chart) => chart.names));
    const usual = (chart, at) => names.length === 0 ? at < 3
      : chart.names.some((name) => names.includes(name));
    const several = this.sources.length > 1 || !this.legend;
    const charts = [...CHARTS.flatMap((chart) => several ? apart(chart) : [chart])
      .filter(usual), ...(several ? (others) => others.map(otherChart) : rankCharts)(
        names.filter((name) => !known.has(name)))];
    const key = charts.map((chart) => `${chart.id} ${chart.names.length}`).join(' ');
    if (key === this.key) return;
    this.key = key;
    this.charts = charts;
    for (const [id, {card, lines}] of this.cards)
      if (!charts.some((chart) => chart.id === id && chart.names.length === lines)) {
        card.remove();
        this.cards.delete(id);
      }
    this.layOut();
  }

  // --- the layout

  layOut() {
    const {choice} = this;
    const hiddenCount = this.charts.filter((chart) => chart.names.some((name) => choice.hide.has(name))).length;
    const sections = sectionsOf(this.charts, choice);
    const few = this.charts.length <= CAP; // nothing needs to be folded
    const first = sections.find(({key}) => key !== PINNED)?.key;
    const open = (key) => choice.search !== '' || key === PINNED || (choice.open === null ? key === first || few : choice.open.has(key));
    const headed = sections.length > 1;
    for (const [key, section] of this.sections)
      if (!sections.some((one) => one.key === key)) {
        section.node.remove();
        this.sections.delete(key);
      }
    const opened = sections.filter(({key}) => open(key));
    sections.forEach(({key, charts}, at) => {
      const section = this.sections.get(key) ?? this.makeSection(key);
      if (this.node.children[at] !== section.node) this.node.insertBefore(section.node, this.node.children[at] ?? null);
      section.node.classList.toggle('bare', !headed);
      setText(section.count, String(charts.length));
      if (section.node.open !== (open(key) || !headed)) section.node.open = open(key) || !headed;
      this.fill(section, key, open(key) || !headed ? charts : [],
                key === first && choice.search === '' && choice.open === null && charts.length > CAP && !this.whole.has(key));
    });
    this.opened = opened.map(({key}) => key);
    if (this.tools) {
      this.tools.hidden.hidden = hiddenCount === 0;
      this.tools.hidden.setAttribute('aria-pressed', choice.showHidden ? 'true' : 'false');
      setText(this.tools.hidden, `${choice.showHidden ? 'Showing' : 'Show'} ${hiddenCount} hidden`);
      this.tools.none.hidden = sections.length > 0 || this.charts.length === 0;
      this.tools.search.parentNode.hidden = this.charts.length <= FEW && choice.search === '' && hiddenCount === 0;
    }
    this.draw();
  }

  makeSection(key) {
    const count = el('span', {class: 'quiet'});
    const grid = el('div', {class: 'pair'});
    const more = el('button', {type: 'button', class: 'toggle more', hidden: '', onclick: () => {
      this.whole.add(key);
      this.layOut();
    }});
    const node = el('details', {class: 'metric-section', 'data-section': key.trim()},
      el('summary', {onclick: (event) => {
        event.preventDefault(); // the layout opens it, once its cards are there
        this.fold(key, node.open);
      }}, el('span', {text: titleOfSection(key)}), ' ', count), grid, more);
    const section = {node, grid, count, more};
    this.sections.set(key, section);
    return section;
  }

  fold(key, isOpen) {
    const open = new Set(this.opened);
    if (isOpen) open.delete(key);
    else open.add(key);
    open.delete(PINNED);
    this.whole.add(key); // who opened it wants all of it
    this.choice.setOpen(open);
    this.layOut();
  }

  fill(section, key, charts, capped) {
    const most = !capped ? charts.length : innerWidth > 860 ? CAPPED.wide : CAPPED.narrow;
    section.more.hidden = most >= charts.length;
    setText(section.more, `Show all ${charts.length} charts`);
    const cards = charts.slice(0, most).map((chart) => this.cards.get(chart.id)?.card ?? this.makeCard(chart));
    cards.forEach((card, at) => {
      if (section.grid.children[at] !== card) section.grid.insertBefore(card, section.grid.children[at] ?? null);
    });
    while (section.grid.children.length > cards.length) section.grid.lastElementChild.remove();
    for (const card of cards) this.showTools(card);
  }

  // Returns the chart of the speed with the unit in its title, other charts unchanged.
  named(chart) {
    if (chart.names[0] !== 'tokens_per_second') return chart;
    const items = new Set(this.sources.map(({item}) => item()));
    return {...chart, title: items.size > 1 ? 'Speed' : items.has('row') ? 'Rows per second' : 'Tokens per second'};
  }

  makeCard(usual) {
    const chart = this.named(usual);
    const box = el('div', {class: chart.tall ? 'chart tall' : 'chart'});
    const tool = (list, sign, on, off) => el('button', {type: 'button', class: `icon ${list}`, text: sign,
      'data-on': `${on} ${chart.title}`, 'data-off': `${off} ${chart.title}`,
      onclick: () => {
        for (const name of chart.names.slice(0, 1)) this.choice.toggle(list, name);
        this.layOut();
        this.cards.get(chart.id)?.card.querySelector(`.${list}`)?.focus();
      }});
    const card = el('section', {id: `${chart.id}-card`, class: chart.tall ? 'card wide-card' : 'card',
                                'aria-labelledby': `${chart.id}-title`, 'data-metric': chart.names[0]},
      el('div', {class: 'card-head'}, el('h2', {id: `${chart.id}-title`, text: chart.title}),
        el('span', {class: 'keep'}, ...(this.keep && !chart.titles ? chart.names : []).map((name) => this.keepLink(chart, name)),
          ...this.tools ? [tool('pin', '☆', 'Unpin', 'Pin'), tool('hide', '×', 'Show', 'Hide')] : [])),
      box);
    card.seen = chart.tall;
    this.cards.set(chart.id, {card, chart, box, lines: chart.names.length, curves: null});
    this.watcher.observe(card);
    return card;
  }

  // Names the buttons of a card by what they do now.
  showTools(card) {
    for (const list of this.tools ? ['pin', 'hide'] : []) {
      const button = card.querySelector(`.${list}`);
      const on = this.choice[list].has(card.dataset.metric);
      button.setAttribute('aria-label', on ? button.dataset.on : button.dataset.off);
      button.title = button.getAttribute('aria-label');
      button.setAttribute('aria-pressed', on ? 'true' : 'false');
      if (list === 'pin') setText(button, on ? '★' : '☆');
    }
  }

  // Makes the chart of a card, which is empty until it comes into view.
  make(id) {
    const one = this.cards.get(id);
    if (one.curves) return;
    const {chart, box} = one;
    const canvas = el('canvas', {id: `${chart.id}-chart`, role: 'img', 'aria-label': chart.title});
    box.append(canvas);
    one.curves = new Curves(canvas, this.seriesOf(chart),
      {format: chart.format ?? text.compact, kind: chart.kind ?? '', legend: this.legend, crowd: this.crowd}, this.view, () => this.marksNow());
  }

  // Returns a download link for the range that is zoomed to at the time of the click.
  keepLink(chart, name) {
    return el('a', {href: this.keep(name), download: '', 'aria-label': `${name} as CSV`,
                    text: chart.names.length > 1 ? `${titleOf(name)} CSV` : 'CSV',
                    onclick: (event) => event.currentTarget.setAttribute('href', this.keep(name))});
  }

  seriesOf(chart) {
    const several = this.sources.length > 1 || !this.legend;
    const named = (name) => chart.titles?.[name] ?? (chart.names.length > 1 ? titleOf(name) : chart.title);
    return this.sources.flatMap(({source, title, short, begun, ink, href}, run) => chart.names.map((name, at) => ({
      name, source, ink, href, dots: DOTS.has(name) && this.legend, fromZero: chart.fromZero, title: several ? title : named(name),
      words: several ? title : wordsOf(name, named(name)), short: several ? short : named(name),
      ...strokeOf(several ? run : chart.hue - 1 + at),
      x: (point, axis) => this.place(source, begun(), point, axis)})));
  }

  place(source, begun, point, axis) {
    if (axis === 'time') return point.seconds ?? (point.time - begun) / 1000;
    return axis === 'tokens' ? point.step * (source.tokensPerStep ?? NaN) : point.step;
  }

  marksNow() {
    if (this.sources.length !== 1 || !this.legend) return [];
    const {source, begun} = this.sources[0];
    return this.marks().filter((mark) => mark.step !== null || this.view.axis === 'time')
      .map((mark) => ({...mark, x: this.place(source, begun(), mark, this.view.axis)}));
  }

  // --- drawing

  isOpen(id) {
    return this.cards.get(id)?.card.isConnected ?? false;
  }

  get openIds() {
    return [...this.cards.keys()].filter((id) => this.isOpen(id));
  }

  // The metrics that are needed at once: the caller may read them together with others.
  wantedNow() {
    const ids = this.openIds;
    const near = ids.length <= EAGER ? ids : ids.filter((id) => this.cards.get(id).card.seen).slice(0, EAGER);
    return near.flatMap((id) => this.cards.get(id).chart.names);
  }

  draw() {
    if (this.sources.some(({source}) => !source.ready)) return;
    this.stale = new Set(this.openIds);
    this.drawStale();
    if (this.idle === 0 && this.stale.size > 0 && this.openIds.length <= EAGER) this.drawLater(0);
  }

  // Draws charts outside of the window one after the other, so that captures of the whole page have them.
  drawLater(wait) {
    this.idle = setTimeout(() => {
      const [id] = this.stale;
      this.idle = 0;
      if (this.openIds.length > EAGER) return; // a section was opened meanwhile
      if (id !== undefined) this.drawOne(id);
      if (this.stale.size > 0) this.drawLater(this.drawnOnce() ? UNSEEN_MS : 0);
    }, wait);
  }

  drawnOnce() {
    return this.openIds.every((id) => this.cards.get(id).curves?.drawn);
  }

  drawAll() {
    for (const id of this.stale) this.drawOne(id);
  }

  // Draws a chart, or asks for its points first.
  drawOne(id) {
    this.stale.delete(id);
    if (!this.isOpen(id)) return;
    this.make(id);
    const {chart, curves} = this.cards.get(id);
    if (this.sources.every(({source}) => source.has(chart.names))) {
      curves.draw();
      return;
    }
    this.asked.add(id);
    this.read(0);
  }

  read(wait) {
    if (this.reading !== 0) return;
    this.reading = setTimeout(async () => {
      const ids = [...this.asked].filter((id) => this.isOpen(id)).slice(0, EAGER);
      const names = [...new Set(ids.flatMap((id) => this.cards.get(id).chart.names))];
      try {
        await Promise.all([...new Set(this.sources.map(({source}) => source.shared ?? source))].map((source) => source.want(names)));
        for (const id of ids) {
          this.asked.delete(id);
          if (this.isOpen(id)) this.cards.get(id).curves?.draw();
        }
      } catch {
        // tried again below, or at the next draw
      }
      this.reading = 0;
      const rest = this.openIds.filter((id) => this.sources.some(({source}) => !source.has(this.cards.get(id).chart.names)));
      for (const id of rest.slice(0, EAGER)) this.asked.add(id);
      if (this.asked.size > 0) this.read(READ_MS);
    }, wait);
  }

  drawStale() {
    for (const id of this.stale) {
      if (!this.isOpen(id)) this.stale.delete(id);
      else if (this.cards.get(id).card.seen) this.drawOne(id);
    }
  }
}
