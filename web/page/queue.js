// queue: shows what waits for machines, in its order and with the reason, above the list of runs.
import {el, pill, setText, table} from '/dom.js';
import {QUIET_MS, getJson, poll} from '/live.js';
import * as text from '/text.js';

const columns = [
  {title: '#', class: 'number', cell: (item) => item.position === null ? '–' : text.count(item.position)},
  {title: 'Run', class: 'words', cell: (item) => el('a', {href: `/runs/${encodeURIComponent(item.run)}`, class: 'run-link'},
    el('strong', {text: item.name}), el('code', {text: item.run}))},
  {title: 'State', class: 'wide', cell: (item) => pill(item.state)},
  {title: 'Priority', class: 'number wide', cell: (item) => text.count(item.priority)},
  {title: 'Starts', class: 'number', cell: startOf},
  {title: 'Slots', class: 'words wide', cell: (item) => item.needs},
  {title: 'Reason', class: 'words', cell: (item) => item.reason},
];

function startOf(item) {
  if (item.expected === null) return '–';
  const seconds = (Date.parse(item.expected) - Date.now()) / 1000;
  return seconds <= 1 ? 'now' : `in ${text.duration(seconds)}`;
}

const ROWS_MOST = 20; // the next ones are known by their number

function summaryOf(items) {
  const waiting = items.filter((item) => item.position !== null).length;
  const hidden = items.length - ROWS_MOST;
  return `${text.count(waiting)} waiting` + (hidden > 0 ? `, the first are shown: dtrun queue lists all` : '');
}

export function showQueue() {
  const section = document.getElementById('queue');
  let shown = '';

  poll(async () => {
    const items = (await getJson('/api/v1/queue')).runs;
    section.hidden = items.length === 0;
    const now = JSON.stringify(items.map((item) => [item, startOf(item)]));
    if (now === shown) return QUIET_MS; // a new table would lose the reader's selection
    shown = now;
    setText(section.querySelector('.quiet'), summaryOf(items));
    const old = section.querySelector('table');
    const made = table(columns, items.slice(0, ROWS_MOST));
    if (old) old.replaceWith(made);
    else section.append(made);
    return QUIET_MS;
  });
}
