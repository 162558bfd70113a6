// Going through the steps of a trajectory, by slider, key, film, list or by playing it.
//
// Steps come from an object: { count, first, at(index), load(index), outline(), spans(), errors(), hasPictures() }.
// `at` gives a step, or undefined while it is elsewhere; `load` brings it and those around it.
// `outline` gives [words, failed, at_s, took_s, shot] of each.

import { $, el, say } from './dom.js';
import { Film } from './film.js';
import { Outline } from './outline.js';
import { Panel } from './panel.js';
import { Stage, canChoose, sideOf } from './stage.js';
import { Tabs } from './tabs.js';
import { TextView } from './text.js';
import { clip } from './words.js';

const MOST_TICKS = 400, LEAST_WAIT_MS = 500, MOST_WAIT_MS = 2000;

export class Player {
  constructor({ picture, preload = () => {}, link = () => null, failed = () => {}, moved = () => {} }) {
    Object.assign(this, { link, failed, preload, moved, steps: null, step: 0, side: 'before', playing: null });
    this.stage = new Stage({ named: true, picture, choose: side => this.choose(side) });
    this.panel = new Panel({ named: true });
    this.text = new TextView({ named: true });
    this.tabs = new Tabs($('tabs'), () => {
      this.outline.mark(this.step);
      this.moved(this.step, { jump: true });
    });
    this.outline = new Outline({ go: step => this.goTo(step, { jump: true }), filtered: () => this.moved(this.step) });
    this.film = new Film({ root: $('film'), axis: $('axis'), picture, go: step => this.goTo(step, { jump: true }) });
    $('stage-place').append(this.stage.root);
    $('panel-step').prepend(this.panel.root);
    $('panel-observation').append(this.text.root);
    $('scrub').addEventListener('input', () => this.goTo(Number($('scrub').value) - 1));
    $('previous-step').addEventListener('click', () => this.goTo(this.step - 1));
    $('next-step').addEventListener('click', () => this.goTo(this.step + 1));
    $('play').addEventListener('click', () => this.play());
    this.tabs.show('step');
    // What stays below the head, on a narrow screen, knows how tall it is.
    new ResizeObserver(([{ target }]) => {
      document.documentElement.style.setProperty('--head', `${target.offsetHeight}px`);
    }).observe(document.querySelector('.head-of-run'));
    // In a single file, pictures stand after the script.
    addEventListener('DOMContentLoaded', () => {
      if (!this.steps?.count) return;
      this.resize();
      this.draw();
    });
  }

  open(steps, step, side = 'before') {
    this.stop();
    this.steps = steps;
    this.step = Math.max(steps.first ?? 0, Math.min(step, steps.count - 1));
    this.side = side;
    this.resize();
    if (steps.count) this.draw();
  }

  /** Takes in that there are more steps than before. */
  resize() {
    const { count, first = 0 } = this.steps;
    $('player').hidden = this.panel.root.hidden = count === 0;
    $('no-steps').hidden = count > 0;
    this.tabs.offer('steps', count > 0);
    if (!count) return;
    $('scrub').min = first + 1;
    $('scrub').max = count;
    const pictured = this.steps.hasPictures();
    this.stage.root.hidden = !pictured;
    $('workbench').classList.toggle('no-pictures', !pictured);
    // Where nothing is seen, what is read takes the stage.
    const place = pictured ? $('panel-observation') : $('stage-place');
    if (this.text.root.parentElement !== place) place.append(this.text.root);
    // A conversation is wide: it takes the stage too, above what is read.
    if (pictured) this.panel.root.insertBefore(this.panel.conversation, this.panel['step-error']);
    else if (this.panel.conversation.parentElement !== place) place.prepend(this.panel.conversation);
    this.tabs.offer('observation', pictured);
    const errors = this.steps.errors().slice(0, MOST_TICKS), rows = this.steps.outline();
    $('error-ticks').replaceChildren(...errors.map(index => errorTick(index - first, count - first)));
    this.film.draw(rows, first, this.steps.spans?.() ?? []);
    this.outline.draw(rows, first);
  }

  close() {
    this.stop();
    this.steps = null;
  }

  goTo(step, { jump = false, plays = false } = {}) {
    const { count, first = 0 } = this.steps;
    if (!plays) this.stop();
    this.step = Math.max(first, Math.min(step, count - 1));
    this.draw();
    this.moved(this.step, { jump });
  }

