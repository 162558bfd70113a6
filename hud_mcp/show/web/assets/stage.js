// The picture of one step, before or after it, with what was done on it.

import { el, say } from './dom.js';
import { drawMarks } from './marks.js';
import { clip } from './words.js';

export const canChoose = (step, side) => step[side] !== null && (side === 'after' || step.actions.length > 0);

/** An action is drawn on the picture that the agent had before it; a look shows what it saw. */
export function sideOf(step, wanted) {
  const side = wanted === 'before' || !step.after ? 'before' : 'after';
  return canChoose(step, side) ? side : 'after';
}

/**
 * named: whether its elements have ids; one stage of a page may.
 * picture: what a shot's picture is: { url }, or { problem } in words.
 * choose: told which side was asked for.
 */
export class Stage {
  constructor({ named, picture, choose }) {
    const part = (name, kind, attributes = {}, ...children) =>
      (this[name] = el(kind, { ...attributes, id: named ? attributes.id ?? name : null }, ...children));
    const side = name => part(`side-${name}`, 'button', { type: 'button', click: () => choose(name) },
      name === 'before' ? 'Before' : 'After');
    this.source = picture;
    this.root = part('stage', 'figure', { class: 'stage' },
      part('frame', 'div', { class: 'frame' },
        part('picture', 'img', { alt: '', decoding: 'sync', hidden: true, error: () => this.broke() }),
        part('placeholder', 'p', { class: 'placeholder', hidden: true }),
        part('marks', 'div', { class: 'marks', 'aria-hidden': 'true' })),
      el('figcaption', {},
        el('span', { class: 'sides', role: 'group', 'aria-label': 'Which picture' }, side('before'), side('after')),
        part('caption', 'span', { class: 'caption' })));
  }

  draw(step, wanted) {
    const side = sideOf(step, wanted), shot = step[side];
    for (const name of ['before', 'after']) {
      this[`side-${name}`].setAttribute('aria-pressed', side === name);
      this[`side-${name}`].setAttribute('aria-disabled', !canChoose(step, name));
    }
    this.show(shot, step.index, side);
    const drawn = side === 'before' || !canChoose(step, 'before') ? step.actions : [];
    this.marks.replaceChildren(...(shot ? drawMarks(drawn, shot) : []));
    this.caption.textContent = captionOf(step, side);
  }

  show(shot, index, side) {
    const image = this.picture;
    this.frame.style.setProperty('--ratio', shot ? shot.width / shot.height : 1.6);
    const found = shot ? this.source(shot) : { problem: 'No picture was taken in this step.' };
    if (found.problem) {
      image.hidden = true;
      image.removeAttribute('src');
      say(this.placeholder, found.problem);
      return;
    }
    say(this.placeholder, '');
    image.hidden = false;
    image.alt = `The screen ${side} step ${index + 1}`;
    image.dataset.sha256 = shot.sha256;
    if (image.getAttribute('src') !== found.url) image.src = found.url;
  }

  async broke() {
    const source = this.picture.getAttribute('src');
    if (source === null) return;
    this.picture.hidden = true;
    const said = await this.source.why?.(source) ?? 'The picture is damaged: it cannot be shown.';
    if (this.picture.getAttribute('src') === source) say(this.placeholder, said);
  }
}

function captionOf(step, side) {
  const unplaced = step.actions.filter(action => action.state !== 'not performed' &&
    !action.point && !action.path && (!action.scroll || action.named));
  const number = step.index + 1;
  if (!step[side]) return `No picture was taken in step ${number}.`;
  if (side === 'after' && step.before && step.actions.length) return `After step ${number}`;
  const words = unplaced.map(action => action.words).join('; ');
  const from = side === 'before' ? `As step ${number} found it` : `As step ${number} left it`;
  return clip(words ? `${from}: ${words}` : from, 300);
}
