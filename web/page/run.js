// run: shows one run while it trains. News are merged into what is shown; cursors record how far it was read.
import {Actions} from '/actions.js';
import {chartTools, el, labelsOf, pill, pillOf, progressBar, setText, shownState} from '/dom.js';
import {ACTIVE_MS, Live, QUIET_MS, getJson, isActive, keepAddress, poll} from '/live.js';
import {Evaluations} from '/evaluations.js';
import {samplesOf} from '/samples.js';
import {confusionOf} from '/confusion.js';
import {Checkpoints, Output, Recipe, showAttempts, showChanges, showRanks} from '/panels.js';
import {marksOf} from '/marks.js';
import {Note} from '/note.js';
import {Series} from '/series.js';
import * as text from '/text.js';
import {View, bindControls, nameItems} from '/view.js';
import {RunCharts} from '/run_charts.js';
import {Files} from '/files.js';
import {SystemCharts} from '/system_charts.js';

const DRAW_MS = 250;

const byId = (id) => document.getElementById(id);

function showHead(run, nodes, now) {
  const ranks = nodes.reduce((sum, node) => sum + node.ranks.length, 0);
  const about = [...run.task === 'train' ? [] : [run.task], run.id, `attempt ${run.attempt}`];
  if (ranks > 0) about.push(`${ranks} rank${ranks > 1 ? 's' : ''} on ${nodes.length} node`
    + `${nodes.length > 1 ? 's' : ''}`);
  if (run.parent !== '') about.push(`forked from ${run.parent} at step ${text.count(run.parent_step)}`);
  about.push(`started ${text.ago(run.started_ms ?? run.created_ms, now)}`);
  document.title = `${run.name} · dtrun`;
  setText(byId('name'), run.name);
  setText(byId('crumb'), run.id);
  setText(byId('about'), about.join(' · '));
  byId('about').title = text.dateTime(run.started_ms ?? run.created_ms);
  const labels = labelsOf(run);
  byId('labels').hidden = labels.length === 0;
  if (byId('labels').textContent !== labels.map((label) => label.textContent).join('')) byId('labels').replaceChildren(...labels);
  const state = pillOf(run);
  if (byId('state').textContent !== state.textContent) byId('state').replaceChildren(state);
}

// Shows why the run ended, the nodes it waits for, and whether its loss is still a number.
function showReason(run, nodes, series) {
  const diverged = !run.diverged ? [] : [`Diverged: the loss is not a number${sinceStep(series)}.`];
  const ended = run.reason !== '' ? [run.reason]
    : nodes.filter((node) => isActive(run.state) && node.state.startsWith('not reachable')).map((node) => `${node.host}: ${node.state}`);
  const reason = [...diverged, ...ended].join('\n');
  byId('reason').hidden = reason === '';
  byId('reason').classList.toggle('calm', run.state !== 'failed' && !run.diverged);
  setText(byId('reason'), reason);
}

// Returns " since step 1,010" for the first of the newest points that are all not numbers.
function sinceStep(series) {
  const points = series.whole.get('loss') ?? series.whole.get('valid_loss') ?? [];
  const good = points.findLastIndex((point) => point.count > point.bad);
  const first = points[good]?.bad > 0 ? points[good] : points[good + 1];
  return first ? ` since step ${text.count(first.first)}${points[good]?.bad > 0 ? ` to ${text.count(first.step)}` : ''}` : '';
}

/* Whether a step of the run is a line: of the tasks generate and score. */
const hasLines = (run) => ['generate', 'score', 'evaluate'].includes(run.task);

function showProgress(run) {
  const share = run.steps_total > 0 ? Math.floor(100 * run.step / run.steps_total) : 0;
  const step = hasLines(run) ? 'Line' : 'Step';
  setText(byId('steps'), `${step} ${text.count(run.step)}` // a run by epochs learns its steps
    + (run.steps_total > 0 ? ` of ${text.count(run.steps_total)} · ${share} %` : ''));
  setText(byId('eta'), run.eta_seconds !== null ? `about ${text.duration(run.eta_seconds)} left`
    : run.activity.startsWith('waiting for') ? run.activity : isActive(run.state) ? '' : `took ${text.duration(run.elapsed_seconds)}`);
  byId('bar').replaceChildren(progressBar(run.step, run.steps_total, shownState(run)));
}

