// actions: the buttons of a run's page that change the run.
import {ask, change, isArchived, mayWrite, tagChange} from '/change.js';
import {el, setText} from '/dom.js';
import {isActive} from '/live.js';
import * as text from '/text.js';

const removal = {bytes: 'Size', step: 'Steps', checkpoints: 'Checkpoints', folder: 'Folder'};

// What `dtrun rm --dry-run` says would be removed.
function removalList({removed: [run]}) {
  const shown = {...run, bytes: text.bytes(run.bytes), step: text.count(run.step), checkpoints: text.count(run.checkpoints)};
  return el('dl', {class: 'facts'}, ...Object.entries(removal).map(([key, title]) =>
    el('div', {}, el('dt', {text: title}), el('dd', {text: shown[key]}))));
}

export class Actions {
  // node: the row of buttons; said: where results are reported; note: what edits the note; onChange is called after a change.
  constructor(node, said, note, onChange) {
    Object.assign(this, {node, said, note, onChange, run: null, key: ''});
    mayWrite().then((may) => {
      this.may = may;
      if (this.run) this.show(this.run);
    });
  }

  show(run) {
    this.run = run;
    if (!this.may) return;
    const key = [run.id, isActive(run.state), run.state === 'stopping', isArchived(run), run.note === ''].join();
    if (key === this.key) return;
    this.key = key;
    const button = (words, press, danger = false) => el('button', {type: 'button', class: danger ? 'toggle danger' : 'toggle', text: words, onclick: press});
    this.node.replaceChildren(
      button('Rename', () => this.rename()), button('Tags', () => this.tags()),
      ...run.note === '' ? [button('Add a note', () => this.note.edit())] : [],
      button(isArchived(run) ? 'Unarchive' : 'Archive', () => this.archive()),
      isActive(run.state) ? button(run.state === 'stopping' ? 'Stopping…' : 'Stop', () => this.stop(), true)
        : button('Delete', () => this.remove(), true));
    this.node.hidden = false;
  }

  hide() {
    this.may = false;
    this.node.hidden = true;
  }

  say(words, isProblem = false) {
    this.said.hidden = words === '';
    this.said.classList.toggle('warning', isProblem);
    setText(this.said, words);
  }

  async do(what, body, words) {
    const result = await change(this.run.id, what, body);
    this.say(words);
    this.onChange();
    return result;
  }

  rename() {
    const {name} = this.run;
    ask({title: 'Rename', field: {label: 'Name', value: name}, buttons: [{text: 'Rename', needs: (value) => value !== '' && value !== name,
      run: (value) => this.do('name', {name: value}, `Renamed from ${name}.`)}]});
  }

  tags() {
    const {tags} = this.run;
    const differs = (value) => Object.values(tagChange(tags, value)).some((list) => list.length > 0);
    ask({title: 'Tags', field: {label: 'Tags, with blanks between them', value: tags}, buttons: [{text: 'Save', needs: differs,
      run: (value) => this.do('tags', tagChange(tags, value), '')}]});
  }

  async archive() {
    const archived = !isArchived(this.run);
    try {
      await this.do('archive', {archived}, archived ? 'Archived: lists leave it out.' : 'Lists show it again.');
    } catch (error) {
      this.say(error.message, true);
    }
  }

  stop() {
    const {name, id} = this.run;
    // The dialog closes at once: the state shows how far the stop is.
    const stopped = (now) => async () => {
      this.say(now ? 'Stopping at once…' : 'Stopping…');
      this.do('stop', {now}, '').then(({result, exit_code: code, message}) => {
        const state = result?.state ?? 'stopped';
        this.say(code === 0 ? `The run has ${state === 'stopped' ? 'stopped' : state} at step ${text.count(result?.step ?? null)}.` : message, code !== 0);
      }).catch((error) => this.say(error.message, true));
    };
    ask({title: `Stop ${name}?`, content: [el('p', {text: `Run ${id} saves a checkpoint and stops. It can be resumed.`})],
         buttons: [{text: 'Stop', danger: true, run: stopped(false)}, {text: 'Stop now, without a checkpoint', danger: true, run: stopped(true)}]});
  }

  async remove() {
    const {name, id} = this.run;
    let found;
    try {
      found = (await change(id, 'remove', {dry_run: true})).result;
    } catch (error) {
      this.say(error.message, true);
      return;
    }
    ask({title: `Delete ${name}?`, content: [el('p', {text: 'The run is removed for good, with its history, logs and checkpoints.'}), removalList(found)],
         field: {label: `Type its name, ${name}, to confirm`, value: ''},
         buttons: [{text: 'Delete', danger: true, needs: (value) => value === name, run: async (value) => {
           await change(id, 'remove', {name: value});
           location.assign('/');
         }}]});
  }
}
