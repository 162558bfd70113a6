// One trajectory: what was asked, its steps, its log, its grade.

import { $, el } from './dom.js';
import { linkToPlace } from './place.js';
import { Player } from './player.js';
import { drawRun } from './run.js';
import { linkTo, linkToPair, momentText, plural, rewardText, wordsOf } from './words.js';

export class TrajectoryPage {
  constructor(source, failed) {
    this.shown = null;
    this.player = new Player({
      picture: source.picture, preload: source.preload, failed,
      link: step => linkTo(this.shown, step),
      moved: (_step, { jump = false } = {}) => this.write(jump),
    });
    this.later = null;
    $('whole-prompt').addEventListener('click', () => this.openPrompt($('whole-prompt').getAttribute('aria-expanded') !== 'true'));
    new ResizeObserver(() => this.offerPrompt()).observe($('prompt'));
    this.neighbours = this.wish = null;
    $('compare-with').addEventListener('change', () => {
      const { value } = $('compare-with');
      if (value) location.hash = value;
    });
  }

  show(trajectory, steps, place) {
    this.shown = trajectory;
    drawRun(trajectory);
    this.openPrompt(false);
    this.put(steps, place);
  }

  openPrompt(isOpen) {
    $('prompt').classList.toggle('whole', isOpen);
    $('whole-prompt').setAttribute('aria-expanded', isOpen);
    $('whole-prompt').textContent = isOpen ? 'Show less' : 'Show all of it';
    this.offerPrompt();
  }

  /** Offers the rest of a prompt that is longer than its place. */
  offerPrompt() {
    const prompt = $('prompt');
    $('whole-prompt').hidden = !prompt.classList.contains('whole') && prompt.scrollHeight <= prompt.clientHeight + 1;
  }

  /** Goes to a place within the trajectory that is shown. */
  put(steps, place) {
    clearTimeout(this.later);
    this.player.open(steps, place.step, place.view ?? 'before');
    this.player.outline.put(place);
    this.player.tabs.show(place.tab ?? (steps.count ? 'step' : 'grade'));
  }

  get here() {
    const { step, side, tabs, outline } = this.player;
    return { step, view: side === 'before' ? null : side, tab: tabs.name === 'step' ? null : tabs.name, ...outline.place };
  }

  /** Keeps the address at what is shown: a jump can be gone back from, and going step by step cannot. */
  write(jump) {
    clearTimeout(this.later);
    const now = () => {
      const link = this.shown && linkToPlace(this.shown, this.here);
      if (link && link !== location.hash && location.protocol !== 'about:') history[jump ? 'pushState' : 'replaceState'](null, '', link);
    };
    // A browser counts how often an address changes; and who goes elsewhere meanwhile is not called back.
    const at = location.hash;
    if (jump) now();
    else this.later = setTimeout(() => location.hash === at && now(), 60);
  }

  /** Shows what is known from its job: its neighbours, and where it can be watched. */
  place(place) {
    const { previous, next, live } = place ?? {};
    this.neighbours = place && { previous, next };
    for (const name of ['previous', 'next']) {
      const link = $(`${name}-trajectory`), other = this.neighbours?.[name];
      if (other) link.setAttribute('href', linkTo(other));
      else link.removeAttribute('href');
    }
    $('watch').hidden = !live;
    if (live) $('watch').setAttribute('href', `/live/${live}`);
    const { wish } = this;
    this.wish = null;
    if (wish && place) this.goTo(wish);
  }

  /** Offers other runs of the task to compare with. */
  offer(runs) {
    const others = runs.filter(row => row.id !== this.shown.id);
    $('compare-choice').hidden = others.length === 0;
    $('compare-with').replaceChildren(el('option', { value: '' }, 'another run'),
      ...others.map(row => el('option', { value: linkToPair(this.shown, row) }, runWords(row))));
    $('compare-with').value = '';
  }

  goTo(name) {
    const other = this.neighbours[name];
    if (other) location.hash = linkTo(other);
  }

  close() {
    this.shown = this.wish = null;
    this.player.close();
  }

  pressed(event) {
    const to = { j: 'next', k: 'previous' }[event.key];
    if (to === undefined) return this.player.pressed(event);
    if (this.neighbours) this.goTo(to);
    else this.wish = to; // it is gone to as soon as it is known
    return true;
  }
}

function runWords(row) {
  const end = row.reward === null ? wordsOf(row.outcome) : `reward ${rewardText(row.reward)}`;
  const words = `${momentText(row.started_at)}: ${end}, ${plural(row.step_count, 'step')}`;
  return row.job_name ? `${words}, ${row.job_name}` : words;
}