const FIGURES = ['loss', 'valid_loss', 'tokens_per_second', 'step_seconds', 'gradient_norm', 'learning_rate', 'lines_per_second'];

function namesOf({run, metrics}) {
  return hasLines(run) ? [...new Set(['lines_per_second', ...metrics])] : metrics;
}

function figuresOf(run, series) {
  const speed = [`${text.speedUnit(run.item)} (${isActive(run.state) ? 'last' : 'mean'})`, text.count(run.mean_tokens_per_second)];
  const elapsed = ['Elapsed', text.duration(run.elapsed_seconds)];
  if (hasLines(run))
    return [
      ['Lines/s (last)', text.compact(series.newest('lines_per_second'))],
      ...run.mean_tokens_per_second === null ? [] : [speed],
      ...run.task === 'score' ? [['Loss', text.lossOf(run)]] : [],
      elapsed,
    ];
  return [
    ['Loss', text.lossOf(run)],
    ['Validation loss', text.loss(run.valid_loss)],
    ['Best validation', text.loss(series.lowest('valid_loss'))],
    speed,
    ['Step time', text.shortTime(series.newest('step_seconds'))],
    ['Gradient norm', text.compact(series.newest('gradient_norm'))],
    ['Learning rate', text.compact(series.newest('learning_rate'))],
    elapsed,
  ];
}

function showFigures(run, series) {
  const figures = figuresOf(run, series);
  const list = byId('figures');
  if (list.children.length !== figures.length)
    list.replaceChildren(...figures.map(() => el('div', {}, el('dt', {text: ''}), el('dd', {text: ''}))));
  figures.forEach(([name, value], at) => {
    setText(list.children[at].firstElementChild, name);
    setText(list.children[at].lastElementChild, value);
  });
}

