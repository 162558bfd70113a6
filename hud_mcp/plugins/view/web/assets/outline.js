// All steps in words, of which one can be found.

import { $, el } from './dom.js';
import { clip, plural, secondsText } from './words.js';

export class Outline {
  /** go: told which step was asked for; filtered: told when the filter was changed. */
  constructor({ go, filtered = () => {} }) {
    Object.assign(this, { go, rows: [], first: 0, step: null });
    for (const [id, event] of [['find-step', 'input'], ['only-failed', 'change']]) {
      $(id).addEventListener(event, () => {
        this.filter();
        filtered();
      });
    }
    $('outline').addEventListener('click', event => {
      const button = event.target.closest('button');
      if (button) go(Number(button.dataset.step));
    });
  }

  get place() {
    return { find: $('find-step').value, failed: $('only-failed').checked };
  }

  put({ find, failed }) {
    $('find-step').value = find;
    $('only-failed').checked = failed;
    this.filter();
  }

  draw(rows, first) {
    Object.assign(this, { rows, first });
    $('outline').replaceChildren(...rows.map(([words, failed, at], index) =>
      el('li', { value: first + index + 1 },
        el('button', { type: 'button', class: failed ? 'failed' : null, 'data-step': first + index },
          el('span', { class: 'count', 'aria-hidden': 'true' }, String(first + index + 1)),
          el('span', { class: 'words' }, clip(words, 200), failed ? el('em', { class: 'state' }, ' failed') : null),
          Number.isFinite(at) ? el('span', { class: 'quiet' }, secondsText(at)) : null))));
    this.filter();
  }

  filter() {
    const { find, failed } = this.place, wanted = find.trim().toLowerCase();
    let count = 0;
    for (const [index, item] of [...$('outline').children].entries()) {
      const [words, hasFailed, , , , thoughts = ''] = this.rows[index];
      item.hidden = (failed && !hasFailed) || !`${words}\n${thoughts}`.toLowerCase().includes(wanted);
      count += !item.hidden;
    }
    const all = plural(this.rows.length, 'step');
    $('outline-shown').textContent = count === this.rows.length ? all : `${count.toLocaleString('en')} of ${all}`;
  }

  mark(step) {
    const button = at => $('outline').children[at - this.first]?.firstElementChild;
    button(this.step)?.removeAttribute('aria-current');
    this.step = step;
    const now = button(step), panel = $('outline').parentElement;
    now?.setAttribute('aria-current', 'step');
    if (!now || !now.offsetParent || panel.scrollHeight <= panel.clientHeight) return;
    const shown = panel.getBoundingClientRect(), at = now.getBoundingClientRect();
    if (at.top < shown.top || at.bottom > shown.bottom) panel.scrollTop += at.top - shown.top - shown.height / 3;
  }
}
