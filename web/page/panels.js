// panels: fills the panels below the charts of a run.
import {Tabs, el, pill, setText, table} from '/dom.js';
import {getJson, isActive} from '/live.js';
import * as text from '/text.js';

const LINES = 400;
const LINES_SEARCHED = 5000;

const made = new WeakMap(); // node -> JSON of the data that its content was made from

// Replaces the content only if the data that it is made from have changed.
function showWhenChanged(node, data, make) {
  const key = JSON.stringify(data);
  if (made.get(node) === key) return;
  made.set(node, key);
  node.replaceChildren(make());
}

function nothing(words) {
  return el('p', {class: 'quiet', text: words});
}

// Returns true for an imported run, which has points only: a recipe that dtrun launched has a hash.
export function isImported(run) {
  return run.recipe_hash === '';
}

// Returns the text of an empty panel; `yet` is used while the run may still fill it.
function emptyWords(run, imported, ended, yet) {
  return isImported(run) ? imported : isActive(run.state) ? yet : ended;
}

export function showRanks(node, nodes, run) {
  const items = nodes.flatMap((n) => n.ranks.map((rank) => ({...rank, host: n.host})));
  const ended = (r) => r.exit_signal !== null ? `signal ${r.exit_signal}`
    : r.exit_code !== null ? `code ${r.exit_code}` : '–';
  const empty = emptyWords(run, 'None: this run was imported.', 'No rank was started.', 'Not started yet.');
  showWhenChanged(node, [items, empty], () => items.length === 0 ? nothing(empty) : table([
    {title: 'Rank', cell: (r) => String(r.rank)},
    {title: 'Node', cell: (r) => r.host},
    {title: 'Device', cell: (r) => r.device},
    {title: 'State', cell: (r) => r.activity},
    {title: 'Exit', cell: ended},
    {title: 'Process', class: 'number wide', cell: (r) => r.pid === null ? '–' : String(r.pid)},
  ], items));
}

// Lists the changes by --set, which the text of the recipe file does not show.
export function showChanges(node, attempts) {
  const changes = attempts.flatMap((a) => a.changes.map((c) => ({...c, attempt: a.attempt})));
  const value = (v) => v === null ? 'not given' : v === '' ? 'empty'
    : typeof v === 'string' ? v : JSON.stringify(v);
  node.hidden = changes.length === 0;
  showWhenChanged(node, changes, () => el('span', {}, 'Changed by --set: ',
    ...changes.flatMap((c, at) => [at > 0 ? ', ' : '', el('b', {text: c.key}),
      ` ${value(c.old)} → ${value(c.new)}`, c.attempt > 1 ? ` (attempt ${c.attempt})` : ''])));
}

export function showAttempts(card, node, attempts) {
  card.hidden = attempts.length < 2;
  showWhenChanged(node, attempts, () => table([
    {title: 'Attempt', cell: (a) => String(a.attempt)},
    {title: 'State', cell: (a) => pill(a.state)},
    {title: 'From step', class: 'number', cell: (a) => text.count(a.start_step)},
    {title: 'Started', cell: (a) => text.dateTime(a.started_ms)},
    {title: 'Took', class: 'number', cell: (a) => text.duration(a.elapsed_seconds)},
    {title: 'Reason', class: 'words', cell: (a) => a.reason},
  ], attempts));
}

export class Checkpoints {
  constructor(node, path) {
    this.node = node;
    this.path = `${path}/checkpoints`;
    this.present = [];
  }

  async update(run) {
    const {checkpoints} = await getJson(this.path);
    const present = checkpoints.filter((c) => c.present);
    this.present = present;
    const scores = present.map((c) => c.score).filter((value) => value !== null);
    const best = Math.min(...scores);
    const validLoss = (c) => scores.length > 1 && c.score === best
      ? el('span', {}, el('span', {class: 'tag', text: 'best'}), text.loss(c.valid_loss))
      : text.loss(c.valid_loss);
    const empty = emptyWords(run, 'None: this run was imported.', 'None on disk.', 'None on disk yet.');
    showWhenChanged(this.node, [present, empty], () => present.length === 0
      ? nothing(empty) : table([
        {title: 'Step', class: 'number', cell: (c) => text.count(c.step)},
        {title: 'Validation', class: 'number', cell: validLoss},
        {title: 'Size', class: 'number', cell: (c) => text.bytes(c.bytes)},
        {title: 'Saved in', class: 'number wide', cell: (c) => text.duration(c.seconds)},
        {title: 'At', class: 'number', cell: (c) => el('span', {title: text.dateTime(c.time_ms),
                                              text: text.clock(c.time_ms)})},
      ], present));
  }
}

