// list: all runs, newest first.
import {el, pill, progressBar, setText} from '/dom.js';
import {ACTIVE_MS, QUIET_MS, getJson, isActive, poll} from '/live.js';
import * as text from '/text.js';

const MOST = 200; // older ones have their pages, and 'dtrun list'

function row(run, now) {
  const cell = (name, title, ...content) =>
    el('td', {class: name, 'data-title': title}, ...content);
  const link = el('a', {href: `/runs/${encodeURIComponent(run.id)}`, class: 'run-link'},
    el('strong', {text: run.name}), el('code', {text: run.id}));
  const steps = text.count(run.step)
    + (run.steps_total > 0 ? ` / ${text.count(run.steps_total)}` : '');
  return el('tr', {},
    cell('who', 'Run', link),
    cell('what', 'State', pill(run.state)),
    cell('progress', 'Progress', el('span', {class: 'steps', text: steps}),
      progressBar(run.step, run.steps_total, run.state)),
    cell('number', 'Loss', text.loss(run.loss)),
    cell('number', 'Validation', text.loss(run.valid_loss)),
    cell('number', 'Tokens/s', text.count(run.tokens_per_second)),
    cell('number time', 'Started', el('span', {
      title: text.dateTime(run.started_ms ?? run.created_ms),
      text: text.ago(run.started_ms ?? run.created_ms, now)})),
    cell('number', 'Took', text.duration(run.elapsed_seconds)));
}

export function showList() {
  const table = document.getElementById('runs');
  const body = table.querySelector('tbody');
  const shown = new Map(); // id -> {key, node}: rows that did not change stay in place

  poll(async () => {
    const {runs, time_ms: now} = await getJson(`/api/v1/runs?limit=${MOST}`);
    const active = runs.filter((run) => isActive(run.state)).length;
    table.hidden = runs.length === 0;
    document.getElementById('empty').hidden = runs.length > 0;
    setText(document.getElementById('summary'), runs.length === 0 ? ''
      : (runs.length < MOST ? `${runs.length} in all` : `the newest ${MOST}`)
        + (active > 0 ? `, ${active} active` : ''));
    const rows = runs.map((run) => {
      const key = JSON.stringify(run) + text.ago(run.started_ms ?? run.created_ms, now);
      const old = shown.get(run.id);
      if (old && old.key === key) return old.node;
      const node = row(run, now);
      if (old) {
        const focused = old.node.contains(document.activeElement);
        old.node.replaceWith(node);
        if (focused) node.querySelector('a').focus();
      }
      shown.set(run.id, {key, node});
      return node;
    });
    rows.forEach((node, at) => {
      if (body.children[at] !== node) body.insertBefore(node, body.children[at] ?? null);
    });
    while (body.children.length > rows.length) body.lastElementChild.remove();
    return active > 0 ? ACTIVE_MS : QUIET_MS;
  });
}
