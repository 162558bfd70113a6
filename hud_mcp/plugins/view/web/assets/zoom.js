// How large a picture is shown: as it fits, pixel for pixel, or nearer, in place.

import { el } from './dom.js';

const STEP = 1.25, LEAST = 0.1, MOST = 8;

export class Zoom {
  /** viewport: what scrolls; frame: what is sized within it; named: whether its buttons have ids. */
  constructor({ viewport, frame, named }) {
    Object.assign(this, { viewport, frame, factor: null, width: 1 });
    const part = (id, words, label, click) => el('button', { type: 'button', id: named ? id : null, 'aria-label': label, title: label, click }, words);
    this.fit = part('zoom-fit', 'Fit', 'Fit the picture', () => this.set(null));
    this.whole = part('zoom-whole', '100 %', '100 %: one pixel for one', () => this.set(1));
    this.shown = el('output', { class: 'quiet', id: named ? 'zoom-now' : null });
    this.root = el('span', { class: 'zooms', role: 'group', 'aria-label': 'Size of the picture' },
      this.fit, this.whole, part('zoom-out', '−', 'Smaller', () => this.by(1 / STEP)), part('zoom-in', '+', 'Larger', () => this.by(STEP)), this.shown);
    viewport.addEventListener('dblclick', event => this.set(this.factor === null ? Math.max(1, 2 * this.fitting) : null, event));
    viewport.addEventListener('wheel', event => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.by(event.deltaY < 0 ? STEP : 1 / STEP, event);
    }, { passive: false });
    viewport.addEventListener('pointerdown', event => this.grab(event));
    this.draw();
  }

  /** The factor at which the picture fits. */
  get fitting() {
    return this.frame.clientWidth / this.width || 1;
  }

  by(times, event) {
    this.set((this.factor ?? this.fitting) * times, event);
  }

  /** Shows a factor, or what fits where it is null; what is under the pointer, or in the middle, stays there. */
  set(factor, event) {
    const { viewport, frame } = this, box = frame.getBoundingClientRect(), view = viewport.getBoundingClientRect();
    const at = event ? [event.clientX, event.clientY] : [view.left + view.width / 2, view.top + view.height / 2];
    const part = [(at[0] - box.left) / box.width, (at[1] - box.top) / box.height];
    this.factor = factor === null ? null : Math.min(MOST, Math.max(LEAST, factor));
    this.draw();
    if (this.factor === null) return;
    const next = frame.getBoundingClientRect();
    viewport.scrollLeft += next.left + part[0] * next.width - at[0];
    viewport.scrollTop += next.top + part[1] * next.height - at[1];
  }

  sized(width) {
    this.width = width;
    this.draw();
  }

  draw() {
    const { factor, viewport, frame } = this, isFit = factor === null;
    viewport.classList.toggle('zoomed', !isFit);
    if (isFit) viewport.removeAttribute('tabindex');
    else viewport.tabIndex = 0;
    frame.style.width = isFit ? '' : `${Math.round(factor * this.width)}px`;
    this.fit.setAttribute('aria-pressed', isFit);
    this.whole.setAttribute('aria-pressed', factor === 1);
    this.shown.textContent = isFit ? '' : `${Math.round(100 * factor)} %`;
  }

  grab(event) {
    if (this.factor === null || event.button !== 0 || event.pointerType !== 'mouse') return;
    const { viewport } = this, from = [event.clientX + viewport.scrollLeft, event.clientY + viewport.scrollTop];
    const move = moved => {
      viewport.scrollLeft = from[0] - moved.clientX;
      viewport.scrollTop = from[1] - moved.clientY;
    };
    viewport.setPointerCapture(event.pointerId);
    viewport.addEventListener('pointermove', move);
    viewport.addEventListener('pointerup', () => viewport.removeEventListener('pointermove', move), { once: true });
    event.preventDefault();
  }

  pressed(key) {
    const done = { '+': () => this.by(STEP), '=': () => this.by(STEP), '-': () => this.by(1 / STEP), 0: () => this.set(null), 1: () => this.set(1) }[key];
    done?.();
    return done !== undefined;
  }
}
