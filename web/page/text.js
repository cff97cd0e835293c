// text: numbers and times as people read them. Everything here gives plain strings.

const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', {notation: 'compact', maximumSignificantDigits: 3});
const none = '–';

export function count(value) {
  return value === null || value === undefined ? none : whole.format(Math.round(value));
}

// Losses: four decimals, or an exponent where those would say nothing.
export function loss(value) {
  if (value === null || value === undefined) return none;
  return value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 1e5)
    ? value.toExponential(3)
    : value.toFixed(4);
}

// A number of any size with three digits: "6e-4", "12.4", "1,250", "6.89M".
export function compact(value) {
  if (value === null || value === undefined) return none;
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (size >= 1e6) return short.format(value);
  if (size >= 1000) return whole.format(Math.round(value));
  if (size >= 0.001) return String(Number(value.toPrecision(3)));
  return value.toExponential(2).replace(/\.?0*e/, 'e');
}

// Of what a run reads, "token" or "row".
export function speedUnit(item) {
  return item === 'row' ? 'Rows/s' : 'Tokens/s';
}

export function bytes(value) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return none;
  if (seconds < 0) return `−${duration(-seconds)}`; // the past of a fork
  if (seconds === 0) return '0 s';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const pad = (n) => String(n).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${pad(Math.floor(seconds % 60))} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${pad(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

// The same where fractions matter: "1.52 ms".
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
