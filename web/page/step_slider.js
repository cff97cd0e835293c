// step_slider: chooses one of the steps that something was computed at. It stands at the newest step until the reader moves
// it, and goes with the newest step while it stands there.
import {el} from '/dom.js';
import * as text from '/text.js';

export class StepSlider {
  constructor(node, what, onChoose) {
    this.steps = [];
    this.onChoose = onChoose;
    this.range = el('input', {type: 'range', min: 0, max: 0, step: 1, value: 0, 'aria-label': `Step of ${what}`,
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
