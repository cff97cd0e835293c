// live: receives news from the server's event stream; if that fails, polls the JSON routes.

export const ACTIVE_MS = 1000;
export const QUIET_MS = 5000;
const STREAM_MS = 30000; // interval of polling while the stream works
const RETRY_MS = 15000; // pause after the server refused a stream

const LOST = 'No answer from the server, trying again…';
const LOCKED = 'The link has expired, print a new one: dtrun serve --link';

// Returns the address of a CSV file with the points of runs or of a group. name: one metric; null: all metrics.
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
    error.refused = answer.status === 400;
    error.locked = answer.status === 401 || answer.status === 403;
    throw error;
  }
  return body;
}

// Calls `step` now, and again after the milliseconds that it returns (null: never again); one call
// at a time. A hidden page makes no calls; when it is shown again the next call is immediate. A
// failure shows a note in the page's head and is retried. Returns a function that calls `step` at
// once; with its argument `again`, also a second time if a call is in progress.
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

// Receives news by server-sent events while the page is visible. address: (rank) => path of the
// stream. `onOpen` is called when everything has to be read again, because earlier news will not be
// sent; `onNews` with each piece of news. If the server sends none (too many followers, a proxy that
// does not pass them on), the stream is retried later; meanwhile `wait` makes the page poll.
export class Live {
  constructor(address, onOpen, onNews) {
    Object.assign(this, {address, onOpen, onNews, on: false, rank: null, source: null, timer: 0});
    document.addEventListener('visibilitychange', () => this.start());
    // gives the connection back at once: a browser has only few
    addEventListener('pagehide', () => this.stop());
  }

  get wait() {
    return this.on ? STREAM_MS : null;
  }

  // rank: the rank whose log is also sent; null: none
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
      if (event instanceof MessageEvent) { // an event of the server; the browser's own "open" is not a MessageEvent
        this.on = true;
        this.onOpen();
      }
    });
    source.addEventListener('news', (event) => {
      this.on = true;
      this.onNews(JSON.parse(event.data));
    });
    source.addEventListener('error', () => this.failed());
  }

  // The browser reconnects with its cursor, unless the server refused the stream.
  failed() {
    const wasOn = this.on;
    this.on = false;
    if (this.source.readyState === EventSource.CLOSED) {
      this.stop();
      this.timer = setTimeout(() => this.start(), RETRY_MS);
    }
    if (wasOn) this.onOpen();
  }

  // Stops for ever: a page that becomes visible again does not follow again.
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
