// markdown: shows Markdown as elements: headings, lists, tables, code, quotes, emphasis, and links to http(s) only. Text is
// never parsed as HTML. Work grows with the length of the text, also for text that is made to be slow.
import {el} from '/dom.js';

const DEEPEST = 8; // nested lists, quotes and emphasis; deeper ones are text
const LABEL_MOST = 500; // characters of the label of a link
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;

// Returns an address for a link; null if it is not one of http or https.
export function safeAddress(text) {
  try {
    const address = new URL(text);
    return ['http:', 'https:'].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

function link(address, ...children) {
  return el('a', {href: address, rel: 'noopener noreferrer nofollow', target: '_blank'}, ...children);
}

// --- inside a line

const matching = (pattern, text, at) => {
  pattern.lastIndex = at;
  return pattern.exec(text);
};

// Returns the end of the label that begins with the bracket at `at`; -1: none.
function labelEnd(text, at) {
  let open = 0;
  for (let i = at; i < Math.min(text.length, at + LABEL_MOST); i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === '[') open++;
    else if (text[i] === ']' && --open === 0) return i;
  }
  return -1;
}

class Inline {
  constructor(text, depth) {
    Object.assign(this, {text, depth, out: [], plain: '', at: 0, hopeless: new Set()});
  }

  flush() {
    if (this.plain !== '') this.out.push(this.plain);
    this.plain = '';
  }

  push(node, next) {
    this.flush();
    this.out.push(node);
    this.at = next;
  }

  inner(from, to) {
    return new Inline(this.text.slice(from, to), this.depth + 1).parse();
  }

  parse() {
    const {text} = this;
    while (this.at < text.length) {
      const char = text[this.at];
      const done = char === '\\' ? this.escape() : char === '`' ? this.code() : char === '[' ? this.link(this.at)
        : char === '!' && text[this.at + 1] === '[' ? this.link(this.at + 1) : char === '<' || char === 'h' ? this.address()
          : '*_~'.includes(char) ? this.emphasis(char) : char === '\n' ? this.lineEnd() : false;
      if (!done) this.plain += text[this.at++];
    }
    this.flush();
    return this.out;
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === '\n') this.push(el('br'), this.at + 2);
    else if (next !== undefined && PUNCTUATION.test(next)) {
      this.plain += next;
      this.at += 2;
    } else return false;
    return true;
  }

  lineEnd() {
    if (!this.plain.endsWith('  ')) return false;
    this.plain = this.plain.trimEnd();
    this.push(el('br'), this.at + 1);
    return true;
  }

  code() {
    const ticks = matching(/`+/y, this.text, this.at)[0];
    const from = this.at + ticks.length;
    let end = this.hopeless.has(ticks) ? -1 : from - 1;
    while (end >= 0) {
      end = this.text.indexOf(ticks, end + 1);
      if (end >= 0 && this.text[end + ticks.length] !== '`' && this.text[end - 1] !== '`') break;
    }
    if (end < 0) {
      this.hopeless.add(ticks);
      this.plain += ticks;
      this.at = from;
      return true;
    }
    this.push(el('code', {text: this.text.slice(from, end).replaceAll('\n', ' ').trim()}), end + ticks.length);
    return true;
  }

  // [text](address "title"); an image is a link to it, since the page loads nothing from elsewhere.
  link(bracket) {
    const end = labelEnd(this.text, bracket);
    if (end < 0 || this.text[end + 1] !== '(') return false;
    const rest = matching(/\(\s{0,9}<?([^\s<>()]{1,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,200})?)>?(?:\s{1,9}"[^"]{0,200}")?\s{0,9}\)/y, this.text, end + 1);
    const address = rest && safeAddress(rest[1]);
    if (!address) return false;
    const children = this.depth >= DEEPEST ? [this.text.slice(bracket + 1, end)] : this.inner(bracket + 1, end);
    this.push(link(address, ...children.map((child) => child instanceof Element && child.localName === 'a' ? child.textContent : child)),
              end + 1 + rest[0].length);
    return true;
  }

  address() {
    const bracketed = matching(/<(https?:\/\/[^\s<>]{1,2000})>/y, this.text, this.at);
    const bare = !bracketed && !WORD.test(this.text[this.at - 1] ?? ' ') && matching(/https?:\/\/[^\s<>"`]{1,2000}/y, this.text, this.at);
    let words = bracketed?.[1] ?? (bare ? bare[0] : null);
    if (!words) return false;
    while (bare && /[.,;:!?)*_'\]]/.test(words[words.length - 1])) words = words.slice(0, -1);
    const address = safeAddress(words);
    if (!address) return false;
    this.push(link(address, words), this.at + (bracketed ? bracketed[0].length : words.length));
    return true;
  }

  emphasis(char) {
    const {text, at} = this;
    const run = matching(/([*_~])\1*/y, text, at)[0].length;
    const size = char === '~' ? 2 : Math.min(run, 3);
    const mark = char.repeat(size);
    const opens = run >= size && !/\s/.test(text[at + run] ?? ' ') && (char !== '_' || !WORD.test(text[at - 1] ?? ' '));
    const end = !opens || run > 3 || this.depth >= DEEPEST || this.hopeless.has(mark) ? -1 : this.closing(mark, at + size);
    if (opens && end < 0) this.hopeless.add(mark);
    if (end < 0) {
      this.plain += text.slice(at, at + run);
      this.at += run;
      return true;
    }
    const inner = this.inner(at + size, end);
    const node = char === '~' ? el('del', {}, ...inner) : size === 1 ? el('em', {}, ...inner)
      : size === 2 ? el('strong', {}, ...inner) : el('strong', {}, el('em', {}, ...inner));
    this.push(node, end + size);
    return true;
  }

  // Returns the place of the mark that ends an emphasis: a run of the same length, after a character that is no blank.
  closing(mark, from) {
    const {text} = this;
    const [char] = mark;
    for (let i = text.indexOf(char, from); i >= 0; i = text.indexOf(char, i)) {
      let end = i;
      while (text[end] === char) end++;
      if (end - i === mark.length && i > from && !/\s/.test(text[i - 1]) && text[i - 1] !== '\\'
          && (char !== '_' || !WORD.test(text[end] ?? ' '))) return i;
      i = end;
    }
    return -1;
  }
}

