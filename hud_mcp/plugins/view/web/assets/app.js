// Which page is shown, for whatever gives it the record: a server, or the file itself.
//
// A source has: home ('jobs' or 'job'), jobs(), job(id, { fresh }), trajectory(id) which gives
// { trajectory, steps }, place(trajectory) which gives { job, previous, next, live, runs },
// picture(shot); a server also has preload(shot), runs(task), rows(job, query) and refresh_s.

import { AcrossPage } from './across.js';
import { ComparePage } from './compare.js';
import { $, isTyping, say } from './dom.js';
import { JobsPage } from './jobs.js';
import { Overview } from './overview.js';
import { readParts } from './place.js';
import { TrajectoryPage } from './trajectory.js';
import { linkToAcross, plural, readPlace, titleOf } from './words.js';

const PAGES = ['overview', 'detail', 'compare', 'jobs', 'across'];

export class App {
  constructor(source) {
    this.source = source;
    this.failed = error => this.complain(error);
    this.overview = new Overview(source, this.failed);
    this.jobs = source.home === 'jobs' ? new JobsPage() : null;
    this.detail = new TrajectoryPage(source, this.failed);
    this.compare = null;
    this.across = source.across ? new AcrossPage(source, this.failed) : null;
    this.at = null;
    this.turn = 0;
    this.left = {};
    $('up').hidden = source.home === 'job';
    addEventListener('hashchange', () => this.route());
    document.addEventListener('keydown', event => this.pressed(event));
    if (source.refresh_s) setInterval(() => this.refresh(), source.refresh_s * 1000);
  }

  complain(error) {
    say($('notice'), error.message || String(error));
  }

  /** Shows the page that the address names; a later call makes an earlier one void. */
  async route({ moved = true } = {}) {
    const turn = ++this.turn;
    const place = readPlace(location.hash);
    document.documentElement.toggleAttribute('data-busy', true);
    try {
      const show = await this.load(place);
      if (turn !== this.turn) return;
      say($('notice'), '');
      show(moved);
    } catch (error) {
      if (turn !== this.turn) return;
      await this.fallBack(place, error);
    } finally {
      if (turn === this.turn) document.documentElement.toggleAttribute('data-busy', false);
    }
  }

  async fallBack(place, error) {
    if (place.page !== 'home') {
      try {
        (await this.load({ page: 'home' }))(false);
      } catch {
        // The first error says what is wrong.
      }
    }
    this.complain(error);
  }

  /** Fetches what a page needs; gives the function that shows it. */
  async load(place) {
    const { source } = this;
    if (place.page === 'trajectory') {
      if (this.at === 'detail' && this.detail.shown?.id === place.id && this.detail.player.steps) {
        return () => this.detail.put(this.detail.player.steps, readParts(place.parts));
      }
      const found = await source.trajectory(place.id);
      return moved => this.showTrajectory(found, readParts(place.parts), moved);
    }
    if (place.page === 'across' && this.across) {
      const data = await source.across(place);
      return moved => this.showAcross(data, place, moved);
    }
    if (place.page === 'compare') {
      const runs = await Promise.all(place.ids.map(async id => {
        const run = await source.trajectory(id);
        return { ...run, job: (await source.place(run.trajectory)).job };
      }));
      return moved => this.showPair(runs, moved);
    }
    if (place.page === 'job' || source.home === 'job') {
      const data = await source.job(place.id);
      return moved => this.showJob(data, moved, place);
    }
    const data = await source.jobs();
    return moved => this.showJobs(data, moved);
  }

  enter(page, title) {
    this.at = page;
    for (const name of PAGES) if ($(name)) $(name).hidden = name !== page;
    if (page !== 'detail') this.detail.close();
    document.title = title;
  }

  showJobs(data, moved) {
    this.enter('jobs', 'Jobs · hud-mcp');
    this.jobs.show(data);
    if (moved) this.arrive($('jobs-title'), () => this.left.job !== undefined && this.jobs.focus(this.left.job));
  }

  showJob(data, moved, { by = null, open = [] }) {
    const { job } = data, { overview } = this;
    const wasHere = this.at === 'overview' && overview.job?.job.id === job.id;
    this.enter('overview', this.source.home === 'job' ? `${job.name} · report` : `${job.name} · hud-mcp`);
    overview.show(data, { by, open });
    $('to-across').hidden = !this.across || !job.id;
    $('to-across').setAttribute('href', linkToAcross([job.id]));
    const wasInside = this.left.job === job.id && this.left.trajectory !== undefined;
    this.left.job = job.id;
    if (moved && wasHere) overview.table.groups && overview.table.focusGroup(open.at(-1));
    else if (moved) this.arrive($('job-name'), () => wasInside && overview.focus(this.left.trajectory));
    this.left.trajectory = undefined;
    if (this.source.refresh_s && moved) this.refresh({ anyway: true });
  }

