// run_charts: shows a chart for every metric, important ones first, of one run or of several in the same charts.
import {Curves} from '/curves.js';
import {el} from '/dom.js';
import {formatOf, ordered, splitRank, titleOf, unitOf, wordsOf} from '/metric_names.js';
import {METRICS} from '/metric_table.js';
import * as text from '/text.js';

const HUES = 8; // --curve-1 to --curve-8
const UNSEEN_MS = 500; // interval of drawing charts outside of the window while a run trains

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

export class RunCharts {
  constructor(node, view) {
    this.node = node;
    this.view = view;
    this.curves = new Map(); // by id of the chart
    this.sources = [];
    this.key = '';
    this.stale = new Set(); // charts to draw when they become visible, or when idle
    this.idle = 0; // a timer
    addEventListener('beforeprint', () => {
      for (const {curves} of this.curves.values()) curves.resize();
      this.drawAll();
    });
    addEventListener('afterprint', () => this.curves.forEach(({curves}) => curves.resize()));
    this.watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
      entry.target.seen = entry.isIntersecting;
      if (entry.isIntersecting) this.drawStale();
    }), {rootMargin: '200px'});
  }

  // sources: [{source, title, short, begun: () => ms, item: () => 'token' or 'row'}], each a run or
  // a group. keep: (metric) => address of a CSV file with its points; null: no download.
  setSources(sources, marks = () => [], keep = null) {
    this.sources = sources;
    this.keep = keep;
    this.marks = marks;
  }

  // Sets the names of all metrics, adds missing charts and removes unused ones. Without metrics the
  // first three charts are shown.
  setNames(names) {
    names = ordered(names);
    const known = new Set(CHARTS.flatMap((chart) => chart.names));
    const usual = (chart, at) => names.length === 0 ? at < 3
      : chart.names.some((name) => names.includes(name));
    const charts = [...CHARTS.flatMap((chart) => this.sources.length > 1 ? apart(chart) : [chart])
      .filter(usual), ...(this.sources.length > 1 ? (others) => others.map(otherChart) : rankCharts)(
        names.filter((name) => !known.has(name)))];
    const key = charts.map((chart) => `${chart.id} ${chart.names.length}`).join(' ');
    if (key === this.key) return;
    this.key = key;
    for (const [id, {card, lines}] of this.curves)
      if (!charts.some((chart) => chart.id === id && chart.names.length === lines)) {
        card.remove();
        this.curves.delete(id);
      }
    charts.forEach((chart, at) => {
      const card = this.curves.get(chart.id)?.card ?? this.makeCard(chart);
      if (this.node.children[at] !== card) this.node.insertBefore(card, this.node.children[at] ?? null);
    });
    this.draw();
  }

  // Returns the chart of the speed with the unit in its title, other charts unchanged.
  named(chart) {
    if (chart.names[0] !== 'tokens_per_second') return chart;
    const items = new Set(this.sources.map(({item}) => item()));
    return {...chart, title: items.size > 1 ? 'Speed' : items.has('row') ? 'Rows per second' : 'Tokens per second'};
  }

  makeCard(usual) {
    const chart = this.named(usual);
    const canvas = el('canvas', {id: `${chart.id}-chart`, role: 'img', 'aria-label': chart.title});
    const card = el('section', {id: `${chart.id}-card`, class: chart.tall ? 'card wide-card' : 'card',
                                'aria-labelledby': `${chart.id}-title`},
      el('div', {class: 'card-head'}, el('h2', {id: `${chart.id}-title`, text: chart.title}),
        el('span', {class: 'keep'}, ...(this.keep && !chart.titles ? chart.names : []).map((name) => this.keepLink(chart, name)))),
      el('div', {class: chart.tall ? 'chart tall' : 'chart'}, canvas));
    card.seen = chart.tall;
    this.node.append(card); // Chart.js needs its size
    this.curves.set(chart.id, {card, lines: chart.names.length, curves: new Curves(canvas, this.seriesOf(chart),
      {format: chart.format ?? text.compact, kind: chart.kind ?? ''}, this.view, () => this.marksNow())});
    this.watcher.observe(card);
    return card;
  }

  // Returns a download link for the range that is zoomed to at the time of the click.
  keepLink(chart, name) {
    return el('a', {href: this.keep(name), download: '', 'aria-label': `${name} as CSV`,
                    text: chart.names.length > 1 ? `${titleOf(name)} CSV` : 'CSV',
                    onclick: (event) => event.currentTarget.setAttribute('href', this.keep(name))});
  }

  seriesOf(chart) {
    const several = this.sources.length > 1;
    const named = (name) => chart.titles?.[name] ?? (chart.names.length > 1 ? titleOf(name) : chart.title);
    return this.sources.flatMap(({source, title, short, begun}, run) => chart.names.map((name, at) => ({
      name, source, dots: DOTS.has(name), fromZero: chart.fromZero, title: several ? title : named(name),
      words: several ? title : wordsOf(name, named(name)), short: several ? short : named(name),
      colour: `curve-${1 + (several ? run : chart.hue - 1 + at) % HUES}`,
      x: (point, axis) => this.place(source, begun(), point, axis)})));
  }

  place(source, begun, point, axis) {
    if (axis === 'time') return point.seconds ?? (point.time - begun) / 1000;
    return axis === 'tokens' ? point.step * (source.tokensPerStep ?? NaN) : point.step;
  }

  marksNow() {
    if (this.sources.length !== 1) return [];
    const {source, begun} = this.sources[0];
    return this.marks().filter((mark) => mark.step !== null || this.view.axis === 'time')
      .map((mark) => ({...mark, x: this.place(source, begun(), mark, this.view.axis)}));
  }

  draw() {
    this.stale = new Set(this.curves.keys());
    this.drawStale();
    if (this.idle === 0 && this.stale.size > 0) this.drawLater(0);
  }

  // Draws charts outside of the window one after the other, so that captures of the whole page have them.
  drawLater(wait) {
    this.idle = setTimeout(() => {
      const [id] = this.stale;
      if (id !== undefined) this.drawOne(id);
      this.idle = 0;
      if (this.stale.size > 0) this.drawLater(this.drawnOnce() ? UNSEEN_MS : 0);
    }, wait);
  }

  drawnOnce() {
    return [...this.curves.values()].every(({curves}) => curves.drawn);
  }

  drawAll() {
    for (const id of this.stale) this.drawOne(id);
  }

  drawOne(id) {
    this.stale.delete(id);
    this.curves.get(id)?.curves.draw();
  }

  drawStale() {
    for (const id of this.stale) {
      if (!this.curves.has(id)) this.stale.delete(id);
      else if (this.curves.get(id).card.seen) this.drawOne(id);
    }
  }
}
