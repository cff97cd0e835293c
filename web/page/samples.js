// samples: shows the texts that a run has generated for its prompts at one step, which a slider chooses.
import {el, table} from '/dom.js';
import {getJson} from '/live.js';
import {StepSlider} from '/step_slider.js';
import * as text from '/text.js';

const ENDS = {end_of_text: 'ended', tokens: 'cut at the limit', not_finite: 'the outputs were not finite'};

function endOf({tokens, ended}) {
  const words = `${text.count(tokens)} token${tokens === 1 ? '' : 's'}, ${ENDS[ended] ?? ended}`;
  return el('div', {class: `end ${ended === 'not_finite' ? 'bad' : 'quiet'}`, text: words});
}

function textCell(sample) {
  return el('div', {}, el('div', {class: 'sample', text: sample.text === '' ? '(nothing)' : sample.text}), endOf(sample));
}

export class Samples {
  constructor(card, slider, node, path) {
    Object.assign(this, {card, node, path: `${path}/samples`, shown: '', answers: new Map()});
    this.slider = new StepSlider(slider, 'the samples', (step) => this.show(step));
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

  draw({step, samples}) {
    const key = JSON.stringify([step, samples]);
    if (key === this.shown) return;
    this.shown = key;
    this.node.replaceChildren(table([
      {title: 'Prompt', class: 'prompt', cell: (sample) =>
        el('div', {class: 'sample', text: sample.prompt === '' ? '(empty)' : sample.prompt})},
      {title: `Text at step ${text.count(step)}`, cell: textCell},
    ], samples));
    this.node.firstElementChild.classList.add('samples');
  }
}
