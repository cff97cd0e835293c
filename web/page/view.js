// view: holds the settings that all charts of a page share: the axis, the zoomed range of steps,
// linear or logarithmic, smoothing, and the crosshair. The address stores them, so that a link
// reproduces the view.

const AXES = ['step', 'time', 'tokens'];
const SMOOTH = [0, 0.6, 0.9, 0.98];

// Replaces the address. Some browsers refuse this for a report, which is a file.
export function putAddress(address) {
  try {
    history.replaceState(null, '', address);
  } catch {
    // the address stays as it was
  }
}

export class View {
  constructor() {
    const given = new URLSearchParams(location.search);
    const step = (name) => /^\d+$/.test(given.get(name) ?? '') ? Number(given.get(name)) : null;
    this.axis = AXES.includes(given.get('x')) ? given.get('x') : 'step';
    this.from = step('from'); // null: from the beginning
    this.to = step('to'); // null: to the end
    this.log = given.get('log') === '1';
    this.smooth = SMOOTH.includes(Number(given.get('smooth'))) ? Number(given.get('smooth')) : 0;
    this.listeners = [];
    this.crossListeners = [];
  }

  get zoomed() {
    return this.from !== null || this.to !== null;
  }

  listen(changed, crossed) {
    this.listeners.push(changed);
    this.crossListeners.push(crossed);
  }

  set(changes) {
    Object.assign(this, changes);
    const address = new URL(location.href);
    const put = (name, value) => value === null ? address.searchParams.delete(name)
      : address.searchParams.set(name, String(value));
    put('x', this.axis === 'step' ? null : this.axis);
    put('from', this.from);
    put('to', this.to);
    put('log', this.log ? 1 : null);
    put('smooth', this.smooth || null);
    putAddress(address);
    for (const listener of this.listeners) listener(changes);
  }

  // Places the crosshair at x, in units of the axis; null hides it.
  cross(x) {
    for (const listener of this.crossListeners) listener(x);
  }

  // Zooms in or out, or moves the range, by a key; `whole` is the range of all steps.
  move(key, whole) {
    const from = this.from ?? whole.from;
    const to = this.to ?? whole.to;
    const width = to - from;
    const wanted = {'+': [from + width / 4, to - width / 4], '-': [from - width / 2, to + width / 2],
                    ArrowLeft: [from - width / 4, to - width / 4],
                    ArrowRight: [from + width / 4, to + width / 4]}[key];
    if (!wanted) return false;
    const clip = (step) => Math.round(Math.min(whole.to, Math.max(whole.from, step)));
    const [a, b] = wanted.map(clip);
    if (a <= whole.from && b >= whole.to) this.set({from: null, to: null});
    else if (b > a) this.set({from: a, to: b});
    return true;
  }
}

// Names the axis of tokens or rows by what the runs read.
export function nameItems(items) {
  const option = document.querySelector('#axis option[value=tokens]');
  const name = new Set(items).size > 1 ? 'tokens or rows' : items[0] === 'row' ? 'rows' : 'tokens';
  if (option.textContent !== name) option.textContent = name;
}

// Connects the controls in the page with a view.
export function bindControls(view) {
  const byId = (id) => document.getElementById(id);
  const show = () => {
    byId('axis').value = view.axis;
    byId('smooth').value = String(view.smooth);
    byId('log-scale').setAttribute('aria-pressed', view.log ? 'true' : 'false');
    byId('whole').hidden = !view.zoomed;
  };
  byId('axis').addEventListener('change', () => view.set({axis: byId('axis').value}));
  byId('smooth').addEventListener('change', () => view.set({smooth: Number(byId('smooth').value)}));
  byId('log-scale').addEventListener('click', () => view.set({log: !view.log}));
  byId('whole').addEventListener('click', () => view.set({from: null, to: null}));
  view.listen(show, () => {});
  show();
}
