// text: formats numbers and times for people, as plain strings.

const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', {notation: 'compact', maximumSignificantDigits: 3});
const none = '–';
const HUGE = 1e15; // larger numbers are written with an exponent

// Formats like "1.5e+300", without trailing zeros.
function exponent(value, digits) {
  return value.toExponential(digits).replace(/\.?0*e/, 'e');
}

export function count(value) {
  if (value === null || value === undefined) return none;
  return Math.abs(value) >= HUGE ? exponent(value, 2) : whole.format(Math.round(value) + 0); // + 0 turns -0 into 0
}

// Formats the newest loss of a run.
export function lossOf(run) {
  return run.diverged && run.loss === null ? 'nan' : loss(run.loss);
}

// Formats a loss with four decimals, or with an exponent where four decimals are too few or the number is huge.
export function loss(value) {
  if (value === null || value === undefined) return none;
  return value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 1e5)
    ? value.toExponential(3)
    : value.toFixed(4);
}

// Formats a number of any size with three digits: "6e-4", "12.4", "1,250", "6.89M".
export function compact(value) {
  if (value === null || value === undefined) return none;
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (size >= HUGE) return exponent(value, 2);
  if (size >= 1e6) return short.format(value);
  if (size >= 1000) return whole.format(Math.round(value));
  if (size >= 0.001) return String(Number(value.toPrecision(3)));
  return exponent(value, 2);
}

// item: what the run reads, "token" or "row".
export function speedUnit(item) {
  return item === 'row' ? 'Rows/s' : 'Tokens/s';
}

