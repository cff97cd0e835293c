// note: the note of a run as Markdown, its earlier versions, and its editor.
import {change, mayWrite} from '/change.js';
import {el, setText} from '/dom.js';
import {getJson} from '/live.js';
import {rendered} from '/markdown.js';
import * as text from '/text.js';

export class Note {
  // card: the section; path: of the run in the API; id: of the run.
  constructor(card, path) {
    const find = (name) => card.querySelector(name);
    Object.assign(this, {card, path, tools: find('.tools'), body: find('.markdown'), older: find('.versions'), note: null, versions: [],
                         may: false, editor: null, draft: null});
    mayWrite().then((may) => {
      this.may = may;
      this.showTools();
    });
  }

  // Shows the note of a run; an open editor keeps its text and is told.
  show(run) {
    this.id = run.id;
    if (run.note === this.note) return;
    this.note = run.note;
    this.body.replaceChildren(...rendered(run.note));
    this.readVersions();
    this.showTools();
  }

  async readVersions() {
    this.asked = (this.asked ?? 0) + 1;
    const turn = this.asked;
    try {
      const answer = await getJson(`${this.path}/notes`);
      if (turn !== this.asked) return; // a later request
      this.versions = answer.notes;
      this.showTools();
      if (!this.older.hidden) this.showVersions();
      if (this.editor && answer.version !== this.editor.base) this.showNewer(answer);
    } catch {
      // the poll of the page reports what is wrong
    }
  }

  showTools() {
    const earlier = this.versions.length - 1;
    this.card.hidden = (this.note ?? '') === '' && this.editor === null && earlier < 1; // 'Add a note' is among the actions
    this.body.hidden = this.editor !== null;
    const button = (words, press) => el('button', {type: 'button', class: 'toggle', text: words, onclick: press});
    const key = [earlier, this.may, this.editor === null, this.older.hidden].join();
    if (key === this.key) return;
    this.key = key;
    this.tools.replaceChildren(...earlier < 1 ? [] : [button(this.older.hidden ? `${earlier} earlier version${earlier > 1 ? 's' : ''}` : 'Hide versions', () => {
      this.older.hidden = !this.older.hidden;
      this.showVersions();
      this.showTools();
    })], ...!this.may || this.editor ? [] : [button('Edit', () => this.edit())]);
  }

  showVersions() {
    if (this.older.hidden) return;
    const items = this.versions.slice(0, -1).reverse();
    this.older.replaceChildren(...items.map((version) => el('details', {},
      el('summary', {text: `${version.time_ms === null ? 'At an unknown time' : text.dateTime(version.time_ms)}${version.note === '' ? ', removed' : ''}`}),
      el('div', {class: 'markdown'}, ...rendered(version.note)),
      !this.may ? null : el('button', {type: 'button', class: 'toggle', text: 'Edit this version', onclick: () => this.edit(version.note)}))));
  }

  // --- the editor

  async edit(words = this.draft ?? this.note) {
    if (this.editor && this.changed) this.say('Save or cancel your text first.');
    else if (this.editor) this.editor.area.value = words;
    if (this.editor) return;
    const area = el('textarea', {'aria-label': 'Note in Markdown', rows: '14', spellcheck: 'true'});
    const preview = el('div', {class: 'markdown preview', hidden: ''});
    const said = el('p', {class: 'warning', role: 'status', hidden: ''});
    const newer = el('div', {class: 'newer', hidden: ''});
    const button = (name, more, press) => el('button', {type: 'button', class: `toggle ${more}`, text: name, onclick: press});
    const look = button('Preview', '', () => this.look());
    const save = button('Save', 'main', () => this.save());
    const node = el('div', {class: 'editor'}, area, preview, newer, said,
      el('div', {class: 'controls'}, save, look, button('Cancel', '', () => this.close()),
        el('span', {class: 'quiet hint', text: 'Markdown; Ctrl+Enter saves, Esc leaves.'})));
    area.value = words;
    const latest = this.versions[this.versions.length - 1];
    this.editor = {node, area, preview, said, newer, look, save, before: this.note, escaped: false,
                   base: latest !== undefined && latest.note === this.note ? latest.version : null};
    area.addEventListener('input', () => { this.editor.escaped = false; });
    node.addEventListener('keydown', (event) => this.key_(event));
    this.leaving = (event) => { if (this.changed) event.preventDefault(); };
    addEventListener('beforeunload', this.leaving);
    this.body.after(node);
    this.showTools();
    area.focus();
    if (this.editor.base === null) await this.readBase();
  }

  // Reads the version that the text replaces, if it is not known yet.
  async readBase() {
    const answer = await getJson(`${this.path}/notes`).catch(() => null);
    if (!this.editor || !answer) return;
    this.editor.base = answer.version;
    if (answer.note !== this.editor.before) this.showNewer(answer);
  }

  get changed() {
    return this.editor !== null && this.editor.area.value !== this.editor.before;
  }

  key_(event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.save();
    else if (event.key === 'Escape' && this.changed && !this.editor.escaped) {
      this.say('Not saved yet: Esc again leaves, and keeps the text until the page is closed.');
      this.editor.escaped = true;
    } else if (event.key === 'Escape') {
      this.draft = this.changed ? this.editor.area.value : null;
      this.close(this.draft);
    }
  }

  say(words) {
    this.editor.said.hidden = words === '';
    setText(this.editor.said, words);
  }

  look() {
    const {area, preview, look} = this.editor;
    preview.hidden = !preview.hidden;
    area.hidden = !preview.hidden;
    setText(look, preview.hidden ? 'Preview' : 'Write');
    preview.replaceChildren(...preview.hidden ? [] : rendered(area.value));
    (preview.hidden ? area : look).focus();
  }

  // Others have changed the note: their text is shown below ours, and the next save replaces it.
  showNewer({note, version}) {
    const {newer} = this.editor;
    this.editor.base = version;
    newer.hidden = false;
    newer.replaceChildren(el('p', {class: 'warning', text: 'Somebody has changed this note meanwhile. Their text is below; take over what you need. Saving replaces theirs, which stays among the earlier versions.'}),
                          el('div', {class: 'markdown'}, ...note === '' ? [el('p', {class: 'quiet', text: 'They removed it.'})] : rendered(note)),
                          el('details', {}, el('summary', {text: 'Their text in Markdown'}), el('pre', {class: 'source', text: note})));
  }

  async save() {
    const {area, save, base} = this.editor;
    save.disabled = true;
    this.say('');
    try {
      await change(this.id, 'note', {note: area.value, ...base === null ? {} : {replaces: base}});
      this.draft = null;
      const saved = area.value.replace(/\n{1,1000}$/, '');
      this.close();
      this.show({id: this.id, note: saved});
      return;
    } catch (error) {
      this.say(error.status === 409 ? 'Not saved: see below.' : `Not saved: ${error.message}`);
      if (error.status === 409) await this.readVersions();
    }
    save.disabled = false;
  }

  close(draft = null) {
    this.draft = draft;
    removeEventListener('beforeunload', this.leaving);
    this.editor.node.remove();
    this.editor = null;
    this.showTools();
    if (!this.card.hidden) this.tools.querySelector('button:last-child')?.focus();
  }
}
