// parallel: parallel coordinates, one axis for each swept key and the last for the metric; a line is a run. Also the
// colours of the values of a key.
import {colour} from '/dom.js';
import * as text from '/text.js';

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 300;
const EDGE = {top: 34, bottom: 26, side: 46};
const AXIS_LEAST = 72; // pixels between two axes
const TICKS_MOST = 7;
const WIDE = 30; // a key whose values differ by this factor has a logarithmic axis
const HUES = 8;
const SHADES = {light: [[68, 57, 131], [49, 104, 142], [30, 140, 133], [74, 150, 60], [196, 130, 10]],
                dark: [[160, 148, 236], [104, 176, 224], [76, 200, 184], [150, 214, 112], [246, 216, 80]]};

function node(tag, properties = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const isNumber = (value) => typeof value === 'number';

// Returns the place of each value of a key from 0 to 1: numbers by size, others in their order. null has no place.
export function placesOf(values) {
  const there = values.filter((value) => value !== null);
  const numbers = there.length > 0 && there.every(isNumber);
  const distinct = [...new Set(there)];
  if (!numbers) {
    distinct.sort((a, b) => String(a) < String(b) ? -1 : 1);
    return {distinct, numbers, place: (value) => value === null ? null
      : distinct.length < 2 ? 0.5 : distinct.indexOf(value) / (distinct.length - 1)};
  }
  distinct.sort((a, b) => a - b);
  const [least] = distinct;
  const most = distinct[distinct.length - 1];
  const log = least > 0 && most / least >= WIDE;
  const of = (value) => log ? Math.log(value) : value;
  return {distinct, numbers, place: (value) => value === null ? null
    : least === most ? 0.5 : (of(value) - of(least)) / (of(most) - of(least))};
}

function shade(share) {
  const stops = SHADES[matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'];
  const at = Math.min(stops.length - 2, Math.floor(share * (stops.length - 1)));
  const rest = share * (stops.length - 1) - at;
  return `rgb(${stops[at].map((low, i) => Math.round(low + (stops[at + 1][i] - low) * rest)).join(' ')})`;
}

// Returns the colours of a key: of a number by its rank among all, of a text one of the curves' colours.
export function coloursOf(values) {
  const {distinct, numbers} = placesOf(values);
  const of = (value) => {
    const at = distinct.indexOf(value);
    if (at < 0) return colour('quiet');
    return numbers ? shade(distinct.length < 2 ? 0.5 : at / (distinct.length - 1)) : colour(`curve-${1 + at % HUES}`);
  };
  return {distinct, of};
}

// Formats a value of a key as people write it.
export function shown(value) {
  return value === null ? '–' : isNumber(value) ? (Number.isInteger(value) ? text.count(value) : text.compact(value)) : String(value);
}

// most: characters of its title.
function axis(x, title, ticks, y, most) {
  const group = node('g', {class: 'axis'});
  group.append(node('line', {x1: x, x2: x, y1: y(0), y2: y(1)}));
  const name = node('text', {x, y: 16, 'text-anchor': 'middle', class: 'name'});
  name.textContent = title.length > most ? `…${title.slice(1 - most)}` : title;
  name.append(node('title', {}, title));
  group.append(name);
  for (const {place, label} of ticks) {
    const tick = node('text', {x: x - 6, y: y(place) + 4, 'text-anchor': 'end'});
    tick.textContent = label;
    group.append(tick);
  }
  return group;
}

function ticksOf({distinct, place}) {
  const kept = distinct.length <= TICKS_MOST ? distinct : [distinct[0], distinct[distinct.length - 1]];
  return kept.map((value) => ({place: place(value), label: shown(value).slice(0, 12)}));
}

// Draws into `box`. keys: titles of the axes before the last; metric: title of the last; runs: [{keys: [values], best:
// number or null, ink, href, words, first: whether it is the best}].
export function drawParallel(box, keys, metric, runs) {
  const width = Math.max(box.clientWidth, 2 * EDGE.side + AXIS_LEAST * keys.length);
  const y = (place) => HEIGHT - EDGE.bottom - place * (HEIGHT - EDGE.top - EDGE.bottom);
  const step = (width - EDGE.side * 2 - 20) / Math.max(1, keys.length);
  const most = Math.max(8, Math.floor(step / 7.5));
  const x = (at) => EDGE.side + 20 + at * step;
  const places = [...keys.map((_, at) => placesOf(runs.map((run) => run.keys[at]))), placesOf(runs.map((run) => run.best))];
  const svg = node('svg', {class: 'parallel', width, height: HEIGHT, role: 'img',
                           'aria-label': `${runs.length} runs by ${keys.join(', ')} and ${metric}; the table below has their values`});
  const lines = node('g');
  for (const run of [...runs].reverse()) { // the best is drawn last
    const at = [...run.keys, run.best].map((value, i) => [x(i), places[i].place(value)]);
    const there = at.filter(([, place]) => place !== null);
    const end = at[at.length - 1];
    const link = node('a', {href: run.href, tabindex: -1, class: run.first ? 'first' : ''},
      node('title', {}, run.words),
      node('path', {d: there.map(([px, place], i) => `${i === 0 ? 'M' : 'L'}${px.toFixed(1)} ${y(place).toFixed(1)}`).join('')}));
    link.style.setProperty('--ink', run.ink);
    if (end[1] !== null) link.append(node('circle', {cx: end[0], cy: y(end[1]), r: run.first ? 5 : 3}));
    lines.append(link);
  }
  svg.append(lines, ...keys.map((key, at) => axis(x(at), key, ticksOf(places[at]), y, most)));
  const last = places[places.length - 1];
  svg.append(axis(x(keys.length), metric, ticksOf(last), y, most));
  box.replaceChildren(svg);
}
