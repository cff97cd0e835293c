// files: shows images and tables that a command has written and dtrun has collected. Images are loaded when they come
// into view, tables when they are opened.
import {el, table} from '/dom.js';
import {getJson} from '/live.js';
import * as text from '/text.js';

const IMAGES_FIRST = {wide: 12, narrow: 4}; // more on demand
const LARGEST_IMAGE = 8e6; // bytes; a larger one is a link
const TABLE_BYTES = 262144; // read of a table
const ROWS = 200;
const COLUMNS = 50;

// Returns the rows of a CSV or TSV text (RFC 4180), at most `most`. whole: false if the text was cut, so that its last line is left out.
export function rowsOf(content, separator, most, whole) {
  const rows = [];
  let row = [];
  let cell = '';
  let quoted = false;
  const put = () => {
    row.push(cell);
    cell = '';
  };
  for (let at = 0; at < content.length && rows.length < most; at++) {
    const sign = content[at];
    if (quoted && sign === '"' && content[at + 1] === '"') {
      cell += '"';
      at++;
    } else if (quoted) {
      if (sign === '"') quoted = false;
      else cell += sign;
    } else if (sign === '"' && cell === '' && separator === ',') quoted = true;
    else if (sign === separator) put();
    else if (sign === '\n') {
      put();
      if (row.length > 1 || row[0] !== '') rows.push(row);
      row = [];
    } else if (sign !== '\r') cell += sign;
  }
  if (whole && rows.length < most && (cell !== '' || row.length > 0)) {
    put();
    rows.push(row);
  }
  return rows;
}

export class Files {
  // enabled: false in a report, which has no files.
  constructor(card, list, path, enabled) {
    Object.assign(this, {card, list, path, enabled, key: '', all: false, rest: ''});
  }

  // Files come when an attempt ends.
  async update(run) {
    const key = `${run.attempt} ${run.state}`;
    if (!this.enabled || run.task !== 'command' || key === this.key) return;
    const {files, left_out: leftOut, incomplete} = await getJson(`${this.path}/files`);
    this.key = key;
    this.files = files;
    this.rest = [...leftOut > 0 ? [`and ${text.count(leftOut)} older files`] : [],
                 ...incomplete ? ['there are more files than are looked at'] : []].join('; ');
    this.card.hidden = files.length === 0;
    this.show();
  }

  address(file, most = null) {
    return `${this.path}/file?path=${encodeURIComponent(file.path)}${most === null ? '' : `&most=${most}`}`;
  }

  show() {
    const images = this.files.filter(({kind}) => kind === 'image');
    const tables = this.files.filter(({kind}) => kind === 'table');
    const shown = this.all ? images : images.slice(0, innerWidth > 860 ? IMAGES_FIRST.wide : IMAGES_FIRST.narrow);
    this.list.replaceChildren(
      ...images.length === 0 ? [] : [el('div', {class: 'images'}, ...shown.map((file) => this.image(file)))],
      ...shown.length === images.length ? [] : [el('button', {type: 'button', class: 'toggle more',
        text: `Show all ${images.length} images`, onclick: () => {
          this.all = true;
          this.show();
        }})],
      ...tables.map((file) => this.table(file)),
      ...this.rest === '' ? [] : [el('p', {class: 'quiet', text: this.rest})]);
  }

  // The name and what is known of a file; the name leads to the file.
  about(file) {
    return [el('a', {href: this.address(file), target: '_blank', rel: 'noopener', text: file.path.replace(/^collected\//, '')}), ' ',
            el('span', {class: 'quiet', text: `${text.dateTime(file.time_ms)} · ${text.bytes(file.bytes)}`})];
  }

  image(file) {
    const picture = file.bytes > LARGEST_IMAGE ? el('p', {class: 'quiet', text: 'too large to be shown here'})
      : el('img', {src: this.address(file), alt: file.path, loading: 'lazy', decoding: 'async'});
    return el('figure', {}, picture, el('figcaption', {}, ...this.about(file)));
  }

  table(file) {
    const body = el('div', {class: 'scroll'});
    const details = el('details', {class: 'file'}, el('summary', {}, ...this.about(file)), body);
    details.addEventListener('toggle', () => {
      if (details.open && body.childElementCount === 0) this.fill(body, file);
    });
    return details;
  }

  async fill(body, file) {
    body.replaceChildren(el('p', {class: 'quiet', text: 'Loading…'}));
    try {
      const answer = await fetch(this.address(file, TABLE_BYTES));
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      const rows = rowsOf(await answer.text(), /\.tsv$/i.test(file.path) ? '\t' : ',', ROWS + 2, file.bytes <= TABLE_BYTES);
      const [heads = [], ...lines] = rows;
      const shown = lines.slice(0, ROWS);
      const number = (at) => shown.every((line) => (line[at] ?? '') === '' || Number.isFinite(Number(line[at])));
      const columns = heads.slice(0, COLUMNS).map((title, at) => ({title, class: number(at) ? 'number' : '', cell: (line) => line[at] ?? ''}));
      const cut = lines.length > ROWS || file.bytes > TABLE_BYTES ? `the first ${text.count(shown.length)} rows` : '';
      const narrow = heads.length > COLUMNS ? `the first ${COLUMNS} of ${text.count(heads.length)} columns` : '';
      body.replaceChildren(rows.length === 0 ? el('p', {class: 'quiet', text: 'An empty table.'}) : table(columns, shown),
        ...cut + narrow === '' ? [] : [el('p', {class: 'quiet', text: [cut, narrow].filter(Boolean).join(', ')})]);
    } catch (error) {
      body.replaceChildren(el('p', {class: 'quiet', text: `The table cannot be read: ${error.message}`}));
    }
  }
}
