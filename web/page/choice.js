// choice: which charts the reader wants to see: a search, pinned and hidden metrics, and opened sections. The address
// stores them, so that a link reproduces them.
import {putAddress} from '/view.js';

const LISTS = ['pin', 'hide', 'open'];

export class Choice {
  constructor() {
    const given = new URLSearchParams(location.search);
    this.search = given.get('metrics') ?? '';
    this.pin = new Set(given.getAll('pin'));
    this.hide = new Set(given.getAll('hide'));
    this.open = given.has('open') ? new Set(given.getAll('open')) : null; // null: the first section
    this.showHidden = false;
  }

  save() {
    const address = new URL(location.href);
    const {searchParams: kept} = address;
    if (this.search === '') kept.delete('metrics');
    else kept.set('metrics', this.search);
    for (const name of LISTS) {
      kept.delete(name);
      for (const value of this[name] ?? []) kept.append(name, value);
      if (this[name]?.size === 0 && name === 'open') kept.append(name, ''); // every section is folded
    }
    putAddress(address);
  }

  // Adds or removes a name of 'pin' or 'hide'.
  toggle(list, name) {
    if (!this[list].delete(name)) this[list].add(name);
    this.save();
  }

  setSearch(words) {
    this.search = words;
    this.save();
  }

  setOpen(sections) {
    this.open = new Set(sections);
    this.save();
  }

  // Returns true if a chart with these texts matches the search: all its words, in any order.
  finds(texts) {
    const all = texts.join(' ').toLowerCase();
    return this.search.toLowerCase().split(/\s+/).every((word) => all.includes(word));
  }
}
