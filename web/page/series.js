// series: the curves of a run as buckets, followed while the run goes on, and again for what is zoomed to.
import {getJson} from '/live.js';

const BUCKETS = 800;
const MANY = 24; // metrics: then with fewer buckets each

function pointsOf(column) {
  return column.last_step.map((step, at) => ({
    first: column.first_step[at], step, time: column.time_ms[at], count: column.points[at],
    bad: column.not_finite[at], min: column.min[at] ?? NaN, max: column.max[at] ?? NaN,
    mean: column.mean[at] ?? NaN, last: column.last[at]}));
}

// Of several runs: a bucket has no one time, but how long they had been going.
function bandsOf(column) {
  return column.last_step.map((step, at) => ({
    first: column.first_step[at], step, seconds: column.seconds[at] ?? NaN, count: column.points[at],
    bad: column.not_finite[at], min: column.min[at] ?? NaN, max: column.max[at] ?? NaN,
    mean: column.mean[at] ?? NaN, last: column.mean[at] ?? NaN, runs: column.runs[at]}));
}

function curvesOf(series) {
  return new Map(Object.entries(series).map(([name, column]) => [name, pointsOf(column)]));
}

// Points beside those which are there, the last of which may go on.
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

// The same in at most `most` buckets, each as wide as a power of two, as the server makes them.
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
    this.zoom = null; // the same of what is zoomed to
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

  // Everything, or what is new since; true where anything is.
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

  // What was told while an answer was on its way.
  newer(name, points) {
    const last = points.length > 0 ? points[points.length - 1].step : -1;
    return (this.whole.get(name) ?? []).filter((point) => point.first > last);
  }

  // From the bucket on in which the newest step lies: it may have grown.
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

  // What was told of an attempt: {name: {step, value, time_ms}}. False: all is to be asked for.
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
    if (asked === this.asked) this.zoom = zoom; // no later one was wished for meanwhile
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

  // Of one step: each point of tokens/s stands beside its seconds.
  get tokensPerStep() {
    const speed = this.whole.get('tokens_per_second');
    const seconds = this.whole.get('step_seconds');
    if (!speed || !seconds) return null;
    const a = speed[speed.length - 1];
    const b = seconds[seconds.length - 1];
    return a.step === b.step && a.last > 0 && b.last > 0 ? Math.round(a.last * b.last) : null;
  }
}

// The runs of a group, of each metric one band. What the answer says is all that there is: it is asked for anew.
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

  // True where anything is new.
  async update() {
    const turn = ++this.turn;
    const now = await this.askBands(null, null);
    if (turn !== this.turn) return false; // it was asked for again meanwhile
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
