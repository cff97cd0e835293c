// samples: shows the texts that a run has generated for its prompts at one step, which a slider chooses.
import {el, table} from '/dom.js';
import {AtSteps} from '/step_slider.js';
import * as text from '/text.js';

const ENDS = {end_of_text: 'ended', tokens: 'cut at the limit', not_finite: 'the outputs were not finite'};

function endOf({tokens, ended}) {
  const words = `${text.count(tokens)} token${tokens === 1 ? '' : 's'}, ${ENDS[ended] ?? ended}`;
  return el('div', {class: `end ${ended === 'not_finite' ? 'bad' : 'quiet'}`, text: words});
}

function textCell(sample) {
  return el('div', {}, el('div', {class: 'sample', text: sample.text === '' ? '(nothing)' : sample.text}), endOf(sample));
}

function contentOf({step, samples}) {
  const made = table([
    {title: 'Prompt', class: 'prompt', cell: (sample) =>
      el('div', {class: 'sample', text: sample.prompt === '' ? '(empty)' : sample.prompt})},
    {title: `Text at step ${text.count(step)}`, cell: textCell},
  ], samples);
  made.classList.add('samples');
  return [made];
}

export const samplesOf = (path) => new AtSteps('samples', 'samples', path, contentOf);
