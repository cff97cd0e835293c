// series: holds the curves of a run as buckets; follows a running run, and reads finer buckets of a zoomed range.
import {getJson} from '/live.js';

const BUCKETS = 800;
const MANY = 24; // number of metrics from which each gets fewer buckets
const NAMES_MOST = 60; // metrics that one request names
const GROUP_BUCKETS = 150; // of each run of a group

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
  if (points.length === 0) return points;
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

// Gives points that came later the same buckets as the older ones, so that the newest part of a curve looks as the
// rest does. A curve of few points has no buckets.
export function settled(points, most) {
  return points.length > most || points.some((point) => point.count > 1) ? merged(points, most) : points;
}

// Reads only the metrics that charts want: a run may have hundreds.
export class Series {
  // prefix: of all its metrics; null: those without one, too.
  constructor(path, prefix = null) {
    this.path = path;
    this.prefix = prefix;
    this.metrics = 0;
    this.wanted = new Set(); // names of metrics that are read
    this.coming = new Set(); // of those that are being read for the first time
    this.summary = new Map(); // name -> {last, min, max} of metrics without a curve here
    this.reset();
  }

  reset() {
    this.whole = new Map(); // name -> points
    this.zoom = null; // the same for the zoomed range; null: not zoomed
    this.range = null; // the zoomed range
    this.attempt = 0;
    this.asked = 0;
  }

  get most() {
    return this.metrics > MANY ? BUCKETS / 2 : BUCKETS;
  }

  // Reads some metrics, or all if there are too many to name.
  async ask(from, to, names = [...this.wanted]) {
    const end = to === null ? '' : `&to=${to}`;
    const all = this.prefix === null ? '' : `&name=${encodeURIComponent(this.prefix)}`;
    const named = names.length > NAMES_MOST ? all : names.map((name) => `&name=${encodeURIComponent(name)}`).join('');
    if (names.length === 0) return new Map();
    const {series} = await getJson(`${this.path}/metrics?buckets=${this.most}&from=${from ?? 0}${end}${named}`);
    return new Map(names.filter((name) => series[name]).map((name) => [name, pointsOf(series[name])]));
  }

  // False until something was read.
  get ready() {
    return this.attempt !== 0;
  }

  settle(points) {
    return settled(points, this.most);
  }

  // Wants these metrics from now on; resolves when those that are new have been read. Before the first update they
  // are only noted.
  async want(names) {
    const fresh = names.filter((name) => !this.wanted.has(name) && !this.coming.has(name));
    if (this.attempt === 0) for (const name of fresh) this.wanted.add(name);
    if (this.attempt === 0 || fresh.length === 0) return;
    const {attempt} = this;
    for (const name of fresh) this.coming.add(name);
    try {
      for (let at = 0; at < fresh.length; at += NAMES_MOST) {
        const part = fresh.slice(at, at + NAMES_MOST);
        const curves = await this.ask(null, null, part);
        if (attempt !== this.attempt) return; // another attempt: they are asked for again
        for (const [name, points] of curves) this.whole.set(name, this.settle([...points, ...this.newer(name, points)]));
        if (this.zoom !== null)
          for (const [name, points] of await this.ask(this.range.from, this.range.to, part)) this.zoom?.set(name, points);
        for (const name of part) this.wanted.add(name);
      }
    } finally {
      for (const name of fresh) this.coming.delete(name);
    }
  }

  // Returns true if these metrics are wanted: their points are here, or there are none.
  has(names) {
    return names.every((name) => this.wanted.has(name));
  }

