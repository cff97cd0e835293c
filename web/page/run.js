// run: one run, live. What comes is merged into what is shown; cursors say where to go on.
import {Curves} from '/charts.js';
import {el, pill, progressBar, setText} from '/dom.js';
import {ACTIVE_MS, QUIET_MS, getJson, isActive, poll} from '/live.js';
import {Checkpoints, Output, Recipe, showAttempts, showChanges, showRanks} from '/panels.js';
import * as text from '/text.js';

const POINTS_MOST = 2000; // a curve that has grown far past it is asked for anew, thinned

const byId = (id) => document.getElementById(id);

function showHead(run, nodes, now) {
  const ranks = nodes.reduce((sum, node) => sum + node.ranks.length, 0);
  const about = [run.id, `attempt ${run.attempt}`];
  if (ranks > 0) about.push(`${ranks} rank${ranks > 1 ? 's' : ''} on ${nodes.length} node`
    + `${nodes.length > 1 ? 's' : ''}`);
  about.push(`started ${text.ago(run.started_ms ?? run.created_ms, now)}`);
  document.title = `${run.name} · dtrun`;
  setText(byId('name'), run.name);
  setText(byId('crumb'), run.id);
  setText(byId('about'), about.join(' · '));
  byId('about').title = text.dateTime(run.started_ms ?? run.created_ms);
  if (byId('state').textContent !== run.state) byId('state').replaceChildren(pill(run.state));
  byId('reason').hidden = run.reason === '';
  byId('reason').classList.toggle('calm', run.state !== 'failed');
  setText(byId('reason'), run.reason);
}

function showProgress(run) {
  const share = run.steps_total > 0 ? Math.floor(100 * run.step / run.steps_total) : 0;
  setText(byId('steps'), `Step ${text.count(run.step)}` // a run by epochs learns its steps
    + (run.steps_total > 0 ? ` of ${text.count(run.steps_total)} · ${share} %` : ''));
  setText(byId('eta'), run.eta_seconds !== null ? `about ${text.duration(run.eta_seconds)} left`
    : isActive(run.state) ? '' : `took ${text.duration(run.elapsed_seconds)}`);
  byId('bar').replaceChildren(progressBar(run.step, run.steps_total, run.state));
}

function showFigures(run, newest, best) {
  const figures = [
    ['Loss', text.loss(run.loss)],
    ['Validation loss', text.loss(run.valid_loss)],
    ['Best validation', text.loss(best)],
    ['Tokens/s', text.count(run.mean_tokens_per_second)],
    ['Step time', text.duration(newest.step_seconds)],
    ['Gradient norm', text.compact(newest.gradient_norm)],
    ['Learning rate', text.compact(newest.learning_rate)],
    ['Elapsed', text.duration(run.elapsed_seconds)],
  ];
  const list = byId('figures');
  if (list.children.length === 0)
    list.append(...figures.map(([name]) =>
      el('div', {}, el('dt', {text: name}), el('dd', {text: ''}))));
  figures.forEach(([, value], at) => setText(list.children[at].lastElementChild, value));
}

// The metrics of a run: asked for from the newest step on, begun anew with a new attempt.
class History {
  constructor(path, charts) {
    this.path = path;
    this.charts = charts;
    this.reset(0);
  }

  reset(attempt) {
    this.attempt = attempt;
    this.last = {}; // by name: the step of its newest point
    this.points = 0;
    this.newest = {};
    this.best = null;
    for (const chart of this.charts) chart.clear();
  }

  // The points of a column that are not here yet.
  fresh(name, column) {
    const from = column.step.findIndex((step) => step > (this.last[name] ?? -1));
    if (from < 0) return null;
    return {step: column.step.slice(from), value: column.value.slice(from)};
  }

  async update(attempt) {
    if (attempt !== this.attempt || this.points > 4 * POINTS_MOST) this.reset(attempt);
    // the newest step once more: its validation loss comes later than its loss
    const after = Math.max(-1, ...Object.values(this.last).map((step) => step - 1));
    const {series} = await getJson(`${this.path}/metrics?after=${after}&most=${POINTS_MOST}`);
    const columns = {};
    for (const [name, all] of Object.entries(series)) {
      const column = this.fresh(name, all);
      if (column === null) continue;
      columns[name] = column;
      this.last[name] = column.step[column.step.length - 1];
      this.newest[name] = column.value[column.value.length - 1];
      if (name === 'loss') this.points += column.step.length;
      if (name !== 'valid_loss') continue;
      for (const value of column.value)
        if (value !== null && (this.best === null || value < this.best)) this.best = value;
    }
    if (Object.keys(columns).length === 0) return;
    for (const chart of this.charts) {
      chart.add(columns);
      chart.draw();
    }
  }
}

export function showRun() {
  const id = decodeURIComponent(location.pathname.split('/')[2]);
  const path = `/api/v1/runs/${encodeURIComponent(id)}`;
  const losses = new Curves(byId('loss-chart'), [
    {name: 'loss', title: 'Loss', colour: 'curve-1'},
    {name: 'valid_loss', title: 'Validation loss', colour: 'curve-2', dots: true},
  ], text.compact, text.count);
  const history = new History(path, [
    losses,
    new Curves(byId('rate-chart'),
      [{name: 'learning_rate', title: 'Learning rate', colour: 'curve-3'}], text.compact,
      text.count),
    new Curves(byId('speed-chart'),
      [{name: 'tokens_per_second', title: 'Tokens/s', colour: 'curve-4', fromZero: true}],
      text.compact, text.count),
  ]);
  const checkpoints = new Checkpoints(byId('checkpoints'), path);
  const recipe = new Recipe(byId('recipe-tabs'), byId('recipe'), byId('recipe-path'), path);
  const output = new Output(byId('output-tabs'), byId('output'), path);

  byId('log-scale').addEventListener('click', (event) => {
    const on = event.currentTarget.getAttribute('aria-pressed') !== 'true';
    event.currentTarget.setAttribute('aria-pressed', on ? 'true' : 'false');
    losses.setLogarithmic(on);
  });

  poll(async () => {
    const view = await getJson(path);
    showHead(view.run, view.nodes, view.time_ms);
    showChanges(byId('changes'), view.attempts);
    showProgress(view.run);
    showRanks(byId('ranks'), view.nodes);
    showAttempts(byId('attempts-card'), byId('attempts'), view.attempts);
    await history.update(view.run.attempt);
    showFigures(view.run, history.newest, history.best);
    output.setRanks(view.nodes.flatMap((node) => node.ranks.map((rank) => rank.rank)));
    await Promise.all([output.update(), checkpoints.update(), recipe.update(view.run.attempt)]);
    return isActive(view.run.state) ? ACTIVE_MS : QUIET_MS;
  });
}