export class Recipe {
  constructor(list, node, pathNode, path) {
    this.node = node;
    this.pathNode = pathNode;
    this.path = `${path}/recipe`;
    this.attempt = 0;
    this.texts = {written: '', resolved: ''};
    this.tabs = new Tabs(list, node, () => this.show());
  }

  show() {
    setText(this.node, this.texts[this.tabs.selected] ?? '');
  }

  async update(attempt) {
    if (attempt === this.attempt) return;
    const recipe = await getJson(this.path);
    this.attempt = attempt;
    const resolved = recipe.resolved ?? {};
    this.texts = {written: recipe.text, resolved: JSON.stringify(resolved, null, 2), none: 'This run was imported without a recipe.'};
    setText(this.pathNode, recipe.path);
    const tabs = [];
    if (recipe.text !== '') tabs.push({key: 'written', title: 'As written'});
    if (Object.keys(resolved).length > 0) tabs.push({key: 'resolved', title: recipe.text === '' ? 'Parameters' : 'Resolved'});
    this.tabs.set(tabs.length > 0 ? tabs : [{key: 'none', title: 'None'}]);
    this.show();
  }
}

// Returns the details of an event, shown after its name.
function eventText(event) {
  const detail = event.detail ?? {};
  const words = {
    started: () => `process ${detail.pid} on ${detail.device}`,
    ready: () => `device ${detail.device}, threads ${detail.threads}`,
    checkpoint: () => `step ${text.count(detail.step)}, ${text.bytes(detail.bytes)}`,
    checkpoint_failed: () => `step ${text.count(detail.step)}: ${detail.message}`,
    samples: () => `step ${text.count(detail.step)}: texts for the prompts`,
    confusion: () => `step ${text.count(detail.step)}: counts of classes`,
    evaluation: () => `step ${text.count(detail.step)}: ${Object.entries(detail.tasks ?? {}).flatMap(([task, result]) =>
      Object.entries(result.metrics).slice(0, 1).map(([name, {value}]) => `${task} ${name} ${text.compact(value)}`)).join(', ')}`,
    failed: () => detail.message,
    finished: () => detail.loss === undefined ? '' // it did not train
      : `step ${text.count(detail.step)}, loss ${text.loss(detail.loss)}`,
    exited: () => detail.signal ? `by signal ${detail.signal_name ?? detail.signal}`
      : `with code ${detail.code}`,
    noted: () => detail.note === '' ? 'removed the note' : detail.note.split('\n', 1)[0],
    renamed: () => `${detail.was} → ${detail.name}`,
    tagged: () => `${detail.was === '' ? 'none' : detail.was} → ${detail.tags === '' ? 'none' : detail.tags}`,
    restart: () => `attempt ${detail.attempt} from step ${text.count(detail.step)}: ${detail.reason}`,
    stopping: () => `${detail.grace_seconds} s of grace` + ({
      stopped: ' (set in the recipe)', peer_failed: ' for the others of a rank that failed',
      launcher_lost: ': the launch machine does not respond', agent_stopped: ': the agent was stopped',
    }[detail.reason] ?? ''),
    released: () => (detail.left ?? []).length === 0 ? 'no process is left'
      : `processes left: ${detail.left.length}`,
    memory: () => Object.entries(detail).filter(([name]) => name.endsWith('_bytes'))
      .map(([name, value]) => `${name.slice(0, -6)} ${text.bytes(value)}`).join(', '),
  }[event.event];
  return words ? String(words() ?? '') : String(detail.message ?? '');
}

