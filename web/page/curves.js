// curves: draws curves with their band of minimum and maximum by Chart.js, in colours of the style
// sheet. The zoom selection, the crosshair and its readout are elements above the canvas, so that
// moving them redraws nothing.
import {colour, el, setText} from '/dom.js';
import {marksPlugin} from '/marks.js';
import * as text from '/text.js';

const dark = matchMedia('(prefers-color-scheme: dark)');
const DRAG_PIXELS = 5; // less is a click

// kind: as for text.tickLabels; factor: the drawn values are the true values divided by this.
function scale(kind, type, factor = 1) {
  const labels = type === 'logarithmic' ? text.logLabels : text.tickLabels;
  return {
    type,
    grid: {color: colour('grid'), drawTicks: false},
    border: {display: false},
    ticks: {color: colour('quiet'), padding: 8, maxTicksLimit: 7, maxRotation: 0,
            includeBounds: false, callback: (value, at, ticks) => labels(ticks.map((tick) => tick.value * factor), kind)[at]},
  };
}

// False if the distribution's Chart.js is missing or too old; the page is then shown without curves.
function canDraw() {
  return typeof Chart !== 'undefined' && Number.parseInt(Chart.version, 10) >= 3;
}

const axisKind = {step: '', time: 'time', tokens: ''};

const NARROW = 420; // pixels
const DOT = 2.5; // radius in pixels
const MARK_PIXELS = 5; // a mark this near to the crosshair is read out
const MARKS_NAMED = 5;
const TITLE_MOST = 40; // characters in a legend
const TOO_LARGE = 1e300; // an axis with larger values would be longer than the largest number
const SMALLER = 1e10;

// Returns true for a point between two gaps: no line reaches it, so that it needs a dot.
export function isAlone(values, at) {
  return Number.isFinite(values[at]) && !Number.isFinite(values[at - 1] ?? NaN) && !Number.isFinite(values[at + 1] ?? NaN);
}

// Shortens a title in its middle, so that a legend of long names fits a narrow screen; an id at the end stays.
function shortened(title) {
  return title.length <= TITLE_MOST ? title : `${title.slice(0, TITLE_MOST - 16)}…${title.slice(-15)}`;
}

// Removes the last tick but one if it is too close to the last tick, the end of the axis.
export function apartFromEnd(ticks) {
  const [first, second] = ticks;
  const end = ticks[ticks.length - 1];
  const before = ticks[ticks.length - 2];
  const near = ticks.length > 2 && end.value - before.value < (second.value - first.value) / 2;
  return near ? [...ticks.slice(0, -2), end] : ticks;
}

// Returns the range of an axis for values that are all equal; null if they differ.
export function rangeOfSame(values) {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0 || finite.some((value) => value !== finite[0])) return null;
  if (finite[0] === 0) return [0, 1];
  const room = Math.abs(finite[0]) * 0.1;
  return [finite[0] - room, finite[0] + room];
}

// Returns the exponential moving average, corrected for the missing values before the first point.
function smoothed(points, weight) {
  let sum = 0;
  let weights = 0;
  return points.map((point) => {
    if (!Number.isFinite(point.mean)) return NaN;
    sum = sum * weight + point.mean * (1 - weight);
    weights = weights * weight + (1 - weight);
    return sum / weights;
  });
}

