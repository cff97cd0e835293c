// series: holds the curves of a run as buckets; follows a running run, and reads finer buckets of a zoomed range.
import {getJson} from '/live.js';

const BUCKETS = 800;
const MANY = 24; // number of metrics from which each gets fewer buckets

function pointsOf(column) {
  return column.last_step.map((step, at) => ({
    first: column.first_step[at], step, time: column.time_ms[at], count: column.points[at],
    bad: column.not_finite[at], min: column.min[at] ?? NaN, max: column.max[at] ?? NaN,
    mean: column.mean[at] ?? NaN, last: column.last[at]}));
}

// Buckets over several runs: they have no common wall-clock time, but seconds since each run began.
function bandsOf(column) {
  return column.last_step.map((step, at) => ({
    first: column.first_step[at], step, seconds: column.seconds[at] ?? NaN, count: column.points[at],
    bad: column.not_finite[at], min: column.min[at] ?? NaN, max: column.max[at] ?? NaN,
    mean: column.mean[at] ?? NaN, last: column.mean[at] ?? NaN, runs: column.runs[at]}));
}

function curvesOf(series) {
  return new Map(Object.entries(series).map(([name, column]) => [name, pointsOf(column)]));
}

// Appends points; those up to the last known step are skipped.
function append(points, column) {
  const last = points.length > 0 ? points[points.length - 1].step : -1;
  column.step.forEach((step, at) => {
    const value = column.value[at] ?? NaN;
    if (step > last)
      points.push({first: step, step, time: column.time_ms[at], count: 1, bad: value === value ? 0 : 1,
                   min: value, max: value, mean: value, last: value});
  });
}

function join(a, b) {
  const least = (x, y) => !(x <= y) && y === y ? y : x;
  const good = [a.count - a.bad, b.count - b.bad];
  const sum = (good[0] > 0 ? a.mean * good[0] : 0) + (good[1] > 0 ? b.mean * good[1] : 0);
  return {first: a.first, step: b.step, time: b.time, count: a.count + b.count, bad: a.bad + b.bad,
          min: least(a.min, b.min), max: -least(-a.max, -b.max), last: b.last,
          mean: good[0] + good[1] > 0 ? sum / (good[0] + good[1]) : NaN};
}

// Merges points into at most `most` buckets. As on the server, the width of a bucket is a power of two.
export function merged(points, most) {
  if (points.length <= most) return points;
  const first = points[0].first;
  const end = points[points.length - 1].step;
  let width = 1;
  while (Math.floor(end / width) - Math.floor(first / width) >= most) width *= 2;
  const out = [];
  for (const point of points) {
    const before = out[out.length - 1];
    if (before && Math.floor(before.first / width) === Math.floor(point.first / width))
      out[out.length - 1] = join(before, point);
    else out.push(point);
  }
  return out;
}

export class Series {
  constructor(path) {
    this.path = path;
    this.metrics = 0;
    this.reset();
  }

  reset() {
    this.whole = new Map(); // name -> points
    this.zoom = null; // the same for the zoomed range; null: not zoomed
    this.attempt = 0;
    this.asked = 0;
  }

  ask(from, to) {
    const buckets = this.metrics > MANY ? BUCKETS / 4 : BUCKETS;
    const end = to === null ? '' : `&to=${to}`;
    return getJson(`${this.path}/metrics?buckets=${buckets}&from=${from ?? 0}${end}`);
  }

  get lastStep() {
    return Math.max(-1, ...[...this.whole.values()].map((points) => points[points.length - 1].step));
  }

  get steps() {
    const first = [...this.whole.values()].map((points) => points[0].first);
    return {from: first.length > 0 ? Math.min(...first) : 0, to: Math.max(0, this.lastStep)};
  }

  // Reads everything, or what is new since the last call. Returns true if anything is new.
  async update(attempt, metrics) {
    const longest = Math.max(0, ...[...this.whole.values()].map((points) => points.length));
    this.metrics = metrics;
    if (attempt !== this.attempt || longest > 2 * BUCKETS) {
      const same = attempt === this.attempt;
      const whole = curvesOf((await this.ask(null, null)).series);
      if (same) for (const [name, points] of whole) points.push(...this.newer(name, points));
      this.whole = whole;
      this.attempt = attempt;
      return true;
    }
    return this.follow();
  }

