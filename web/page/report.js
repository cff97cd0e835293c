// report: replaces live.js in a report, a single file that contains the answers of the server. It
// makes no requests, and nothing changes later.

export const ACTIVE_MS = 1000;
export const QUIET_MS = 5000;

const {runs, answers} = JSON.parse(document.getElementById('answers').textContent);
document.body.dataset.runs = runs.join(',');
// Links do nothing: the linked pages are not part of the report.
document.addEventListener('click', (event) => {
  if (event.target.closest('a:not([target])')) event.preventDefault(); // those of a note lead elsewhere
});

export const keepAddress = null; // a report cannot download anything

export function isActive() {
  return false;
}

// Returns the stored buckets that overlap the range of steps.
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
  const answer = answers[path.endsWith('/logs') ? `${path}?rank=${given.get('rank')}` : given.has('step') ? address : path];
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
