// confusion: shows the rows of each class by the class that a classifier predicts, at one step, which a slider chooses.
import {el} from '/dom.js';
import {AtSteps} from '/step_slider.js';
import * as text from '/text.js';

const NUMBERS_MOST = 20; // with more classes the cells have colours, and numbers as titles
const LABEL_EVERY = 5; // and so many columns share a label

const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function cell(counts, at, of, total, numbers) {
  const share = total > 0 ? counts[of] / total : 0;
  const made = el('td', {class: at === of ? 'right' : 'wrong', title: `${text.count(counts[of])} of ${text.count(total)} rows of class ${at}` +
                         ` predicted as ${of} (${percent(share)})`, text: numbers && counts[of] > 0 ? text.count(counts[of]) : ''});
  made.style.setProperty('--share', share.toFixed(4));
  return made;
}

function tableOf(counts) {
  const numbers = counts.length <= NUMBERS_MOST;
  const row = (line, at) => {
    const total = sum(line);
    return el('tr', {}, el('th', {scope: 'row', text: String(at)}),
      ...line.map((_, of) => cell(line, at, of, total, numbers)),
      el('td', {class: 'number', text: total > 0 ? percent(line[at] / total) : '–'}));
  };
  return el('table', {class: `confusion ${numbers ? '' : 'many'}`},
    el('thead', {}, el('tr', {}, el('th', {scope: 'col', text: 'class'}),
      ...counts.map((_, at) => el('th', {scope: 'col', text: numbers || at % LABEL_EVERY === 0 ? String(at) : '', title: `predicted as ${at}`})),
      el('th', {scope: 'col', class: 'number', text: 'right'}))),
    el('tbody', {}, ...counts.map(row)));
}

// Returns true for a square table of numbers: other programs may have written the history.
function isTable(counts) {
  return Array.isArray(counts) && counts.length > 0 && counts.every((line) =>
    Array.isArray(line) && line.length === counts.length && line.every((one) => Number.isFinite(one)));
}

function contentOf({counts}) {
  if (!isTable(counts)) return [el('p', {class: 'quiet', text: 'not readable'})];
  const total = sum(counts.map(sum));
  const right = sum(counts.map((line, at) => line[at]));
  return [el('p', {class: 'quiet', text: `${text.count(total)} rows, ${percent(total > 0 ? right / total : 0)} right.` +
                   ' A line has the rows of a class, a column those that the model predicts.'}), tableOf(counts)];
}

export const confusionOf = (path) => new AtSteps('confusion', 'confusion', path, contentOf);