export function showRun() {
  const id = document.body.dataset.runs ?? decodeURIComponent(location.pathname.split('/')[2]);
  const path = `/api/v1/runs/${encodeURIComponent(id)}`;
  const view = new View();
  const series = new Series(path);
  const charts = new RunCharts(byId('charts'), view, {tools: chartTools()});
  const note = new Note(byId('note-card'), path);
  const actions = new Actions(byId('actions'), byId('done'), note, () => again(true));
  const system = new SystemCharts(byId('system'), path, keepAddress && ((name) => keepAddress({runs: id}, name, view)));
  const files = new Files(byId('files-card'), byId('files'), path, keepAddress !== null);
  const checkpoints = new Checkpoints(byId('checkpoints'), path);
  const evaluations = new Evaluations(byId('evaluations-card'), byId('evaluations'), path);
  const atSteps = {samples: samplesOf(path), confusion: confusionOf(path)}; // by the kind of their events
  const recipe = new Recipe(byId('recipe-tabs'), byId('recipe'), byId('recipe-path'), path);
  const output = new Output(byId('output-tabs'), byId('output'), path, byId('find'),
                            (rank) => live.follow(rank));
  let marks = [];
  let item = 'token'; // 'token' or 'row': what the run reads
  let begun = 0; // start of the run in ms, where the time axis begins
  let drawing = 0; // a timer: news are drawn at this interval

  charts.setSources([{source: series, title: '', begun: () => begun, item: () => item}], () => marks,
                    keepAddress && ((name) => keepAddress({runs: id}, name, view)));
  byId('keep').hidden = !keepAddress;
  if (keepAddress) byId('keep').href = keepAddress({runs: id}, null, {from: null, to: null});
  bindControls(view);
  view.listen(async (changes) => {
    if ('from' in changes || 'to' in changes) await series.readZoom(view);
    charts.draw();
  }, () => {});

  const showView = (shown) => {
    byId('loading').hidden = true;
    showHead(shown.run, shown.nodes, shown.time_ms);
    note.show(shown.run);
    actions.show(shown.run);
    showChanges(byId('changes'), shown.attempts);
    showProgress(shown.run);
    showRanks(byId('ranks'), shown.nodes, shown.run);
    showAttempts(byId('attempts-card'), byId('attempts'), shown.attempts);
    item = shown.run.item;
    nameItems([item]);
    const trains = shown.run.task === 'train';
    setText(document.querySelector('#axis option[value=step]'), hasLines(shown.run) ? 'line' : 'step');
    const card = byId('checkpoints').closest('section');
    card.hidden = !trains;
    card.parentElement.classList.toggle('pair', trains);
    begun = shown.attempts[0].started_ms ?? shown.run.created_ms;
    output.setRanks(shown.nodes.flatMap((node) => node.ranks.map((rank) => rank.rank)), shown.run);
  };
  const showCurves = (shown, fresh) => {
    const old = JSON.stringify(marks);
    marks = marksOf(shown.run, shown.attempts, checkpoints.present);
    charts.setNames(namesOf(shown));
    if (fresh || old !== JSON.stringify(marks)) charts.draw();
    showFigures(shown.run, series);
    showReason(shown.run, shown.nodes, series);
  };

  let newest = null; // the run as last shown
  let removed = false;
  // Keeps what is shown, and stops all requests.
  const showRemoved = () => {
    live.end();
    removed = true;
    actions.hide();
    byId('state').replaceChildren(pill('removed'));
    byId('removed').hidden = false;
    byId('eta').textContent = '';
    byId('keep').hidden = true;
    for (const link of document.querySelectorAll('#charts .keep')) link.hidden = true;
    return null;
  };
  const again = poll(async () => {
    if (removed) return null;
    let shown;
    try {
      shown = await getJson(path);
    } catch (error) {
      if (error.gone) return showRemoved();
      throw error;
    }
    if (newest && shown.run.id !== newest.run.id) return showRemoved(); // the name now belongs to another run
    newest = shown;
    showView(shown);
    const end = series.lastStep;
    charts.setNames(namesOf(shown));
    await series.want([...FIGURES.filter((name) => shown.metrics.includes(name)), ...charts.wantedNow()]);
    const fresh = await series.update(shown.run.attempt, shown.metrics.length);
    if (view.zoomed && (series.zoom === null || (fresh && (view.to ?? end) >= end)))
      await series.readZoom(view);
    await checkpoints.update(shown.run);
    showCurves(shown, fresh);
    await Promise.all([output.update(), evaluations.update(), ...Object.values(atSteps).map((one) => one.update()), recipe.update(shown.run.attempt),
                       system.update(shown, begun), files.update(shown.run)]);
    live.follow(output.rank);
    return live.wait ?? (isActive(shown.run.state) ? ACTIVE_MS : QUIET_MS);
  });

  const onNews = (news) => {
    if (!newest || removed) return;
    newest = news.view ?? newest;
    const known = !news.attempt || series.add(news.attempt, news.series ?? {}, view);
    if (!known || newest.run.attempt !== series.attempt) {
      again(true); // a new attempt: the server knows which points it undid
      return;
    }
    showView(newest);
    output.add(news);
    system.add(news);
    files.update(newest.run).catch(() => {}); // tried again with the next news
    if ((news.events ?? []).some((event) => event.event === 'checkpoint'))
      checkpoints.update(newest.run).then(() => showCurves(newest, false)).catch(() => {});
    if ((news.events ?? []).some((event) => event.event === 'evaluation')) evaluations.update().catch(() => {});
    for (const [kind, one] of Object.entries(atSteps))
      if ((news.events ?? []).some((event) => event.event === kind)) one.update().catch(() => {});
    if (drawing === 0)
      drawing = setTimeout(() => {
        drawing = 0;
        showCurves(newest, true);
      }, DRAW_MS);
  };
  const live = new Live((rank) => `${path}/live${rank === null ? '' : `?rank=${rank}`}`, () => again(true), onNews);
}