  draw() {
    const { step: index, steps } = this;
    const { count, first = 0 } = steps;
    const step = steps.at(index);
    $('scrub').value = index + 1;
    $('position').textContent = `${index + 1} / ${count}`;
    $('previous-step').setAttribute('aria-disabled', index === first);
    $('next-step').setAttribute('aria-disabled', index === count - 1);
    $('workbench').setAttribute('aria-busy', step === undefined);
    const words = step ? clip(step.words, 120) : 'loading';
    $('scrub').setAttribute('aria-valuetext', `Step ${index + 1} of ${count}: ${words}`);
    this.film.mark(index);
    this.outline.mark(index);
    if (step === undefined) {
      this.wait(index);
      return;
    }
    this.panel.draw(step, this.link(index), steps);
    this.drawText(step);
    say($('raw'), step.raw ? JSON.stringify({ ...step.raw, observation_text: step.text }, null, 2) : 'What is recorded is not here.');
    if (!this.stage.root.hidden) {
      this.stage.draw(step, this.side);
      this.preload(steps.at(index + 1)?.after ?? null);
    }
    if (index + 10 < count && steps.at(index + 10) === undefined) steps.load(index + 10).catch(() => {});
  }

  async drawText(step) {
    const { steps } = this;
    this.text.draw(step, lastText(steps, step.index));
    if (step.index > (steps.first ?? 0) && steps.at(step.index - 1) === undefined) {
      await steps.load(step.index - 1).catch(() => {});
      if (this.steps === steps && this.step === step.index) this.text.draw(step, lastText(steps, step.index));
    }
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
    if (step && !canChoose(step, side)) return; // while it loads, what was asked for is kept
    this.side = side;
    this.draw();
    this.moved(this.step);
  }

  swap() {
    const step = this.steps.at(this.step);
    if (step) this.choose(sideOf(step, this.side) === 'before' ? 'after' : 'before');
  }

  play() {
    if (this.playing !== null) return this.stop();
    if (this.step >= this.steps.count - 1) this.goTo(this.steps.first ?? 0);
    $('play').setAttribute('aria-pressed', true);
    $('play').setAttribute('aria-label', 'Pause');
    this.later();
  }

  later() {
    const took = this.steps.at(this.step)?.took_s ?? 1;
    this.playing = setTimeout(() => {
      if (!this.steps || this.step >= this.steps.count - 1) return this.stop();
      this.goTo(this.step + 1, { plays: true });
      this.later();
    }, Math.min(MOST_WAIT_MS, Math.max(LEAST_WAIT_MS, 1000 * took)));
  }

  stop() {
    clearTimeout(this.playing);
    this.playing = null;
    $('play').setAttribute('aria-pressed', false);
    $('play').setAttribute('aria-label', 'Play');
  }

  /** Answers the keys of a player; says whether it did. */
  pressed(event) {
    if (!this.steps?.count) return false;
    const { count, first = 0 } = this.steps, { key, target } = event;
    const on = selector => target instanceof HTMLElement && target.matches(selector);
    if (key === ' ' && !on('button, summary, a, [role=tabpanel], pre')) {
      this.play();
      return true;
    }
    const side = { b: () => this.swap(), c: () => this.choose('changes') }[key.toLowerCase()];
    if (side) {
      side();
      return true;
    }
    if (!this.stage.root.hidden && this.stage.zoom.pressed(key)) return true;
    const scrolls = on('pre, .prompt, .outline *, [role=tabpanel]'), pans = on('.viewport');
    const to = pans ? undefined : { ArrowLeft: this.step - 1, ArrowRight: this.step + 1 }[key] ??
      (scrolls ? undefined : { Home: first, End: count - 1 }[key]);
    if (to === undefined) return false;
    this.goTo(to);
    if (on('.film *')) $('film').querySelector('[aria-current]')?.focus({ preventScroll: true });
    return true;
  }
}

/** The last text that was read before a step; null where none is known. */
export function lastText(steps, index) {
  for (let at = index - 1; at >= (steps.first ?? 0); at--) {
    const step = steps.at(at);
    if (step === undefined) return null;
    if (step.text !== null) return step.text;
  }
  return null;
}

function errorTick(index, count) {
  const tick = el('span');
  tick.style.setProperty('--at', count > 1 ? index / (count - 1) : 0);
  return tick;
}

/** The picture of a step in the film: as the stage shows it at first, which is what it acted on. */
const filmShot = step => step[sideOf(step, 'before')];

/** What the agent and its model wrote in a step. */
const thoughtsOf = ({ actions, turns = [] }) => [
  ...actions.map(({ note }) => note), ...turns.flatMap(({ reasoning, text }) => [reasoning, text]),
].filter(Boolean).join('\n');

/** Steps that are all here. */
export function wholeSteps(steps, spans = []) {
  return {
    count: steps.length,
    at: index => steps[index],
    load: async () => {},
    outline: () => steps.map(step => [step.words, Boolean(step.error), step.after_s, step.took_s, filmShot(step), thoughtsOf(step)]),
    spans: () => spans,
    errors: () => steps.flatMap((step, index) => (step.error ? [index] : [])),
    hasPictures: () => steps.some(step => step.after),
  };
}
