// system_charts: shows what the nodes of a run were used for, one chart for each subject with a curve for each node or
// GPU, by time. Charts are made, and their points read, when the section is opened.
import {Curves} from '/curves.js';
import {el, setText} from '/dom.js';
import {METRICS} from '/metric_table.js';
import {Series} from '/series.js';
import * as text from '/text.js';
import {View, putAddress} from '/view.js';

const PREFIX = 'system/';
const TOTAL = '_total_bytes'; // shown in the legend of the metric with _used_bytes
const NAMED = 8; // more curves have no legend; the nearest is read out
const NOT_FROM_ZERO = ['free_bytes', 'temperature_c'];
const SUBJECTS = METRICS.filter(({name}) => name.startsWith(PREFIX) && !name.endsWith(TOTAL));

// The axis is always the time, and a zoom is that of these charts alone.
class TimeView extends View {
  constructor() {
    super();
    Object.assign(this, {axis: 'time', from: null, to: null, log: false, smooth: 0});
  }

  set(changes) {
    Object.assign(this, changes);
    for (const listener of this.listeners) listener(changes);
  }
}

// Returns the node and the GPU of "system/cpu_percent_node_0" or "system/gpu_power_watts_node_0_gpu_1"; null: of another base.
function placeOf(base, name) {
  const [, node, gpu] = name.startsWith(`${base}_node_`) ? /^(\d+)(?:_gpu_(\d+))?$/.exec(name.slice(base.length + 6)) ?? [] : [];
  return node === undefined ? null : {node: Number(node), gpu: gpu === undefined ? null : Number(gpu)};
}

export class SystemCharts {
  // keep: (metric) => address of a CSV file with its points; null: no download.
  constructor(node, path, keep) {
    this.node = node;
    this.count = node.querySelector('summary .quiet');
    this.grid = node.querySelector('.pair');
    this.keep = keep;
    this.view = new TimeView();
    this.series = new Series(path, PREFIX);
    this.names = [];
    this.cards = []; // {curves, names} of the open section
    this.begun = 0;
    node.open = new URLSearchParams(location.search).has('nodes');
    node.addEventListener('toggle', () => this.toggled());
    this.view.listen(async () => {
      await this.series.readZoom(this.view);
      this.draw();
    }, () => {});
  }

  toggled() {
    const address = new URL(location.href);
    if (this.node.open) address.searchParams.set('nodes', '1');
    else address.searchParams.delete('nodes');
    putAddress(address);
    if (this.node.open && this.shown) this.update(this.shown, this.begun).catch(() => {}); // tried again with the next update
  }

  // shown: the run's view; begun: its start in ms.
  async update(shown, begun) {
    this.shown = shown;
    this.begun = begun;
    this.node.hidden = shown.system.length === 0 || this.keep === null; // a report has no points of nodes
    setText(this.count, String(this.subjects().length));
    if (this.node.hidden || !this.node.open) return;
    if (this.names.join('\n') !== shown.system.join('\n')) this.layOut();
    await this.series.want(this.names);
    await this.series.update(shown.run.attempt, this.names.length);
    this.draw();
  }

  // Takes the points of news.
  add(news) {
    const added = Object.keys(news.series ?? {}).some((name) => name.startsWith(PREFIX));
    if (!added || !this.node.open || !this.series.ready) return;
    if (this.series.add(news.attempt, news.series, this.view)) this.draw();
  }

  subjects() {
    return SUBJECTS.map((subject) => ({...subject, curves: this.shown.system
      .map((name) => ({name, place: placeOf(subject.name, name)})).filter(({place}) => place !== null)
      .sort((a, b) => a.place.node - b.place.node || a.place.gpu - b.place.gpu)})).filter(({curves}) => curves.length > 0);
  }

  layOut() {
    this.names = [...this.shown.system];
    const made = this.subjects().map((subject) => this.makeCard(subject));
    this.grid.replaceChildren(...made.map(({card}) => card));
    this.cards = made;
    for (const one of made) one.curves = this.makeCurves(one);
  }

  makeCard(subject) {
    const id = subject.name.slice(PREFIX.length);
    const canvas = el('canvas', {id: `system-${id}-chart`, role: 'img', 'aria-label': subject.title});
    const card = el('section', {id: `system-${id}-card`, class: 'card', 'aria-labelledby': `system-${id}-title`},
      el('div', {class: 'card-head'}, el('h2', {id: `system-${id}-title`, text: subject.title}),
        el('span', {class: 'keep'}, ...this.keep && subject.curves.length === 1
          ? [el('a', {href: this.keep(subject.curves[0].name), download: '', text: 'CSV', 'aria-label': `${subject.title} as CSV`})] : [])),
      el('div', {class: 'chart'}, canvas));
    return {card, canvas, subject, names: subject.curves.map(({name}) => name)};
  }

  makeCurves({canvas, subject}) {
    const rate = subject.name.endsWith('_per_second');
    const bytes = /_bytes(_per_second)?$/.test(subject.name);
    const format = (value) => bytes ? `${text.bytes(value)}${rate ? '/s' : ''}` : text.compact(value);
    return new Curves(canvas, this.seriesOf(subject), {
      format, kind: bytes ? 'bytes' : '', legend: subject.curves.length <= NAMED, many: 'nodes',
      stepWords: (step) => text.duration(step - this.begun / 1000)}, this.view);
  }

  seriesOf({name: base, curves}) {
    const fromZero = !NOT_FROM_ZERO.some((end) => base.endsWith(end));
    return curves.map(({name, place}, at) => {
      const title = this.titleOf(base, place);
      return {name, source: this.series, title, short: title, words: title, fromZero, dots: false, href: null,
              ink: curves.length > NAMED ? `hsl(${Math.round(360 * at / curves.length)} 60% 50%)` : undefined,
              colour: `curve-${1 + at % NAMED}`, x: (point) => (point.time - this.begun) / 1000};
    });
  }

  // "gpu-a", "gpu-a GPU 3", with "of 62 GB" where the metric is a part of a total.
  titleOf(base, {node, gpu}) {
    const end = `_node_${node}${gpu === null ? '' : `_gpu_${gpu}`}`;
    const total = base.endsWith('_used_bytes') ? this.series.newest(base.replace('_used_bytes', TOTAL) + end) : null;
    const host = this.shown.nodes[node]?.host ?? `node ${node}`;
    return `${host}${gpu === null ? '' : ` GPU ${gpu}`}${total === null ? '' : ` of ${text.bytes(total)}`}`;
  }

  draw() {
    if (!this.series.ready) return;
    for (const {curves, subject, card} of this.cards) {
      const series = this.seriesOf(subject);
      setText(card.querySelector('h2'), series.length > 1 ? subject.title : `${subject.title}: ${series[0].title}`);
      curves.setSeries(series);
      curves.draw();
    }
  }
}
