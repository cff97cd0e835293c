// step_slider: shows what was computed at one of several steps, which the reader chooses. It stands at the newest step until the
// reader moves it, and goes with the newest step while it stands there.
import {el} from '/dom.js';
import {getJson} from '/live.js';
import * as text from '/text.js';

class StepSlider {
  constructor(node, what, onChoose) {
    this.steps = [];
    this.onChoose = onChoose;
    this.range = el('input', {type: 'range', min: 0, max: 0, step: 1, value: 0, 'aria-label': `Step of the ${what}`,
                              oninput: () => this.choose()});
    this.label = el('output', {class: 'whole'});
    node.replaceChildren(this.range, this.label);
  }

  get atEnd() {
    return this.steps.length === 0 || Number(this.range.value) === this.steps.length - 1;
  }

  get step() {
    return this.steps[Number(this.range.value)];
  }

  // Takes the steps, oldest first, and keeps the chosen one if it is still there.
  setSteps(steps) {
    const chosen = this.step;
    const follows = this.atEnd || !steps.includes(chosen);
    this.steps = steps;
    this.range.max = Math.max(0, steps.length - 1);
    this.range.value = follows ? steps.length - 1 : steps.indexOf(chosen);
    this.range.disabled = steps.length < 2;
    this.say();
  }

  say() {
    const words = this.step === undefined ? '' : `step ${text.count(this.step)}`;
    this.label.textContent = words;
    this.range.setAttribute('aria-valuetext', words);
  }

  choose() {
    this.say();
    this.onChoose(this.step);
  }
}

// A card with a slider. The server answers the path with `steps`, and what it has of `step`.
export class AtSteps {
  // contentOf: makes the elements of an answer
  constructor(name, what, path, contentOf) {
    const byId = (id) => document.getElementById(id);
    Object.assign(this, {card: byId(`${name}-card`), node: byId(name), path: `${path}/${name}`, contentOf, shown: '',
                         answers: new Map()});
    this.slider = new StepSlider(byId(`${name}-step`), what, (step) => this.show(step));
  }

  async update() {
    const answer = await getJson(this.path);
    this.card.hidden = answer.steps.length === 0;
    if (this.card.hidden) return;
    const follows = this.slider.atEnd;
    this.slider.setSteps(answer.steps);
    this.answers.clear(); // a resume may have undone steps
    this.answers.set(answer.step, answer);
    if (follows || this.shown === '') this.draw(answer);
    else await this.show(this.slider.step);
  }

  // Shows the answer for the step, unless the reader has moved on when it comes.
  async show(step) {
    if (!this.answers.has(step)) {
      try {
        this.answers.set(step, await getJson(`${this.path}?step=${step}`));
      } catch (error) {
        this.node.replaceChildren(el('p', {class: 'quiet', text: `not loaded: ${error.message}`}));
        this.shown = '';
        return;
      }
    }
    if (this.slider.step === step) this.draw(this.answers.get(step));
  }

  draw({steps, ...answer}) {
    const key = JSON.stringify(answer);
    if (key === this.shown) return;
    this.shown = key;
    this.node.replaceChildren(...this.contentOf(answer));
  }
}
