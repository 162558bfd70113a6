// Two runs of one task side by side: steps stand together by what was done in them.

import { alignSteps } from './align.js';
import { $, el, facts, say } from './dom.js';
import { gradeOf } from './grade.js';
import { Panel } from './panel.js';
import { lastText } from './player.js';
import { Stage } from './stage.js';
import { TextView } from './text.js';
import { clip, linkTo, moment, plural, secondsText, titleOf, verdict } from './words.js';

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
    $('pairs').addEventListener('click', event => {
      const button = event.target.closest('button');
      if (button) this.goTo(Number(button.dataset.pair));
    });
  }

  show(runs) {
    this.sides.forEach((side, index) => side.open(runs[index].trajectory, runs[index].steps, runs[index].job));
    const [first, second] = runs.map(run => run.trajectory);
    $('compare-title').textContent = first.task === second.task
      ? titleOf(first) : `${titleOf(first)} and ${titleOf(second)}`;
    $('compare-back').setAttribute('href', linkTo(first));
    this.side = 'before';
    const words = runs.map(run => run.steps.outline().map(([said]) => said));
    this.pairs = alignSteps(...words);
    this.count = this.pairs.length;
    $('pairs').replaceChildren(...this.pairs.map((pair, at) => pairItem(pair, at, words)));
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
    $('pairs').querySelector('[aria-current]')?.removeAttribute('aria-current');
    const list = $('pairs'), item = list.children[this.step];
    item?.firstElementChild.setAttribute('aria-current', 'step');
    if (item) list.scrollTop = Math.max(0, item.offsetTop - list.offsetTop - list.clientHeight / 2);
    const pair = this.pairs[this.step] ?? [null, null];
    this.sides.forEach((side, at) => {
      const before = this.pairs.slice(0, this.step + 1).findLast(each => each[at] !== null);
      side.draw(before ? before[at] : 0, this.side, pair[at] === null).catch(this.failed);
    });
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
    this.text = new TextView({ named: false });
    this.title = el('a', { class: 'run-link' });
    this.facts = el('p', { class: 'facts' });
    this.verdict = el('p', { class: 'verdict' });
    this.ended = el('p', { class: 'quiet ended', hidden: true });
    this.grade = el('div', { class: 'grade' });
    this.root = el('section', { class: `side ${name}`, 'aria-label': `The ${name} run` },
      el('h2', {}, this.title), this.facts, this.verdict, this.stage.root, this.ended, this.panel.root, this.text.root,
      el('h3', {}, 'Grade'), this.grade);
  }

  open(trajectory, steps, job) {
    Object.assign(this, { trajectory, steps });
    this.title.textContent = job?.agent || job?.name || trajectory.id;
    this.title.setAttribute('href', linkTo(trajectory));
    facts(this.facts, [job?.name, trajectory.id, moment(trajectory.started_at), plural(steps.count, 'step'), secondsText(trajectory.seconds)]);
    this.verdict.replaceChildren(...verdict(trajectory));
    this.grade.replaceChildren(...gradeOf(trajectory));
    this.stage.root.hidden = !steps.hasPictures();
    this.panel.root.hidden = this.text.root.hidden = steps.count === 0;
    this.index = -1;
  }

  /** Draws a step; where this run has none that belongs to the other's, the last one stays, and it says so. */
  async draw(index, side, isAlone) {
    const { steps } = this;
    this.index = Math.min(index, steps.count - 1);
    const isOver = isAlone && index === steps.count - 1;
    say(this.ended, isOver ? `This run ended after ${plural(steps.count, 'step')}.` : isAlone ? 'This run has no such step.' : '');
    this.panel.root.classList.toggle('beside', isAlone);
    if (this.index < 0) return;
    if (steps.at(index) === undefined) await steps.load(index);
    if (this.steps !== steps || this.index !== index) return;
    const step = steps.at(index);
    if (!this.stage.root.hidden) this.stage.draw(step, side);
    this.panel.draw(step, linkTo(this.trajectory, index));
    this.text.draw(step, lastText(steps, index));
  }
}

function pairItem([first, second], at, words) {
  const said = [first, second].map((step, side) => (step === null ? '' : `${step + 1}. ${clip(words[side][step], 160)}`));
  const isSame = first !== null && second !== null && words[0][first] === words[1][second];
  const sign = isSame ? '=' : first === null || second === null ? '·' : '≠';
  const meaning = { '=': 'the same', '≠': 'another', '·': 'only in one' }[sign];
  return el('li', {}, el('button', { type: 'button', 'data-pair': at, class: isSame ? null : 'differs' },
    el('span', {}, said[0]), el('span', { class: 'sign', role: 'img', 'aria-label': meaning }, sign), el('span', {}, said[1])));
}
