// live: what is new, as the server tells it; where it cannot, the JSON twins are asked again and again.

export const ACTIVE_MS = 1000;
export const QUIET_MS = 5000;
const TOLD_MS = 30000; // while news come by themselves
const RETRY_MS = 15000; // after a server that would not tell

const LOST = 'No answer from the server, trying again…';
const LOCKED = 'The link has expired, print a new one: dtrun serve --link';

// The address of a file with the points of runs or of a group, of one metric or (null) of all.
export function keepAddress(which, name, view) {
  const asked = new URLSearchParams(which);
  if (name !== null) asked.set('name', name);
  for (const end of ['from', 'to']) if (view[end] !== null) asked.set(end, view[end]);
  return `/api/v1/csv?${asked}`;
}

export function isActive(state) {
  return !['finished', 'failed', 'stopped'].includes(state);
}

export async function getJson(path) {
  const answer = await fetch(path, {headers: {Accept: 'application/json'}});
  const body = await answer.json();
  if (!answer.ok) {
    const error = new Error(body.error ? body.error.message : answer.statusText);
    error.answered = true;
    error.gone = answer.status === 404;
    error.locked = answer.status === 401 || answer.status === 403;
    throw error;
  }
  return body;
}

// Calls `step` now and then again after the milliseconds that it gives (null: never); one call at a time. While
// the page is hidden nothing is asked; coming back asks at once. A failure shows the note in the
// page's head and is tried again. The function that is returned asks at once; with `again` also once more
// where it finds another call on its way.
export function poll(step) {
  const note = document.getElementById('link');
  let timer = 0;
  let busy = false;
  let wanted = false;

  async function run(again) {
    clearTimeout(timer);
    wanted = wanted || (busy && again === true);
    if (busy || document.hidden) return;
    busy = true;
    let wait = QUIET_MS;
    try {
      wait = await step();
      note.hidden = true;
    } catch (error) {
      note.textContent = error.locked ? LOCKED : error.answered ? error.message : LOST;
      note.hidden = false;
    }
    busy = false;
    if (wait !== null) timer = setTimeout(run, wanted ? 0 : wait);
    wanted = false;
  }

  document.addEventListener('visibilitychange', run);
  run();
  return run;
}

// News by server-sent events, while the page is seen; `address` says of whom: (rank) => path. `opened` is called when all that there is has to be asked
// for, as nothing of before will be told; `told` with each piece of news. Where the server does not tell (too many
// follow, an old proxy between), it is tried again later; meanwhile `wait` lets the page ask by itself.
export class Live {
  constructor(address, opened, told) {
    Object.assign(this, {address, opened, told, on: false, rank: null, source: null, timer: 0});
    document.addEventListener('visibilitychange', () => this.start());
    // the connection, of which a browser has few, is given back at once
    addEventListener('pagehide', () => this.stop());
  }

  get wait() {
    return this.on ? TOLD_MS : null;
  }

  // rank: whose log is told, too; null: none
  follow(rank) {
    if (rank === this.rank && this.source) return;
    this.rank = rank;
    this.start();
  }

  start() {
    this.stop();
    if (document.hidden || typeof EventSource === 'undefined') return;
    const source = new EventSource(this.address(this.rank));
    this.source = source;
    source.addEventListener('open', (event) => {
      if (event instanceof MessageEvent) { // the server's word, not the browser's
        this.on = true;
        this.opened();
      }
    });
    source.addEventListener('news', (event) => {
      this.on = true;
      this.told(JSON.parse(event.data));
    });
    source.addEventListener('error', () => this.failed());
  }

  // The browser connects again by itself, with its cursor, unless the server has said no.
  failed() {
    const wasOn = this.on;
    this.on = false;
    if (this.source.readyState === EventSource.CLOSED) {
      this.stop();
      this.timer = setTimeout(() => this.start(), RETRY_MS);
    }
    if (wasOn) this.opened();
  }

  // For good: a page that comes back to the front does not begin to follow again.
  end() {
    this.stop();
    this.start = () => {};
  }

  stop() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
    this.on = false;
  }
}