const inline = (text, depth = 0) => new Inline(text, depth).parse();

// --- blocks

const indentOf = (line) => line.length - line.trimStart().length;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const RULE = /^ {0,3}(?:-[ \t]*){3,40}$|^ {0,3}(?:\*[ \t]*){3,40}$|^ {0,3}(?:_[ \t]*){3,40}$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const ITEM = /^( {0,40})([-*+]|\d{1,9}[.)])(?:[ \t]{1,4}|$)/;

// Splits a row of a table at its bars; a bar after a backslash is text.
function cellsOf(line) {
  const cells = [''];
  const row = line.trim();
  for (let i = row.startsWith('|') ? 1 : 0; i < row.length; i++) {
    if (row[i] === '\\' && row[i + 1] === '|') cells[cells.length - 1] += row[++i];
    else if (row[i] === '|') {
      if (i < row.length - 1) cells.push('');
    } else cells[cells.length - 1] += row[i];
  }
  return cells.map((cell) => cell.trim());
}

function isTableAt(lines, at) {
  if (!lines[at].includes('|') || at + 1 >= lines.length || !/^[\s|:-]{1,2000}$/.test(lines[at + 1]) || !lines[at + 1].includes('-')) return false;
  const rule = cellsOf(lines[at + 1]);
  return rule.length === cellsOf(lines[at]).length && rule.every((cell) => /^:?-{1,200}:?$/.test(cell));
}

function beginsBlock(lines, at) {
  const line = lines[at];
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || /^ {0,3}>/.test(line) || ITEM.test(line) || isTableAt(lines, at);
}

function fenced(lines, at, out) {
  const mark = FENCE.exec(lines[at])[1];
  const body = [];
  let end = at + 1;
  for (; end < lines.length; end++) {
    const line = lines[end].trim();
    if (line.length >= mark.length && line === mark[0].repeat(line.length)) break;
    body.push(lines[end]);
  }
  out.push(el('pre', {class: 'source'}, el('code', {text: body.join('\n')})));
  return end + 1;
}

function heading(lines, at, out) {
  const level = HEADING.exec(lines[at])[1].length;
  const words = lines[at].trim().slice(level).trim();
  let end = words.length;
  while (end > 0 && words[end - 1] === '#') end--;
  const title = end === words.length || (end > 0 && words[end - 1] !== ' ') ? words : words.slice(0, end).trim();
  out.push(el(`h${Math.min(6, level + 2)}`, {}, ...inline(title))); // the page has headings of its own above
  return at + 1;
}