  showTrajectory({ trajectory, steps }, place, moved) {
    const isOther = this.detail.shown?.id !== trajectory.id;
    this.enter('detail', titleOf(trajectory));
    this.left.trajectory = trajectory.id;
    this.left.job = trajectory.job ?? '';
    this.detail.show(trajectory, steps, place);
    const isHome = this.source.home === 'job' && !this.overview.by;
    $('back').setAttribute('href', isHome ? '#' : this.overview.address({ id: trajectory.job ?? '' }));
    if (moved && isOther) this.arrive($('task-name'), () => false);
    this.placeTrajectory(trajectory);
  }

  /** Its neighbours in its job, and other runs of its task, come after itself. */
  async placeTrajectory(trajectory) {
    this.detail.place(null);
    this.detail.offer([]);
    try {
      const place = await this.source.place(trajectory);
      if (this.detail.shown !== trajectory) return;
      this.detail.place(place);
      document.title = `${titleOf(trajectory)} · ${place.job.name}`;
      const runs = place.runs ?? await this.source.runs(trajectory.task);
      if (this.detail.shown === trajectory) this.detail.offer(runs);
    } catch (error) {
      this.complain(error);
    }
  }

  showPair(runs, moved) {
    const [{ trajectory }] = runs;
    this.enter('compare', `${titleOf(trajectory)} · two runs`);
    this.compare ??= new ComparePage(this.source, this.failed);
    this.compare.show(runs);
    if (moved) this.arrive($('compare-title'), () => false);
  }

  showAcross(data, place, moved) {
    const wasHere = this.at === 'across';
    this.enter('across', `${plural(data.jobs.length, 'job')}, task by task · hud-mcp`);
    this.across.show(data, place);
    if (moved && !wasHere) this.arrive($('across-title'), () => this.across.focus(this.left.trajectory));
    this.left = {};
  }

  /** Where one goes back to, the place that was left is found again; else the head has the focus. */
  arrive(head, goBack) {
    if (goBack() !== false) return;
    scrollTo(0, 0);
    head.focus({ preventScroll: true });
  }

  /** Looks for what a running job has done since. */
  async refresh({ anyway = false } = {}) {
    const { at, turn, overview } = this;
    const running = at === 'overview' && (anyway || overview.job.outcomes.unfinished > 0 || overview.job.outcomes.not_begun > 0);
    if (document.hidden || !(running || at === 'jobs' || at === 'across')) return;
    try {
      if (at === 'across') {
        const draw = await this.across.refresh();
        if (draw && turn === this.turn) this.redraw(draw);
        return;
      }
      if (at === 'jobs') {
        const data = await this.source.jobs();
        if (turn === this.turn && JSON.stringify(data) !== JSON.stringify(this.jobs.data)) this.redraw(() => this.jobs.show(data));
        return;
      }
      const data = await this.source.job(overview.job.job.id, { fresh: true });
      if (turn === this.turn && data !== overview.job) this.redraw(() => overview.show(data));
    } catch (error) {
      if (turn === this.turn) this.complain(error);
    }
  }

  /** Draws again and leaves the focus on the link that has it. */
  redraw(draw) {
    const { id } = document.activeElement ?? {}, href = document.activeElement?.getAttribute?.('href');
    draw();
    say($('notice'), '');
    if (document.activeElement !== document.body) return;
    if (id) $(id)?.focus({ preventScroll: true });
    if (!href) return;
    [...document.querySelectorAll('main:not([hidden]) tbody a')]
      .find(link => link.getAttribute('href') === href)?.focus({ preventScroll: true });
  }

  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === 'Escape') {
      this.goBack(event);
      return;
    }
    if (isTyping(event)) return;
    const page = { jobs: this.jobs, overview: this.overview, detail: this.detail, compare: this.compare, across: this.across }[this.at];
    if (page?.pressed(event)) event.preventDefault();
  }

  goBack(event) {
    if (isTyping(event)) {
      event.target.blur();
      return;
    }
    if (this.at === 'detail') location.hash = $('back').getAttribute('href');
    if (this.at === 'compare') location.hash = $('compare-back').getAttribute('href');
    if (this.at === 'across') location.hash = '';
    if (this.at === 'overview' && this.source.home === 'jobs') location.hash = '';
  }

  async start() {
    await this.route({ moved: false });
    document.documentElement.dataset.rendered = 'yes';
  }
}