  // Returns points that came with news while an answer was being read.
  newer(name, points) {
    const last = points.length > 0 ? points[points.length - 1].step : -1;
    return (this.whole.get(name) ?? []).filter((point) => point.first > last);
  }

  // Reads again from the bucket with the newest step, which may have grown.
  async follow() {
    const end = this.lastStep;
    const open = [...this.whole.values()].map((points) => points[points.length - 1])
      .filter((point) => point.step === end);
    const from = Math.max(0, Math.min(end, ...open.map((point) => point.first)));
    const fresh = curvesOf((await this.ask(from, null)).series);
    let changed = false;
    for (const [name, points] of fresh) {
      const old = this.whole.get(name) ?? [];
      const kept = old.filter((point) => point.step < from);
      const last = kept.length > 0 ? kept[kept.length - 1].step : -1;
      const joined = kept.concat(points.filter((point) => point.first > last), this.newer(name, points));
      const before = old[old.length - 1];
      const now = joined[joined.length - 1];
      changed = changed || !before || joined.length !== old.length || now.step !== before.step
        || now.count !== before.count;
      this.whole.set(name, joined);
    }
    return changed;
  }

  // Adds the points of news: {name: {step, value, time_ms}}. Returns false if another attempt
  // began: everything has to be read again.
  add(attempt, series, view) {
    if (attempt !== this.attempt) return false;
    const most = this.metrics > MANY ? BUCKETS / 4 : BUCKETS;
    for (const [name, column] of Object.entries(series)) {
      const shown = [this.whole];
      if (this.zoom !== null && view.to === null) shown.push(this.zoom);
      for (const curves of shown) {
        const points = curves.get(name) ?? [];
        append(points, column);
        curves.set(name, points.length > 2 * most ? merged(points, most) : points);
      }
    }
    return true;
  }

  async readZoom(view) {
    const asked = ++this.asked;
    if (!view.zoomed) {
      this.zoom = null;
      return;
    }
    const zoom = curvesOf((await this.ask(view.from, view.to)).series);
    if (asked === this.asked) this.zoom = zoom; // else another zoom was requested meanwhile
  }

  points(name) {
    return (this.zoom ?? this.whole).get(name) ?? [];
  }

  newest(name) {
    const points = this.whole.get(name);
    return points ? points[points.length - 1].last : null;
  }

  lowest(name) {
    const values = (this.whole.get(name) ?? []).map((point) => point.min).filter(Number.isFinite);
    return values.length > 0 ? Math.min(...values) : null;
  }

  highest(name) {
    const values = (this.whole.get(name) ?? []).map((point) => point.max).filter(Number.isFinite);
    return values.length > 0 ? Math.max(...values) : null;
  }

  // tokens/s and seconds of the same step give the tokens per step.
  get tokensPerStep() {
    const speed = this.whole.get('tokens_per_second');
    const seconds = this.whole.get('step_seconds');
    if (!speed || !seconds) return null;
    const a = speed[speed.length - 1];
    const b = seconds[seconds.length - 1];
    return a.step === b.step && a.last > 0 && b.last > 0 ? Math.round(a.last * b.last) : null;
  }
}

// The runs of a group, with one band for each metric. An answer holds the whole band, so that it is
// always read completely.
export class Band extends Series {
  constructor(group) {
    super(null);
    this.group = group;
    this.runs = [];
    this.turn = 0;
  }

  async askBands(from, to) {
    const end = to === null ? '' : `&to=${to}`;
    const answer = await getJson(`/api/v1/band?group=${encodeURIComponent(this.group)}&buckets=${BUCKETS}`
      + `&from=${from ?? 0}${end}`);
    this.runs = answer.runs;
    return new Map(Object.entries(answer.series).map(([name, column]) => [name, bandsOf(column)]));
  }

  get names() {
    return [...this.whole.keys()];
  }

  // Returns true if anything is new.
  async update() {
    const turn = ++this.turn;
    const now = await this.askBands(null, null);
    if (turn !== this.turn) return false; // another request was sent meanwhile
    const old = JSON.stringify([...this.whole]);
    this.whole = now;
    return old !== JSON.stringify([...now]);
  }

  async readZoom(view) {
    const asked = ++this.asked;
    const zoom = view.zoomed ? await this.askBands(view.from, view.to) : null;
    if (asked === this.asked) this.zoom = zoom;
  }
}