function quote(lines, at, out, depth) {
  const body = [];
  let end = at;
  for (; end < lines.length && /^ {0,3}>/.test(lines[end]); end++) body.push(lines[end].replace(/^ {0,3}> ?/, ''));
  out.push(el('blockquote', {}, ...blocks(body, depth + 1)));
  return end;
}

function tableAt(lines, at, out) {
  const head = cellsOf(lines[at]);
  const aligned = cellsOf(lines[at + 1]).map((cell) => cell.endsWith(':') && !cell.startsWith(':') ? 'number' : '');
  const rows = [];
  let end = at + 2;
  for (; end < lines.length && lines[end].trim() !== '' && lines[end].includes('|'); end++) rows.push(cellsOf(lines[end]));
  const row = (tag, cells) => el('tr', {}, ...head.map((_, i) => el(tag, {class: aligned[i]}, ...inline(cells[i] ?? ''))));
  out.push(el('div', {class: 'scroll'}, el('table', {class: 'plain'}, el('thead', {}, row('th', head)),
                                           el('tbody', {}, ...rows.map((cells) => row('td', cells))))));
  return end;
}

// Reads the items of a list: lines that are indented as far as the text of an item belong to it.
function list(lines, at, out, depth) {
  const ordered = /\d/.test(ITEM.exec(lines[at])[2]);
  const base = ITEM.exec(lines[at])[1].length;
  const items = [];
  let loose = false;
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (item && item[1].length <= base + 1 && !RULE.test(lines[end])) {
      if (item[1].length < base || /\d/.test(item[2]) !== ordered) break;
      items.push({indent: item[0].length, lines: [lines[end].slice(item[0].length)]});
      end++;
    } else if (lines[end].trim() === '') {
      let next = end;
      while (next < lines.length && lines[next].trim() === '') next++;
      const goesOn = next < lines.length && (indentOf(lines[next]) > base + 1 || (ITEM.test(lines[next]) && indentOf(lines[next]) >= base));
      if (!goesOn) break;
      loose = loose || indentOf(lines[next]) > base + 1;
      while (end < next) items[items.length - 1].lines.push(lines[end++]);
    } else if (indentOf(lines[end]) > base || !beginsBlock(lines, end)) {
      const {indent} = items[items.length - 1];
      items[items.length - 1].lines.push(lines[end].slice(Math.min(indent, indentOf(lines[end]))));
      end++;
    } else break;
  }
  const first = Number.parseInt(ITEM.exec(lines[at])[2], 10);
  out.push(el(ordered ? 'ol' : 'ul', ordered && first !== 1 ? {start: first} : {}, ...items.map(({lines: body}) => {
    const box = /^\[([ xX])\] /.exec(body[0]);
    if (box) body[0] = `${box[1] === ' ' ? '☐' : '☑'} ${body[0].slice(4)}`;
    const children = depth >= DEEPEST ? [body.join('\n')] : blocks(body, depth + 1);
    const [only] = children;
    return el('li', {}, ...!loose && only instanceof Element && only.localName === 'p' ? [...only.childNodes, ...children.slice(1)] : children);
  })));
  return end;
}

function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (line.trim() === '') at++;
    else if (FENCE.test(line)) at = fenced(lines, at, out);
    else if (HEADING.test(line)) at = heading(lines, at, out);
    else if (RULE.test(line)) at = out.push(el('hr')) && at + 1;
    else if (depth < DEEPEST && /^ {0,3}>/.test(line)) at = quote(lines, at, out, depth);
    else if (isTableAt(lines, at)) at = tableAt(lines, at, out);
    else if (depth < DEEPEST && ITEM.test(line)) at = list(lines, at, out, depth);
    else {
      const from = at++;
      while (at < lines.length && lines[at].trim() !== '' && (depth >= DEEPEST || !beginsBlock(lines, at))) at++;
      out.push(el('p', {}, ...inline(lines.slice(from, at).map((one) => one.trimStart()).join('\n'))));
    }
  }
  return out;
}

// Returns the elements of a text.
export function rendered(text) {
  return blocks(text.replaceAll('\r\n', '\n').replaceAll('\t', '    ').split('\n'), 0);
}
