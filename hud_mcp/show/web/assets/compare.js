// Two runs of one task side by side, step by step.

import { $, el, facts, say } from './dom.js';
import { gradeOf } from './grade.js';
import { Panel } from './panel.js';
import { Stage } from './stage.js';
import { linkTo, moment, plural, secondsText, titleOf, verdict } from './words.js';

export class ComparePage {
  constructor(source, failed) {
    this.failed = failed;
    this.step = 0;
    this.side = 'before';
    this.sides = ['first', 'second'].map(name => new Side(name, source, wanted => {
      this.side = wanted;
      this.draw();
    }));
    $('sides').append(...this.sides.map(side => side.root));
    $('scrub-both').addEventListener('input', () => this.goTo(Number($('scrub-both').value) - 1));
    $('previous-both').addEventListener('click', () => this.goTo(this.step - 1));
    $('next-both').addEventListener('click', () => this.goTo(this.step + 1));
  }

  show(runs) {
    this.sides.forEach((side, index) => side.open(runs[index].trajectory, runs[index].steps));
    const [first, second] = runs.map(run => run.trajectory);
    $('compare-title').textContent = first.task === second.task
      ? titleOf(first) : `${titleOf(first)} and ${titleOf(second)}`;
    $('compare-back').setAttribute('href', linkTo(first));
    this.side = 'before';
    this.count = Math.max(...runs.map(run => run.steps.count));
    $('compare-player').hidden = this.count === 0;
    $('scrub-both').max = Math.max(1, this.count);
    this.goTo(0);
  }

  goTo(step) {
    this.step = Math.max(0, Math.min(step, this.count - 1));
    this.draw();
  }

  draw() {
    $('scrub-both').value = this.step + 1;
    $('scrub-both').setAttribute('aria-valuetext', `Step ${this.step + 1} of ${this.count}`);
    $('position-both').textContent = `${this.step + 1} / ${this.count}`;
    $('previous-both').setAttribute('aria-disabled', this.step === 0);
    $('next-both').setAttribute('aria-disabled', this.step >= this.count - 1);
    for (const side of this.sides) side.draw(this.step, this.side).catch(this.failed);
  }

  pressed(event) {
    if (event.key === 'b' || event.key === 'B') {
      this.side = this.side === 'before' ? 'after' : 'before';
      this.draw();
      return true;
    }
    const scrolls = event.target instanceof HTMLElement && event.target.matches('pre');
    const to = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1 }[event.key] ??
      (scrolls ? undefined : { Home: 0, End: this.count - 1 }[event.key]);
    if (to === undefined) return false;
    this.goTo(to);
    return true;
  }
}

class Side {
  constructor(name, source, choose) {
    this.stage = new Stage({ named: false, picture: source.picture, choose });
    this.panel = new Panel({ named: false });
    this.title = el('a', { class: 'run-link' });
    this.facts = el('p', { class: 'facts' });
    this.verdict = el('p', { class: 'verdict' });
    this.ended = el('p', { class: 'quiet ended', hidden: true });
    this.grade = el('div', { class: 'grade' });
    this.root = el('section', { class: `side ${name}`, 'aria-label': `The ${name} run` },
      el('h2', {}, this.title), this.facts, this.verdict, this.stage.root, this.ended, this.panel.root,
      el('h3', {}, 'Grade'), this.grade);
  }

  open(trajectory, steps) {
    Object.assign(this, { trajectory, steps });
    this.title.textContent = trajectory.id;
    this.title.setAttribute('href', linkTo(trajectory));
    facts(this.facts, [moment(trajectory.started_at), plural(steps.count, 'step'), secondsText(trajectory.seconds)]);
    this.verdict.replaceChildren(...verdict(trajectory));
    this.grade.replaceChildren(...gradeOf(trajectory));
    this.stage.root.hidden = !steps.hasPictures();
    this.panel.root.hidden = steps.count === 0;
    this.index = -1;
  }

  /** Draws a step; a run that was shorter stays at its last one, and says so. */
  async draw(wanted, side) {
    const { steps } = this;
    const index = Math.min(wanted, steps.count - 1);
    this.index = index;
    say(this.ended, wanted > index ? `This run ended after ${plural(steps.count, 'step')}.` : '');
    if (index < 0) return;
    if (steps.at(index) === undefined) await steps.load(index);
    if (this.steps !== steps || this.index !== index) return;
    const step = steps.at(index);
    if (!this.stage.root.hidden) this.stage.draw(step, side);
    this.panel.draw(step, linkTo(this.trajectory, index));
  }
}
