// All steps in a row: their pictures, or their words where they have none, and when each was.

import { el } from './dom.js';
import { clip, secondsText } from './words.js';

const MOST_CELLS_SHOWN = 600;

export class Film {
  /** root, axis: where the strip and the time axis go; picture: what a shot's picture is; go: told which step was asked for. */
  constructor({ root, axis, picture, go }) {
    Object.assign(this, { root, axis, picture, go, cells: new Map(), at: null });
    this.watch = new IntersectionObserver(entries => this.appear(entries), { root, rootMargin: '0px 240px' });
    root.addEventListener('click', event => {
      const cell = event.target.closest('button');
      if (cell) go(Number(cell.dataset.step));
    });
    axis.addEventListener('click', event => this.pick(event));
  }

  /** Draws rows of [words, failed, at_s, took_s, shot], which begin at a step's number. */
  draw(rows, first, spans = []) {
    this.watch.disconnect();
    this.cells.clear();
    Object.assign(this, { rows, first, at: null });
    const every = Math.ceil(rows.length / MOST_CELLS_SHOWN);
    for (let at = 0; at < rows.length; at += every) this.cells.set(first + at, this.cell(rows[at], first + at));
    this.root.replaceChildren(...this.cells.values());
    for (const cell of this.cells.values()) if (cell.shot) this.watch.observe(cell);
    this.drawAxis(spans);
  }

  cell([words, failed, , , shot], step) {
    const name = `Step ${step + 1}: ${clip(words, 120)}${failed ? ', failed' : ''}`;
    const cell = el('button', { type: 'button', tabindex: -1, 'data-step': step, 'aria-label': name, title: name, class: failed ? 'failed' : null },
      shot ? null : el('span', { class: 'words' }, clip(words, 60)), el('span', { class: 'count' }, String(step + 1)));
    if (shot) cell.style.setProperty('--ratio', Math.max(0.6, Math.min(2.2, shot.width / shot.height || 1.6)));
    cell.shot = shot;
    return cell;
  }

  /** Loads the pictures of cells that come into view. */
  appear(entries) {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting || target.querySelector('img')) continue;
      const { url } = this.picture(target.shot);
      if (!url) continue;
      target.prepend(el('img', { src: url, alt: '', decoding: 'async', draggable: 'false' }));
      this.watch.unobserve(target);
    }
  }

  mark(step) {
    const shown = [...this.cells.keys()].findLast(at => at <= step) ?? this.first;
    this.cells.get(this.at)?.removeAttribute('aria-current');
    if (this.cells.has(this.at)) this.cells.get(this.at).tabIndex = -1;
    const cell = this.cells.get(shown);
    if (!cell) return;
    this.at = shown;
    cell.setAttribute('aria-current', 'step');
    cell.tabIndex = 0;
    const { root } = this, left = cell.offsetLeft - root.offsetLeft;
    if (left < root.scrollLeft || left + cell.offsetWidth > root.scrollLeft + root.clientWidth) {
      root.scrollLeft = left - root.clientWidth / 2 + cell.offsetWidth / 2;
    }
    const row = this.rows[step - this.first];
    if (row && this.head) this.head.style.left = `${100 * this.part(row[2])}%`;
  }

  part(seconds) {
    return this.span ? Math.max(0, Math.min(1, (seconds - this.from) / this.span)) : 0;
  }

  drawAxis(spans) {
    const timed = this.rows.filter(row => Number.isFinite(row[2]));
    const every = [...timed.map(row => [row[2], row[3]]), ...spans];
    this.from = Math.min(...every.map(([at]) => at), 0);
    this.span = Math.max(...every.map(([at, took]) => at + took), 0) - this.from;
    this.axis.hidden = timed.length < 2 || !this.span;
    if (this.axis.hidden) return;
    const bar = (kind, [at, took]) => {
      const node = el('span', { class: kind });
      node.style.left = `${100 * this.part(at)}%`;
      node.style.width = `${100 * Math.min(1, took / this.span)}%`;
      return node;
    };
    this.head = el('span', { class: 'head' });
    const first = Math.min(...every.map(([at]) => at));
    const line = el('span', { class: 'line' }, first > this.from ? bar('opening', [this.from, first - this.from]) : null, ...spans.map(each => bar('model', each)),
      ...timed.map(row => bar(row[1] ? 'did failed' : 'did', [row[2], row[3]])), this.head);
    this.axis.replaceChildren(el('span', {}, secondsText(this.from)), line, el('span', {}, secondsText(this.from + this.span)),
      el('span', { class: 'keys' },
        ...(first > this.from + this.span / 100 ? [el('i', { class: 'opening' }), `opening, ${secondsText(first - this.from)}`] : []),
        ...(spans.length ? [el('i', { class: 'model' }), 'model', el('i', { class: 'did' }), 'environment'] : [])));
  }

  pick(event) {
    const box = this.axis.querySelector('.line').getBoundingClientRect();
    const at = this.from + this.span * Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    const found = this.rows.findLastIndex(row => row[2] <= at);
    this.go(this.first + Math.max(0, found));
  }
}
