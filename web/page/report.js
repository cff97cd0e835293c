// report: what live.js is on the served page, for a report: a file of its own that holds what the server would have
// answered. Nothing is asked of anybody, and nothing changes any more.

export const ACTIVE_MS = 1000;
export const QUIET_MS = 5000;

const {runs, answers} = JSON.parse(document.getElementById('answers').textContent);
document.body.dataset.runs = runs.join(',');
// What the page links to is not here.
document.addEventListener('click', (event) => {
  if (event.target.closest('a')) event.preventDefault();
});

export const keepAddress = null; // there is nobody to ask for more

export function isActive() {
  return false;
}

// Of the buckets that are here those in which steps of the range lie.
function cut(series, from, to) {
  return Object.fromEntries(Object.entries(series).map(([name, column]) => {
    const inside = (_, at) => column.last_step[at] >= from && column.first_step[at] <= to;
    return [name, Object.fromEntries(Object.entries(column)
      .map(([key, values]) => [key, values.filter(inside)]))];
  }).filter(([, column]) => column.last_step.length > 0));
}

export async function getJson(address) {
  const [path, query] = address.split('?');
  const given = new URLSearchParams(query ?? '');
  const answer = answers[path.endsWith('/logs') ? `${path}?rank=${given.get('rank')}` : path];
  if (!answer) throw new Error(`${address} is not in the report`);
  if (!path.endsWith('/metrics')) return answer;
  return {...answer, series: cut(answer.series, Number(given.get('from') ?? 0),
                                 Number(given.get('to') ?? Infinity))};
}

export function poll(step) {
  const note = document.getElementById('link');
  const once = () => step().catch((error) => {
    note.textContent = error.message;
    note.hidden = false;
  });
  once();
  return once;
}

export class Live {
  wait = null;

  follow() {}

  stop() {}

  end() {}
}