export class Curves {
  // series: [{name, title, words, short, colour, dash, dots, fromZero, source, x}]: `words` is the title inside a sentence,
  // `short` the title in a narrow place, `source` has the points of `name`, and x gives the place of a point:
  // (point, axis) => number. marks: () => marks on the axis.
  // format: formats a value; kind: of the value axis (text.tickLabels).
  // legend: false for many series, which then have a colour `ink` and an address `href` each; the nearest is read out.
  // crowd: the same for series that a legend elsewhere names.
  // many: what these are; stepWords: the words for the step of a point, if steps are not those of the training.
  constructor(canvas, series, {format, kind, legend = true, crowd = false, many = 'runs', stepWords = null}, view, marks = () => []) {
    Object.assign(this, {canvas, series, format, kind, view, marks, many: legend ? null : many, nearestOnly: !legend || crowd, stepWords, factor: 1});
    if (!canDraw()) {
      canvas.replaceWith(el('p', {class: 'quiet', text: 'Curves need Chart.js 3 or newer.'}));
      return;
    }
    this.addOverlay();
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    canvas.getContext('2d', {willReadFrequently: true}); // kept in main memory, so that captures of the page show it
    this.chart = new Chart(canvas, {
      type: 'line',
      data: {datasets: []},
      plugins: [marksPlugin(this)],
      options: {
        ...this.scales(), animation: false, parsing: false, spanGaps: false, normalized: true,
        responsive: true, maintainAspectRatio: false, events: [],
        plugins: {
          legend: {display: !this.nearestOnly && series.length > 1, align: 'end', onClick: null,
                   labels: {boxWidth: 14, boxHeight: 2, filter: (item, data) =>
                     !data.datasets[item.datasetIndex].helper
                     && data.datasets[item.datasetIndex].data.length > 0}},
          tooltip: {enabled: false}, decimation: {enabled: false},
        },
      },
    });
    dark.addEventListener('change', () => this.draw());
    view.listen(() => {}, (x) => this.showCross(x));
  }

  setSeries(series) {
    this.series = series;
    if (this.chart) this.chart.options.plugins.legend.display = !this.nearestOnly && series.length > 1;
  }

