// why: the box about a step's time, on the page of a run: its parts as a bar, and what slows it down, with evidence.
import {el, setText, table} from '/dom.js';
import {QUIET_MS, getJson, poll} from '/live.js';
import * as text from '/text.js';

const LEAST_SHARE = 0.005; // a thinner piece of the bar cannot be seen

function bar(parts) {
  const shown = parts.filter((part) => part.share >= LEAST_SHARE);
  const words = shown.map((part) => `${part.part} ${(100 * part.share).toFixed(1)} %`).join(', ');
  const pieces = shown.map((part) => {
    const piece = el('span', {class: `why-${part.part.split(' ')[0]}`, title: part.part});
    piece.style.flexGrow = part.share;
    return piece;
  });
  return el('div', {class: 'why-bar', role: 'img', 'aria-label': `A step's time: ${words}`}, ...pieces);
}

const columns = [
  {title: 'Part of a step', class: 'words', cell: (part) => el('span', {},
    el('span', {class: `why-key why-${part.part.split(' ')[0]}`}), part.part)},
  {title: 'Time', class: 'number', cell: (part) => text.shortTime(part.seconds)},
  {title: 'Share', class: 'number', cell: (part) => `${(100 * part.share).toFixed(1)} %`},
  {title: 'At least', class: 'number', cell: (part) => (part.least_seconds === null ? '–' : text.shortTime(part.least_seconds))},
];

function findings(why) {
  if (why.findings.length === 0) return [el('p', {class: 'quiet', text: 'No cause of slowness shows in the facts.'})];
  return why.findings.map((finding) => el('div', {class: 'why-finding'},
    el('p', {text: finding.text}), el('p', {class: 'quiet', text: `Evidence: ${finding.evidence}`})));
}

export function showWhy() {
  const section = document.getElementById('why');
  const id = decodeURIComponent(location.pathname.split('/')[2]);
  let shown = 0;

  poll(async () => {
    const answer = await getJson(`/api/v1/runs/${encodeURIComponent(id)}/why`);
    const why = answer.why;
    section.hidden = why === null;
    if (why === null) return QUIET_MS;
    if (why.time_ms === shown) return QUIET_MS;
    shown = why.time_ms;
    setText(section.querySelector('.card-head .quiet'), why.step_seconds === null ? ''
      : `${text.shortTime(why.step_seconds)} a step at ${text.dateTime(why.time_ms)}`);
    const parts = why.parts === null ? [] : [bar(why.parts), table(columns, why.parts)];
    document.getElementById('why-body').replaceChildren(...findings(why), ...parts);
    return QUIET_MS;
  });
}
