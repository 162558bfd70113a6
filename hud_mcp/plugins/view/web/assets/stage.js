// The picture of one step, before or after it, with what was done on it, or with what changed.

import { el, say } from './dom.js';
import { drawMarks } from './marks.js';
import { changedRegions } from './pixels.js';
import { clip, hasHash, plural } from './words.js';
import { Zoom } from './zoom.js';

const SIDES = { before: 'Before', after: 'After', changes: 'Changes' };

export function canChoose(step, side) {
  if (side === 'changes') return step.before !== null && step.after !== null;
  return step[side] !== null && (side === 'after' || step.actions.length > 0);
}

/** An action is drawn on the picture that the agent had before it; a look shows what it saw. */
export function sideOf(step, wanted) {
  if (wanted === 'changes' && canChoose(step, 'changes')) return wanted;
  const side = wanted !== 'after' || !step.after ? 'before' : 'after';
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
    const side = name => part(`side-${name}`, 'button', { type: 'button', click: () => choose(name) }, SIDES[name]);
    this.source = picture;
    part('frame', 'div', { class: 'frame' },
      part('picture', 'img', { alt: '', decoding: 'sync', draggable: 'false', hidden: true, error: () => this.broke() }),
      part('placeholder', 'p', { class: 'placeholder', hidden: true }),
      part('marks', 'div', { class: 'marks', 'aria-hidden': 'true' }));
    part('viewport', 'div', { class: 'viewport', role: 'group', 'aria-label': 'The picture' }, this.frame);
    this.zoom = new Zoom({ viewport: this.viewport, frame: this.frame, named });
    this.root = part('stage', 'figure', { class: 'stage' }, this.viewport,
      el('figcaption', {},
        el('span', { class: 'sides', role: 'group', 'aria-label': 'Which picture' }, ...Object.keys(SIDES).map(side)),
        part('caption', 'span', { class: 'caption' }), this.zoom.root));
  }

  draw(step, wanted) {
    const side = sideOf(step, wanted), shot = side === 'changes' ? step.after : step[side];
    for (const name of Object.keys(SIDES)) {
      this[`side-${name}`].setAttribute('aria-pressed', side === name);
      this[`side-${name}`].setAttribute('aria-disabled', !canChoose(step, name));
    }
    this.drawn = step;
    this.show(shot, step.index, side === 'before' ? side : 'after');
    // On no other picture than that which was acted on: the first step has none before it, perhaps.
    const drawn = side === 'before' ? step.actions : [];
    this.marks.replaceChildren(...(shot ? drawMarks(drawn, shot) : []));
    this.caption.textContent = captionOf(step, side);
    if (side === 'changes') this.drawChanges(step);
  }

  /** Outlines the regions that are others than before the step. */
  async drawChanges(step) {
    const sources = [step.before, step.after].map(shot => (hasHash(shot) ? this.source(shot) : {}));
    const later = (words, nodes = []) => {
      if (this.drawn !== step || this['side-changes'].getAttribute('aria-pressed') !== 'true') return;
      this.caption.textContent = words;
      this.marks.replaceChildren(...nodes);
    };
    if (sources.some(({ url }) => !url)) return later('A picture is missing, so nothing can be compared.');
    try {
      const { regions, share } = await changedRegions(step.before, step.after, sources.map(({ url }) => url));
      later(changeWords(regions, share), regions.map(regionMark));
    } catch {
      later('The pictures cannot be compared.');
    }
  }

  show(shot, index, side) {
    const image = this.picture;
    this.root.style.setProperty('--ratio', shot ? shot.width / shot.height : 1.6);
    if (shot) this.zoom.sized(shot.width);
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

function changeWords(regions, share) {
  if (!regions.length) return 'Nothing changed in the picture.';
  const percent = share < 0.01 ? 'less than 1 %' : `${Math.round(100 * share)} %`;
  return `${plural(regions.length, 'region')} changed, ${percent} of the picture`;
}

function regionMark({ x, y, width, height }) {
  const node = el('span', { class: 'region' });
  Object.assign(node.style, { left: `${100 * x}%`, top: `${100 * y}%`, width: `${100 * width}%`, height: `${100 * height}%` });
  return node;
}

function captionOf(step, side) {
  if (side === 'changes') return 'Comparing …';
  const isDrawn = action => side === 'before' && (action.point || action.path || (action.scroll && !action.named));
  const unplaced = step.actions.filter(action => action.state !== 'not performed' && !isDrawn(action));
  const number = step.index + 1;
  if (!step[side]) return `No picture was taken in step ${number}.`;
  if (side === 'after' && step.before && step.actions.length) return `After step ${number}`;
  const words = unplaced.map(action => action.words).join('; ');
  const from = side === 'before' ? `As step ${number} found it` : `As step ${number} left it`;
  return clip(words ? `${from}: ${words}` : from, 300);
}