  addOverlay() {
    this.cross = el('div', {class: 'cross', hidden: ''});
    this.chosen = el('div', {class: 'chosen', hidden: ''});
    this.readout = el('div', {class: 'readout', 'aria-hidden': 'true', hidden: ''});
    this.canvas.parentNode.append(this.cross, this.chosen, this.readout);
    this.canvas.tabIndex = 0;
    this.canvas.addEventListener('pointermove', (event) => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => {
      this.pointerY = null;
      this.view.cross(null);
    });
    this.canvas.addEventListener('pointerdown', (event) => this.grab(event));
    this.canvas.addEventListener('pointerup', (event) => this.release(event));
    this.canvas.addEventListener('pointercancel', () => this.letGo());
    this.canvas.addEventListener('dblclick', () => this.view.set({from: null, to: null}));
    this.canvas.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.view.set({from: null, to: null});
      else if (!this.view.move(event.key, this.series[0].source.steps)) return;
      event.preventDefault();
    });
  }

  scales() {
    const x = scale(axisKind[this.view.axis], 'linear');
    if (this.view.axis !== 'time') x.ticks.precision = 0; // steps are whole
    else if (this.canvas.clientWidth < NARROW) x.ticks.maxTicksLimit = 4; // "6 min 40 s" is long
    x.grid.display = false;
    x.bounds = 'data';
    x.afterBuildTicks = (axis) => { axis.ticks = apartFromEnd(axis.ticks); };
    if (!this.view.zoomed) x.suggestedMin = 0;
    const y = scale(this.kind, this.view.log ? 'logarithmic' : 'linear', this.factor);
    y.beginAtZero = this.series.some((s) => s.fromZero);
    if (!this.view.log && this.same) [y.suggestedMin, y.suggestedMax] = this.same.map((value) => value / this.factor);
    if (this.empty) Object.assign(y, {min: 0, max: 1, display: false});
    if (this.empty) Object.assign(x, {min: 0, max: 1, display: false});
    return {scales: {x, y}, color: colour('text')};
  }

  // Returns the datasets of a series: the line, its band, and the unsmoothed line if it is smoothed.
  datasets(series, at) {
    const points = series.source.points(series.name);
    const hue = series.ink ?? colour(series.colour);
    const xs = points.map((point) => series.x(point, this.view.axis));
    const from = (values) => values.map((y, i) => ({x: xs[i], y: y / this.factor}));
    const line = {label: shortened(series.title), borderColor: hue, backgroundColor: hue, borderWidth: this.nearestOnly ? 1.25 : 1.75, borderDash: series.dash ?? [],
                  pointBorderWidth: 0, tension: 0, order: 0};
    const helper = {helper: true, borderWidth: 0, pointRadius: 0, borderColor: hue, order: 2,
                    backgroundColor: `color-mix(in srgb, ${hue} 20%, transparent)`};
    const mean = points.map((point) => point.mean);
    const banded = points.some((point) => point.count > 1 || point.runs > 1);
    const helpers = [];
    if (banded && (!this.nearestOnly || points.some((point) => point.runs > 1))) {
      helpers.push({...helper, data: from(points.map((p) => p.min))},
                   {...helper, data: from(points.map((p) => p.max)), fill: '-1'});
    }
    if (this.view.smooth > 0 && !this.nearestOnly)
      helpers.push({...helper, order: 1, borderWidth: 1, data: from(mean),
                    borderColor: `color-mix(in srgb, ${hue} 35%, transparent)`});
    const shown = this.view.smooth > 0 ? smoothed(points, this.view.smooth) : mean;
    series.shown = points;
    series.xs = xs;
    this.bad = at === 0 ? [] : this.bad;
    points.forEach((point, i) => {
      if (point.bad > 0) this.bad.push(xs[i]);
    });
    const pointRadius = shown.map((_, i) => series.dots || isAlone(shown, i) ? DOT : 0);
    return {line: {...line, pointRadius, data: from(shown)}, helpers};
  }

  // Draws everything again with the current points, colours and scales.
  draw() {
    if (!this.chart) return;
    const points = this.series.flatMap((series) => series.source.points(series.name));
    const values = points.flatMap((point) => [point.min, point.max]);
    this.empty = !values.some(Number.isFinite);
    this.same = rangeOfSame(values);
    this.factor = values.some((value) => Math.abs(value) > TOO_LARGE) ? SMALLER : 1;
    const made = this.series.map((series, at) => this.datasets(series, at));
    this.chart.data.datasets = [...made.map((m) => m.line), ...made.flatMap((m) => m.helpers)];
    Object.assign(this.chart.options, this.scales());
    this.describe();
    this.chart.update('none');
    this.drawn = true;
  }

  // Adapts to the current size of the card, for example in print.
  resize() {
    if (this.chart) this.chart.resize();
  }

  describe() {
    const marks = this.markWords();
    if (this.many) {
      const drawn = this.series.filter((s) => s.shown.length > 0).length;
      this.canvas.setAttribute('aria-label', `By ${this.view.axis}: curves of ${drawn} ${this.many}${this.many === 'runs' ? '; the table below has their values' : ''}`);
      return;
    }
    const newest = this.series.map((s) => {
      const last = s.shown[s.shown.length - 1];
      return !last ? `no ${s.words} yet`
        : `${s.words} ${this.format(last.last)} at ${this.stepWords ? this.stepWords(last.step) : `step ${text.count(last.step)}`}`;
    });
    this.canvas.setAttribute('aria-label', `By ${this.view.axis}: ${newest.join(', ')}${marks === '' ? '' : `; ${marks}`}`);
  }

  // The marks as text: "checkpoints at step 500, 1,000; not a number at step 1,010 and 98 more".
  markWords() {
    const list = (words, steps) => steps.length === 0 ? [] : [`${words} at step ${steps.slice(0, MARKS_NAMED).map(text.count).join(', ')}`
      + (steps.length > MARKS_NAMED ? ` and ${text.count(steps.length - MARKS_NAMED)} more` : '')];
    const marks = this.marks();
    const kinds = [...new Set(marks.map((mark) => mark.words))];
    const bad = this.series.flatMap((s) => s.shown.filter((point) => point.bad > 0).map((point) => point.first));
    return [...kinds.flatMap((words) => list(words, marks.filter((mark) => mark.words === words && mark.step !== null).map((mark) => mark.step))),
            ...list('not a number', [...new Set(bad)])].join('; ');
  }

  // The words of marks near a place of the axis.
  wordsNear(x) {
    const scale = this.chart.scales.x;
    const near = (value) => Math.abs(scale.getPixelForValue(value) - scale.getPixelForValue(x)) <= MARK_PIXELS;
    return [...new Set([...this.marks().filter((mark) => near(mark.x)).map((mark) => mark.words),
                        ...this.bad?.some(near) ? ['not a number'] : []])];
  }

  // --- the pointer

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const area = this.chart.chartArea;
    return Math.min(area.right, Math.max(area.left, event.clientX - box.left));
  }

  hover(event) {
    if (!this.chart) return;
    const at = this.at(event);
    this.pointerY = event.clientY - this.canvas.getBoundingClientRect().top;
    this.view.cross(this.chart.scales.x.getValueForPixel(at));
    if (this.start === undefined) return;
    this.chosen.hidden = Math.abs(at - this.start) < DRAG_PIXELS;
    this.chosen.style.left = `${Math.min(at, this.start)}px`;
    this.chosen.style.width = `${Math.abs(at - this.start)}px`;
  }

  grab(event) {
    if (!this.chart || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.start = this.at(event);
  }

  letGo() {
    this.start = undefined;
    this.chosen.hidden = true;
  }

  release(event) {
    const start = this.start;
    if (start === undefined) return;
    const end = this.at(event);
    this.letGo();
    if (Math.abs(end - start) < DRAG_PIXELS) {
      const near = this.many ? this.nearest(this.chart.scales.x.getValueForPixel(end)) : null;
      if (near?.href) location.assign(near.href);
      return;
    }
    const [low, high] = [start, end].sort((a, b) => a - b)
      .map((pixel) => this.chart.scales.x.getValueForPixel(pixel));
    const inside = this.series.flatMap((s) => s.shown.filter((_, i) => s.xs[i] >= low
      && s.xs[i] <= high));
    if (inside.length < 2) return;
    this.view.set({from: Math.min(...inside.map((p) => p.first)),
                   to: Math.max(...inside.map((p) => p.step))});
  }

  // Shows the point of each series that is nearest to the crosshair.
  showCross(x) {
    if (!this.chart) return;
    const area = this.chart.chartArea;
    const pixel = x === null ? NaN : this.chart.scales.x.getPixelForValue(x);
    const out = !(pixel >= area.left - 1 && pixel <= area.right + 1);
    this.cross.hidden = out;
    this.readout.hidden = out;
    if (out) return;
    this.cross.style.left = `${pixel}px`;
    this.cross.style.top = `${area.top}px`;
    this.cross.style.height = `${area.bottom - area.top}px`;
    const near = this.nearestOnly ? this.nearest(x) : null;
    const said = (this.nearestOnly ? near ? [near] : [] : this.series).map((s) => this.said(s, x)).filter(Boolean);
    setText(this.readout, said.length === 0 ? ''
      : [`${said.map((one) => one.words).join(' · ')} at ${(this.stepWords ?? text.count)(said[0].step)}`, ...this.wordsNear(x)].join(' · '));
    if (this.nearestOnly) this.readout.hidden = said.length === 0;
    this.placeReadout(area, pixel);
  }

  // Places the readout inside the plot area, on the side away from the crosshair, so that it never covers the title.
  placeReadout(area, pixel) {
    const left = pixel > (area.left + area.right) / 2;
    this.readout.style.top = `${area.top}px`;
    this.readout.style.maxHeight = `${area.bottom - area.top}px`;
    this.readout.style.left = left ? `${area.left + 4}px` : 'auto';
    this.readout.style.right = left ? 'auto' : '4px';
  }

  // Of many series, the one whose curve is nearest to the pointer; null if the pointer is over another chart.
  nearest(x) {
    if (this.pointerY === null || this.pointerY === undefined) return null;
    let best = null;
    let least = Infinity;
    for (const series of this.series) {
      const point = this.pointAt(series, x);
      const value = point && (Number.isFinite(point.mean) ? point.mean : null);
      if (value === null || value === undefined) continue;
      const away = Math.abs(this.chart.scales.y.getPixelForValue(value / this.factor) - this.pointerY);
      if (away < least) [best, least] = [series, away];
    }
    return best;
  }

  pointAt(series, x) {
    const xs = series.xs ?? [];
    let low = 0;
    for (let high = xs.length; low < high;) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    if (low > 0 && (low === xs.length || x - xs[low - 1] < xs[low] - x)) low--;
    return series.shown?.[low];
  }

  said(series, x) {
    const point = this.pointAt(series, x);
    if (!point) return null;
    const mean = this.format(Number.isFinite(point.mean) ? point.mean : null);
    if (this.nearestOnly) return {words: `${series.title}: ${mean}`, step: point.step};
    if (this.series.length > 2) return {words: `${series.short} ${mean}`, step: point.step};
    const [least, most] = [this.format(point.min), this.format(point.max)];
    return {words: `${this.series.length > 1 ? `${series.title} ` : ''}${mean}`
      + (point.count > 1 && least !== most ? ` (${least} to ${most})` : ''), step: point.step};
  }
}