export function bytes(value) {
  if (value === null || value === undefined) return none;
  if (value < 0) return `−${bytes(-value)}`;
  if (value >= 1000 * HUGE) return `${exponent(value, 2)} B`;
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return none;
  if (seconds < 0) return `−${duration(-seconds)}`; // before the start of a fork
  if (seconds === 0) return '0 s';
  if (seconds >= HUGE) return `${exponent(seconds, 2)} s`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const pad = (n) => String(n).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${pad(Math.floor(seconds % 60))} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${pad(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

// Formats seconds with fractions: "1.52 ms".
export function shortTime(seconds) {
  return seconds === null || seconds === undefined ? none
    : Math.abs(seconds) < 1 ? `${compact(seconds * 1000)} ms`
      : seconds < 60 ? `${compact(seconds)} s` : duration(seconds);
}

export function ago(ms, now) {
  if (ms === null) return none;
  const seconds = (now - ms) / 1000;
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(ms).toLocaleDateString('en', {day: 'numeric', month: 'short', year: 'numeric'});
}

export function dateTime(ms) {
  if (ms === null) return '';
  return new Date(ms).toLocaleString('en', {dateStyle: 'medium', timeStyle: 'medium'});
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString('en-GB');
}

// --- labels of an axis: as few digits as distinguish the ticks

const EXACT = 0.05; // a label may differ from its tick by this part of the distance of two ticks

function distance(values) {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const gaps = sorted.slice(1).map((value, at) => value - sorted[at]).filter((gap) => gap > 0);
  return gaps.length > 0 ? Math.min(...gaps) : Math.abs(values[0] ?? 0) || 1;
}

// Returns the number of decimals with which every value is within EXACT of its tick.
function decimalsFor(values, gap) {
  for (let decimals = 0; decimals < 15; decimals++)
    if (values.every((value) => Math.abs(Number(value.toFixed(decimals)) - value) <= EXACT * gap)) return decimals;
  return 15;
}

function scaledLabels(values, gap, unit, suffix) {
  const scaled = values.map((value) => value / unit);
  const decimals = decimalsFor(scaled, gap / unit);
  const format = new Intl.NumberFormat('en', {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
  return scaled.map((value, at) => values[at] === 0 && suffix.trim() === suffix ? '0' : format.format(value + 0) + suffix);
}

function exponentLabels(values, gap) {
  return values.map((value) => {
    if (value === 0) return '0';
    for (let digits = 0; digits < 15; digits++)
      if (Math.abs(Number(value.toExponential(digits)) - value) <= EXACT * gap) return exponent(value, digits);
    return exponent(value, 15);
  });
}

// Formats times like "1 h 30 min", down to the largest unit that distinguishes the ticks.
function timeLabels(values, gap) {
  const most = Math.max(...values.map(Math.abs));
  if (most >= HUGE) return exponentLabels(values, gap).map((label) => `${label} s`);
  if (most < 1) return scaledLabels(values, gap, 1e-3, ' ms');
  if (most < 60) return scaledLabels(values, gap, 1, ' s');
  const units = [['d', 86400], ['h', 3600], ['min', 60]];
  const decimals = decimalsFor(values, gap);
  const near = (value, unit) => Math.abs(Math.round(value / unit) * unit - value) <= EXACT * gap;
  const finest = units.map(([, unit]) => unit).find((unit) => values.every((value) => near(value, unit))) ?? 0;
  return values.map((value) => {
    let left = finest > 0 ? Math.round(Math.abs(value) / finest) * finest : Number(Math.abs(value).toFixed(decimals));
    const parts = [];
    for (const [name, unit] of units) {
      if (left >= unit) parts.push(`${Math.floor(left / unit)} ${name}`);
      left %= unit;
    }
    const seconds = left.toFixed(decimals);
    if (finest === 0 && Number(seconds) > 0) parts.push(`${seconds} s`);
    return parts.length === 0 ? '0 s' : (value < 0 ? '−' : '') + parts.join(' ');
  });
}

// Returns the labels of the ticks of an axis, all different. kind: '', 'bytes', 'seconds' (short times) or 'time'.
export function tickLabels(values, kind) {
  const gap = distance(values);
  const most = Math.max(...values.map(Math.abs));
  if (!Number.isFinite(most)) return values.map((value) => Number.isFinite(value) ? exponent(value, 2) : '');
  if (kind === 'time' || (kind === 'seconds' && most >= 1)) return timeLabels(values, gap);
  if (kind === 'seconds') return scaledLabels(values, gap, most < 1e-3 ? 1e-6 : 1e-3, most < 1e-3 ? ' µs' : ' ms');
  if (kind === 'bytes' && most < 1000 * HUGE) {
    const units = [[1e15, ' PB'], [1e12, ' TB'], [1e9, ' GB'], [1e6, ' MB'], [1e3, ' KB'], [1, ' B']];
    const [unit, suffix] = units.find(([size]) => most >= size) ?? units[units.length - 1];
    return scaledLabels(values, gap, unit, suffix);
  }
  if (most >= HUGE || most < 1e-3) {
    const labels = exponentLabels(values, gap);
    return kind === 'bytes' ? labels.map((label) => `${label} B`) : labels;
  }
  const [unit, suffix] = [[1e12, 'T'], [1e9, 'B'], [1e6, 'M']].find(([size]) => most >= size) ?? [1, ''];
  return scaledLabels(values, gap, unit, suffix);
}

// Returns the labels of a logarithmic axis. Its ticks are far apart, so each label has its own unit
// if the labels then differ.
export function logLabels(values, kind) {
  const format = {bytes, seconds: shortTime, time: duration}[kind] ?? compact;
  const labels = values.map((value) => format(value));
  return new Set(labels).size === new Set(values).size ? labels : tickLabels(values, kind);
}

// Formats the values of a table row in one unit and with the same decimals; null is a dash. kind: as for tickLabels.
export function rowLabels(values, kind) {
  const there = values.filter((value) => value !== null && value !== undefined && Number.isFinite(value));
  const sizes = there.map(Math.abs).filter((size) => size > 0);
  const most = Math.max(0, ...sizes);
  const least = Math.min(...sizes, Infinity);
  const units = {bytes: [[1e15, ' PB'], [1e12, ' TB'], [1e9, ' GB'], [1e6, ' MB'], [1e3, ' KB'], [1, ' B']],
                 seconds: [[1, ' s'], [1e-3, ' ms'], [1e-6, ' µs']]}[kind] ?? [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1, '']];
  const [unit, suffix] = units.find(([size]) => most >= size) ?? units[units.length - 1];
  const shown = (make) => values.map((value) => there.includes(value) ? make(value) : none);
  if (most >= HUGE || (most > 0 && (most / unit < 0.01 || least / most < 1e-4)))
    return shown((value) => value === 0 ? '0' : value.toExponential(3) + ({bytes: ' B', seconds: ' s'}[kind] ?? ''));
  const different = new Set(there).size;
  let decimals = unit === 1 && suffix === '' ? (most >= 1000 ? 0 : 4) : most / unit >= 100 ? 1 : 2;
  if (there.every((value) => Number.isInteger(value / unit))) decimals = 0;
  const make = () => {
    const format = new Intl.NumberFormat('en', {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
    return shown((value) => format.format(value / unit + 0) + suffix);
  };
  for (const end = decimals + 4; decimals < end; decimals++) // more decimals only if values that differ would look alike
    if (new Set(make().filter((label) => label !== none)).size >= different) break;
  return make();
}
