// change: asks the server for changes of runs, and asks the person before them. Only a page that was opened by the link
// of 'dtrun serve --write' may change anything.
import {el, setText} from '/dom.js';
import {getJson} from '/live.js';

let asked = null;

// Resolves to true if this page may change runs.
export function mayWrite() {
  asked ??= getJson('/api/v1/rights').then(({write}) => write).catch(() => false);
  return asked;
}

// Changes a run, and waits for the end of it. The error of a refusal has the status of the answer.
export async function change(id, what, body) {
  const send = async (path, options = {}) => {
    const answer = await fetch(path, options).catch(() => { throw new Error('No answer from the server: it may or may not have been done.'); });
    return {answer, result: await answer.json()};
  };
  let {answer, result} = await send(`/api/v1/runs/${encodeURIComponent(id)}/${what}`,
    {method: 'POST', headers: {'Content-Type': 'application/json', Accept: 'application/json'}, body: JSON.stringify(body)});
  while (answer.status === 202) ({answer, result} = await send(`/api/v1/changes/${result.change}`));
  if (!answer.ok) throw Object.assign(new Error(result.error?.message ?? answer.statusText), {status: answer.status});
  return result;
}

// Opens a dialog. field: {label, value} of a text, or null; buttons: [{text, danger, run: (value) => promise, needs: (value) => bool}].
// A button that fails shows why, and the dialog stays; Esc and Cancel close it.
export function ask({title, content = [], field = null, buttons}) {
  const problem = el('p', {class: 'reason', role: 'alert', hidden: ''});
  const input = field && el('input', {type: 'text', autocomplete: 'off', spellcheck: 'false', 'aria-label': field.label});
  const cancel = el('button', {type: 'button', class: 'toggle', text: 'Cancel', onclick: () => dialog.close()});
  let busy = false;
  const made = buttons.map((button) => ({...button, node: el('button', {
    type: 'button', class: `toggle ${button.danger ? 'danger' : 'main'}`, text: button.text, onclick: () => press(button)})}));
  const enable = () => {
    for (const {node, needs} of made) node.disabled = busy || (needs !== undefined && !needs(input.value));
    if (input) input.disabled = busy;
    cancel.disabled = busy;
  };
  const press = async (button) => {
    busy = true;
    problem.hidden = true;
    enable();
    try {
      await button.run(input?.value);
      dialog.close();
    } catch (error) {
      setText(problem, error.message);
      problem.hidden = false;
    }
    busy = false;
    enable();
    input?.focus();
  };
  const dialog = el('dialog', {class: 'card', 'aria-label': title}, el('h2', {text: title}), ...content,
    field ? el('label', {}, el('span', {class: 'quiet', text: field.label}), input) : null, problem,
    el('div', {class: 'controls'}, ...made.map(({node}) => node), cancel));
  if (input) {
    input.value = field.value;
    input.addEventListener('input', enable);
    input.addEventListener('keydown', (event) => {
      const [first] = made;
      if (event.key === 'Enter' && !first.node.disabled) press(first);
    });
  }
  dialog.addEventListener('cancel', (event) => { if (busy) event.preventDefault(); });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  enable();
  dialog.showModal();
  if (input) input.select();
  else cancel.focus();
}

const wordsOf = (text) => text.split(/\s+/).filter((word) => word !== '');

// Returns what has to change for the tags to be those of a text.
export function tagChange(before, text) {
  const [old, now] = [wordsOf(before), wordsOf(text)];
  return {add: now.filter((tag) => !old.includes(tag)), remove: old.filter((tag) => !now.includes(tag))};
}

export const ARCHIVED = 'archived'; // the tag of runs that lists leave out
export const isArchived = (run) => wordsOf(run.tags).includes(ARCHIVED);
