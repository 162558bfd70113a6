// What the agent read in a step: the whole text, or what changed since the text before it.

import { el } from './dom.js';
import { countSigns, foldSame, lineDiff } from './lines.js';
import { plural } from './words.js';

/** The world's own text of changes: its marked lines are what it says has changed. */
const OWN_CHANGES = 'Changed since the last text:';

/** named: whether its elements have ids; one of a page may. */
export class TextView {
  constructor({ named }) {
    this.changes = false;
    const whole = this.button('Whole text', false), changed = this.button('Changes', true);
    this.buttons = [whole, changed];
    this.note = el('span', { class: 'quiet' });
    this.text = el('pre', { id: named ? 'seen' : null, tabindex: 0, role: named ? 'region' : 'group', 'aria-label': 'What it read then' });
    this.diff = el('pre', { id: named ? 'seen-changes' : null, class: 'diff', tabindex: 0, role: named ? 'region' : 'group', 'aria-label': 'What changed in the text', hidden: true });
    this.none = el('p', { class: 'quiet none', hidden: true });
    this.root = el('div', { class: 'text-view' },
      el('div', { class: 'text-bar' }, el('span', { class: 'sides', role: 'group', 'aria-label': 'Which text' }, whole, changed), this.note),
      this.text, this.diff, this.none);
  }

  button(words, changes) {
    return el('button', { type: 'button', 'aria-pressed': changes === this.changes, click: () => {
      this.changes = changes;
      this.show();
    } }, words);
  }

  /** Draws a step's text; `before` is the last text that was read before it, or null. */
  draw(step, before) {
    Object.assign(this, { step, before });
    this.text.replaceChildren(...(step.text ?? '').split('\n').map(textLine));
    this.text.hidden = !step.text;
    this.text.scrollTop = 0;
    this.none.textContent = 'It read no text.';
    this.lines = step.text && before !== null && !step.text.includes(OWN_CHANGES) ? lineDiff(before, step.text) : null;
    this.note.textContent = this.summary();
    this.show();
  }

  summary() {
    const { step, before, lines } = this;
    if (!step.text) return '';
    if (step.text.includes(OWN_CHANGES)) return 'The text itself says what changed.';
    if (before === null) return 'No text was read before it.';
    if (!lines) return 'The texts are too long to be compared.';
    const { more, less } = countSigns(lines);
    return more + less ? `${plural(more, 'line')} new, ${less.toLocaleString('en')} gone` : 'The same text as before.';
  }

  show() {
    const { step } = this;
    this.buttons.forEach((button, at) => button.setAttribute('aria-pressed', Boolean(at) === this.changes));
    this.none.hidden = Boolean(step.text);
    this.text.hidden = !step.text || this.changes;
    this.diff.hidden = !step.text || !this.changes;
    if (!this.diff.hidden) this.diff.replaceChildren(...this.changedLines());
  }

  changedLines() {
    const { step, lines } = this;
    if (step.text.includes(OWN_CHANGES)) {
      return step.text.split('\n').map(line => diffLine(/^[+-] /.test(line) ? line[0] : ' ', /^[+-] /.test(line) ? line.slice(2) : line));
    }
    if (!lines) return step.text.split('\n').map(line => diffLine(' ', line));
    return foldSame(lines).map(line => (typeof line === 'number'
      ? el('span', { class: 'same' }, `⋯ ${plural(line, 'line')} as before\n`) : diffLine(...line)));
  }
}

/** A line in which the refs stand back: people read the names before them. A page's own text has a backslash there. */
function withRefs(line) {
  return line.split(/(\\?\[(?:ref=\w+|(?:f\d+)?e\d+|link\d+)(?:\]| [^\]]*\]))/).map((part, at) => (at % 2 && part[0] === '[' ? el('span', { class: 'ref' }, part) : part));
}

/** A line whose rest, where it wraps, stands under its own words: the indent says what is inside of what. */
function textLine(line, at, lines) {
  const hang = Math.min(24, /^[ -]*/.exec(line)[0].length) + 2, node = el('span', { class: 'hanging' }, ...withRefs(at < lines.length - 1 ? `${line}\n` : line));
  node.style.paddingLeft = `${hang}ch`;
  node.style.textIndent = `-${hang}ch`;
  return node;
}

function diffLine(sign, line) {
  const kind = { '+': 'new', '-': 'gone' }[sign];
  return el('span', { class: kind ? `line ${kind}` : 'line' }, `${sign} ${line}\n`);
}