// Tabs for the events of the run and the tail of each rank's log.
export class Output {
  constructor(list, node, path, search, onRank) {
    this.node = node;
    this.search = search;
    search.addEventListener('input', () => {
      this.toEnd = true;
      this.update().catch(() => {});
    });
    this.path = path;
    this.events = [];
    this.next = 0;
    this.lines = []; // of the selected rank
    this.logEnd = 0; // bytes of its log that were read
    this.toEnd = true;
    this.tabs = new Tabs(list, node, () => {
      this.toEnd = true;
      this.update().catch(() => {}); // the next poll asks again, and reports the error
      onRank(this.rank);
    });
  }

  // Returns the rank whose log is shown; null: none.
  get rank() {
    return this.tabs.selected?.startsWith('rank-') ? Number(this.tabs.selected.slice('rank-'.length)) : null;
  }

  setRanks(ranks, run) {
    this.ended = !isActive(run.state);
    this.tabs.set([{key: 'events', title: 'Events'},
                   ...ranks.map((rank) => ({key: `rank-${rank}`, title: `Rank ${rank}`}))]);
  }

  async update() {
    const key = this.tabs.selected;
    if (key === null) return;
    const lines = key === 'events' ? await this.eventLines() : await this.logLines(key);
    if (key === this.tabs.selected) this.show(key, lines); // unless another tab was selected meanwhile
  }

  // Adds events and log lines that came with news.
  add({events, log}) {
    const fresh = (events ?? []).filter((event) => event.id > this.next);
    if (fresh.length > 0) {
      this.events.push(...fresh);
      this.next = fresh[fresh.length - 1].id;
    }
    const wanted = log && log.rank === this.rank && log.end_bytes > this.logEnd;
    if (wanted && log.from_bytes === this.logEnd) {
      this.lines = [...this.lines, ...log.lines].slice(-LINES_SEARCHED);
      this.logEnd = log.end_bytes;
    } else if (wanted) {
      this.update().catch(() => {});
      return;
    }
    if (this.rank === null && fresh.length > 0) this.show('events', this.shownEvents());
    else if (wanted) this.show(this.tabs.selected, this.shownLines());
  }

  get words() {
    return this.search.value.trim().toLowerCase();
  }

  show(key, all) {
    const {words} = this;
    const lines = all.filter((line) => words === ''
      || `${line.label ?? ''} ${line.text}`.toLowerCase().includes(words)).slice(-LINES);
    const below = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight;
    const toEnd = this.toEnd || below < 24; // scrolls to the end, unless the reader has scrolled up
    this.toEnd = false;
    showWhenChanged(this.node, [key, lines, this.ended], () => lines.length === 0 ? nothing(words !== '' ? 'No matching lines.' : this.ended ? 'Nothing was recorded.' : 'Nothing yet.')
      : el('ol', {class: 'lines'}, ...lines.map((line) =>
        el('li', {}, el('time', {text: line.time}),
          line.label === undefined ? null : el('b', {text: line.label}),
          el('span', {text: line.text})))));
    if (toEnd) this.node.scrollTop = this.node.scrollHeight;
  }

  async logLines(key) {
    const rank = key.slice('rank-'.length);
    const {lines, end_bytes: end} = await getJson(`${this.path}/logs?rank=${rank}&lines=${this.words === '' ? LINES : LINES_SEARCHED}`);
    if (key === this.tabs.selected) Object.assign(this, {lines, logEnd: end});
    return this.shownLines();
  }

  shownLines() {
    return this.lines.map((line) => {
      const at = /^\d+$/.test(line.time) ? Number(line.time) : Date.parse(line.time);
      return {time: Number.isNaN(at) ? line.time : text.clock(at), text: line.text};
    });
  }

  async eventLines() {
    for (let more = true; more;) {
      const page = await getJson(`${this.path}/events?after=${this.next}&limit=1000`);
      if (page.next <= this.next) break; // nothing new, or another call was faster
      this.events.push(...page.events);
      this.next = page.next;
      more = page.more;
    }
    return this.shownEvents();
  }

  shownEvents() {
    return this.events.map((event) => ({
      time: text.clock(event.time_ms),
      label: event.rank === null ? event.event : `${event.event} · rank ${event.rank}`,
      text: eventText(event),
    }));
  }
}
