// live: asks the JSON twins again and again, as often as it is worth it.

export const ACTIVE_MS = 1000;
export const QUIET_MS = 5000;

const LOST = 'No answer from the server, trying again…';
const LOCKED = 'The server wants a new link: dtrun serve --link';

export function isActive(state) {
  return !['finished', 'failed', 'stopped'].includes(state);
}

export async function getJson(path) {
  const answer = await fetch(path, {headers: {Accept: 'application/json'}});
  const body = await answer.json();
  if (!answer.ok) {
    const error = new Error(body.error ? body.error.message : answer.statusText);
    error.answered = true;
    error.locked = answer.status === 401 || answer.status === 403;
    throw error;
  }
  return body;
}

// Calls `step` now and then again after the milliseconds that it gives; one call at a time. While
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
    timer = setTimeout(run, wanted ? 0 : wait);
    wanted = false;
  }

  document.addEventListener('visibilitychange', run);
  run();
  return run;
}