  // Reads last, lowest and highest value of all metrics, for tables.
  async readSummary() {
    const {series} = await getJson(`${this.path}/metrics?buckets=1`);
    this.summary = new Map(Object.entries(series).map(([name, column]) => {
      const end = column.last.length - 1; // a report has more buckets
      const finite = (values) => values.filter((value) => value !== null);
      return [name, {last: column.last[end] ?? null, min: finite(column.min).reduce((a, b) => a < b ? a : b, Infinity),
                     max: finite(column.max).reduce((a, b) => a > b ? a : b, -Infinity)}];
    }));
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
      const names = [...this.wanted];
      const whole = await this.ask(null, null, names);
      if (same) for (const [name, points] of whole) points.push(...this.newer(name, points));
      for (const name of this.wanted) { // those that were wanted while the answer was read
        if (names.includes(name)) continue;
        if (this.whole.has(name)) whole.set(name, this.whole.get(name));
        else this.wanted.delete(name);
      }
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
    const fresh = await this.ask(from, null);
    let changed = false;
    for (const [name, points] of fresh) {
      const old = this.whole.get(name) ?? [];
      const kept = old.filter((point) => point.step < from);
      const last = kept.length > 0 ? kept[kept.length - 1].step : -1;
      const joined = this.settle(kept.concat(points.filter((point) => point.first > last), this.newer(name, points)));
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
    for (const [name, column] of Object.entries(series)) {
      this.sum(name, column.value);
      if (!this.wanted.has(name) && !this.coming.has(name)) continue;
      const shown = [this.whole];
      if (this.zoom !== null && view.to === null) shown.push(this.zoom);
      for (const curves of shown) {
        const points = curves.get(name) ?? [];
        append(points, column);
        curves.set(name, this.settle(points));
      }
    }
    return true;
  }

  // Takes new values into the summary.
  sum(name, values) {
    const known = this.summary.get(name);
    if (!known) return;
    for (const value of values) {
      known.last = value;
      if (value < known.min) known.min = value;
      if (value > known.max) known.max = value;
    }
  }

  async readZoom(view) {
    const asked = ++this.asked;
    if (!view.zoomed) {
      this.zoom = this.range = null;
      return;
    }
    const zoom = await this.ask(view.from, view.to);
    if (asked !== this.asked) return; // another zoom was requested meanwhile
    this.zoom = zoom;
    this.range = {from: view.from, to: view.to};
  }

  points(name) {
    return (this.zoom ?? this.whole).get(name) ?? [];
  }

  newest(name) {
    const points = this.whole.get(name);
    return points ? points[points.length - 1].last : this.summary.get(name)?.last ?? null;
  }

  lowest(name) {
    const values = this.whole.has(name) ? this.whole.get(name).map((point) => point.min) : [this.summary.get(name)?.min];
    const finite = values.filter(Number.isFinite);
    return finite.length > 0 ? Math.min(...finite) : null;
  }

  highest(name) {
    const values = this.whole.has(name) ? this.whole.get(name).map((point) => point.max) : [this.summary.get(name)?.max];
    const finite = values.filter(Number.isFinite);
    return finite.length > 0 ? Math.max(...finite) : null;
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
    this.names = []; // of all metrics of its runs
    this.turn = 0;
  }

  settle(points) {
    return points;
  }

  async ask(from, to, names = [...this.wanted]) {
    const end = to === null ? '' : `&to=${to}`;
    const bands = new Map();
    for (let at = 0; at < names.length; at += NAMES_MOST) {
      const named = names.slice(at, at + NAMES_MOST).map((name) => `&name=${encodeURIComponent(name)}`).join('');
      const answer = await getJson(`/api/v1/band?group=${encodeURIComponent(this.group)}&buckets=${BUCKETS}`
        + `&from=${from ?? 0}${end}${named}`);
      this.runs = answer.runs;
      for (const [name, column] of Object.entries(answer.series)) bands.set(name, bandsOf(column));
    }
    return bands;
  }

  // Returns true if anything is new.
  async update() {
    const turn = ++this.turn;
    this.attempt = 1;
    const now = await this.ask(null, null);
    if (turn !== this.turn) return false; // another request was sent meanwhile
    const old = JSON.stringify([...this.whole]);
    this.whole = now;
    return old !== JSON.stringify([...now]);
  }
}

// The runs of a group, with a curve for each run. An answer has one metric of all runs that are drawn.
export class RunsOfGroup {
  constructor() {
    this.curves = new Map(); // name -> (id of a run -> points)
    this.zooms = new Map(); // the same for the zoomed range
    this.wanted = new Set();
    this.ids = [];
    this.range = null;
  }

  async ask(name, from, to) {
    const end = to === null ? '' : `&to=${to}`;
    const {series} = await getJson(`/api/v1/curves?runs=${this.ids.map(encodeURIComponent).join(',')}`
      + `&name=${encodeURIComponent(name)}&buckets=${GROUP_BUCKETS}&from=${from ?? 0}${end}`);
    return new Map(Object.entries(series).map(([id, column]) => [id, pointsOf(column)]));
  }

  async read(names) {
    await Promise.all(names.map(async (name) => {
      if (this.ids.length > 0) this.curves.set(name, await this.ask(name, null, null));
      if (this.range !== null) this.zooms.set(name, await this.ask(name, this.range.from, this.range.to));
    }));
  }

  async want(names) {
    const fresh = names.filter((name) => !this.wanted.has(name));
    for (const name of fresh) this.wanted.add(name);
    await this.read(fresh);
  }

  // Reads all wanted metrics of these runs again.
  async update(ids) {
    this.ids = ids;
    await this.read([...this.wanted]);
  }

  async readZoom(view) {
    this.range = view.zoomed ? {from: view.from, to: view.to} : null;
    this.zooms = new Map();
    if (this.range !== null) await this.read([...this.wanted]);
  }

  get steps() {
    const all = [...this.curves.values()].flatMap((runs) => [...runs.values()]).filter((points) => points.length > 0);
    return {from: Math.min(0, ...all.map((points) => points[0].first)),
            to: Math.max(0, ...all.map((points) => points[points.length - 1].step))};
  }

  // Returns the curves of one run, for charts. tokens: how many a step has, or null.
  of(id, tokens) {
    const group = this;
    return {
      shared: group,
      get ready() { return group.ids.length > 0; },
      has: (names) => names.every((name) => group.wanted.has(name)),
      points: (name) => (group.range !== null && group.zooms.has(name) ? group.zooms : group.curves).get(name)?.get(id) ?? [],
      get steps() { return group.steps; },
      get tokensPerStep() { return tokens(); },
    };
  }
}
