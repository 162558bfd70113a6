// Going through the steps of a trajectory, by slider, key or list.
//
// Steps come from an object: { count, first, at(index), load(index), outline(), errors(), hasPictures() }.
// `at` gives a step, or undefined while it is elsewhere; `load` brings it and those around it.

import { $, el } from './dom.js';
import { Panel } from './panel.js';
import { Stage, canChoose, sideOf } from './stage.js';
import { clip } from './words.js';

const MOST_TICKS = 400;

export class Player {
  constructor({ picture, preload = () => {}, link = () => null, failed = () => {}, moved = () => {} }) {
    Object.assign(this, { link, failed, preload, moved, steps: null, step: 0, side: 'before' });
    this.stage = new Stage({ named: true, picture, choose: side => this.choose(side) });
    this.panel = new Panel({ named: true });
    $('split').append(this.stage.root, this.panel.root);
    $('scrub').addEventListener('input', () => this.goTo(Number($('scrub').value) - 1));
    $('previous-step').addEventListener('click', () => this.goTo(this.step - 1));
    $('next-step').addEventListener('click', () => this.goTo(this.step + 1));
    $('all-steps').addEventListener('toggle', () => this.buildOutline());
    // In a single file, pictures stand after the script.
    addEventListener('DOMContentLoaded', () => this.steps?.count && this.draw());
  }

  open(steps, step) {
    this.steps = steps;
    this.step = Math.max(steps.first ?? 0, Math.min(step, steps.count - 1));
    this.side = 'before';
    $('all-steps').open = false;
    $('outline').replaceChildren();
    this.resize();
    if (steps.count) this.draw();
  }

  /** Takes in that there are more steps than before. */
  resize() {
    const { count, first = 0 } = this.steps;
    $('player').hidden = count === 0;
    if (!count) return;
    $('scrub').min = first + 1;
    $('scrub').max = count;
    this.stage.root.hidden = !this.steps.hasPictures();
    $('split').classList.toggle('no-pictures', this.stage.root.hidden);
    const errors = this.steps.errors().slice(0, MOST_TICKS);
    $('error-ticks').replaceChildren(...errors.map(index => errorTick(index - first, count - first)));
  }

  close() {
    this.steps = null;
  }

  goTo(step) {
    const { count, first = 0 } = this.steps;
    this.step = Math.max(first, Math.min(step, count - 1));
    this.draw();
    this.moved(this.step);
  }

  draw() {
    const { step: index, steps } = this;
    const { count, first = 0 } = steps;
    const step = steps.at(index);
    $('scrub').value = index + 1;
    $('position').textContent = `${index + 1} / ${count}`;
    $('previous-step').setAttribute('aria-disabled', index === first);
    $('next-step').setAttribute('aria-disabled', index === count - 1);
    $('split').setAttribute('aria-busy', step === undefined);
    const words = step ? clip(step.words, 120) : 'loading';
    $('scrub').setAttribute('aria-valuetext', `Step ${index + 1} of ${count}: ${words}`);
    this.markOutline();
    if (step === undefined) {
      this.wait(index);
      return;
    }
    this.panel.draw(step, this.link(index));
    if (!this.stage.root.hidden) {
      this.stage.draw(step, this.side);
      this.preload(steps.at(index + 1)?.after ?? null);
    }
    if (index + 10 < count && steps.at(index + 10) === undefined) steps.load(index + 10).catch(() => {});
  }

  async wait(index) {
    const { steps } = this;
    try {
      await steps.load(index);
    } catch (error) {
      this.failed(error);
      return;
    }
    if (this.steps === steps && this.step === index) this.draw();
  }

  choose(side) {
    const step = this.steps.at(this.step);
    if (!step || !canChoose(step, side)) return;
    this.side = side;
    this.draw();
  }

  swap() {
    const step = this.steps.at(this.step);
    if (step) this.choose(sideOf(step, this.side) === 'before' ? 'after' : 'before');
  }

  /** Answers the keys of a player; says whether it did. */
  pressed(event) {
    if (!this.steps?.count) return false;
    const { count, first = 0 } = this.steps;
    if (event.key === 'b' || event.key === 'B') {
      this.swap();
      return true;
    }
    const scrolls = event.target instanceof HTMLElement && event.target.matches('pre, .prompt, .outline *');
    const to = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1 }[event.key] ??
      (scrolls ? undefined : { Home: first, End: count - 1 }[event.key]);
    if (to === undefined) return false;
    this.goTo(to);
    return true;
  }

  buildOutline() {
    if (!$('all-steps').open || $('outline').childElementCount) return;
    const { first = 0 } = this.steps;
    $('outline').setAttribute('start', first + 1);
    $('outline').replaceChildren(...this.steps.outline().map(([words, failed], index) =>
      el('li', {}, el('button', { type: 'button', class: failed ? 'failed' : null, click: () => this.goTo(first + index) },
        clip(words, 200), failed ? el('em', { class: 'state' }, ' failed') : null))));
    this.markOutline();
  }

  markOutline() {
    $('outline').querySelector('[aria-current]')?.removeAttribute('aria-current');
    const { first = 0 } = this.steps;
    $('outline').children[this.step - first]?.firstElementChild.setAttribute('aria-current', 'step');
  }
}

function errorTick(index, count) {
  const tick = el('span');
  tick.style.setProperty('--at', count > 1 ? index / (count - 1) : 0);
  return tick;
}

/** Steps that are all here. */
export function wholeSteps(steps) {
  return {
    count: steps.length,
    at: index => steps[index],
    load: async () => {},
    outline: () => steps.map(step => [step.words, Boolean(step.error)]),
    errors: () => steps.flatMap((step, index) => (step.error ? [index] : [])),
    hasPictures: () => steps.some(step => step.after),
  };
}
