// bulk: changes of the runs that are ticked in the list.
import {ask, change, isArchived, mayWrite} from '/change.js';
import {el} from '/dom.js';

// Returns the change that words like "keep -night" ask for: a tag with a minus sign is removed.
export function tagWords(text) {
  const words = text.split(/\s+/).filter((word) => word !== '');
  return {add: words.filter((word) => !word.startsWith('-')).map((word) => word.replace(/^\+/, '')),
          remove: words.filter((word) => word.startsWith('-')).map((word) => word.slice(1))};
}

export class Bulk {
  // node: holds the buttons; say: shows a text.
  constructor(node, say) {
    Object.assign(this, {node, say, runs: [], key: ''});
    mayWrite().then((may) => {
      this.may = may;
      this.show(this.runs);
    });
  }

  // runs: those that are ticked.
  show(runs) {
    this.runs = runs;
    this.node.hidden = !this.may || runs.length === 0;
    const away = runs.every(isArchived);
    const key = `${runs.length} ${away}`;
    if (key === this.key) return;
    this.key = key;
    const button = (text, press) => el('button', {type: 'button', class: 'toggle', text, onclick: press});
    this.node.replaceChildren(button(`Tag ${runs.length}`, () => this.tag()),
                              button(`${away ? 'Unarchive' : 'Archive'} ${runs.length}`, () => this.archive(!away)));
  }

  // Changes each run, and says for how many it failed, and why.
  async each(what, body, done) {
    const runs = [...this.runs];
    const refused = [];
    for (const run of runs) await change(run.id, what, body).catch((error) => refused.push(`${run.name} ${run.id}: ${error.message}`));
    this.say(refused.length === 0 ? `${done} ${runs.length} run${runs.length > 1 ? 's' : ''}.` : `${refused.length} of ${runs.length} refused: ${refused[0]}`);
  }

  tag() {
    const given = (value) => Object.values(tagWords(value)).some((list) => list.length > 0);
    ask({title: `Tags of ${this.runs.length} run${this.runs.length > 1 ? 's' : ''}`, field: {label: 'Tags to add; with a minus sign in front: to remove', value: ''},
         buttons: [{text: 'Save', needs: given, run: (value) => this.each('tags', tagWords(value), 'Tagged')}]});
  }

  archive(archived) {
    this.each('archive', {archived}, archived ? 'Archived' : 'Unarchived');
  }
}
