// Several jobs side by side: how they differ from the first, and each task in each of them.

import { $, el, facts, say } from './dom.js';
import { endsOf, endsText, strip, stripKeys } from './groups.js';
import { linkTo, linkToAcross, linkToJob, linkToPair, momentText, plural, rewardText } from './words.js';

const TASKS_WANTED = [
  ['', 'all tasks'], ['flips', 'flips'], ['up', 'passed more often'], ['down', 'passed less often'],
  ['unsolved', 'passed in no job'], ['missing', 'not in every job'],
];
const MOST_SIDES = 8;

const nameOfSide = job => job.agent || job.name;

export class AcrossPage {
  /** source.across({ ids, only, find, start, known }) gives what the page shows; of what is known, its stamp. */
  constructor(source, failed) {
    Object.assign(this, { source, failed, data: null, rows: [], turn: 0 });
    for (const id of ['add-side', 'matrix-filters']) $(id).addEventListener('submit', event => event.preventDefault());
    $('other-jobs').addEventListener('change', () => this.add($('other-jobs').value));
    $('only-tasks').addEventListener('change', () => this.refilter());
    $('find-task').addEventListener('input', () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.refilter(), 150);
    });
    $('matrix-more').addEventListener('click', () => this.more());
  }

  get ids() {
    return this.data.jobs.map(({ id }) => id);
  }

  get filter() {
    return { only: $('only-tasks').value, find: $('find-task').value.trim() };
  }

  show(data, { only, find }) {
    this.turn++;
    this.data = data;
    const { jobs, others } = data;
    $('across-title').textContent = jobs.length === 1 ? `${jobs[0].name}, task by task` : `${jobs.length} jobs, task by task`;
    $('other-jobs').replaceChildren(el('option', { value: '' }, others.length ? 'choose…' : 'no other job of these task sets'),
      ...others.map(job => el('option', { value: job.id }, [job.agent, job.name, momentText(job.created_at)].filter(Boolean).join(' · '))));
    $('other-jobs').disabled = !others.length || jobs.length >= MOST_SIDES;
    $('find-task').value = find;
    this.drawFacts();
    this.drawSides();
    const label = job => el('a', { href: linkToJob(job) }, nameOfSide(job));
    const heads = ['Task', ...jobs.map(label)].map(words => el('th', { scope: 'col', role: 'columnheader' }, words));
    if (jobs.length === 2) heads.push(el('th', { scope: 'col', role: 'columnheader', class: 'pair' }, el('span', { class: 'unseen' }, 'Both runs')));
    $('matrix-head').replaceChildren(...heads);
    $('matrix').style.setProperty('--sides', jobs.length);
    $('matrix').classList.toggle('paired', jobs.length === 2);
    this.put(data, only);
  }

  drawFacts() {
    const { jobs, tasks } = this.data;
    const sets = [...new Set(jobs.map(job => job.taskset).filter(Boolean))];
    facts($('across-facts'), [...sets.map(name => `taskset ${name}`), plural(tasks, 'task')]);
  }

  /** Asks for what running jobs have done since; gives what draws it, or nothing where all is as before. */
  async refresh() {
    const { turn, filter, ids } = this, shown = this.rows.length;
    if (!this.data.running) return null;
    const data = await this.source.across({ ids, ...filter, known: this.data.stamp });
    if (turn !== this.turn || data.stamp === this.data.stamp) return null;
    while (data.rows.length < Math.min(shown, data.total)) {
      const { rows, stamp } = await this.source.across({ ids, ...filter, start: data.rows.length });
      if (turn !== this.turn || stamp !== data.stamp || !rows.length) return null; // it is asked for again
      data.rows.push(...rows);
    }
    return () => this.update(data, filter.only);
  }

  /** Draws what has changed; the filter, the rows that are there and the focus stay. */
  update(data, only) {
    const cell = document.activeElement?.closest('#matrix-rows td');
    const place = cell && { id: this.rows[cell.parentElement.sectionRowIndex].id, at: cell.cellIndex };
    this.data = data;
    this.drawFacts();
    this.drawSides();
    this.put(data, only);
    if (!place) return;
    const row = $('matrix-rows').rows[this.rows.findIndex(({ id }) => id === place.id)];
    row?.cells[place.at].querySelector('a')?.focus({ preventScroll: true });
  }

  /** Puts the first rows of a filter in place. */
  put(data, only) {
    this.rows = data.rows;
    const { counts } = data;
    const offered = TASKS_WANTED.filter(([name]) => name === '' || name === only || counts[name])
      .map(([name, words]) => [name, `${words} (${counts[name].toLocaleString('en')})`]);
    if (JSON.stringify(offered) !== this.offered) { // a list that is open stays open where it is the same
      this.offered = JSON.stringify(offered);
      $('only-tasks').replaceChildren(...offered.map(([name, words]) => el('option', { value: name }, words)));
    }
    $('only-tasks').value = only;
    $('matrix-rows').replaceChildren(...data.rows.map(row => this.line(row)));
    this.told(data);
  }

  told({ total, counts, tasks }) {
    const all = plural(tasks, 'task'), count = this.rows.length;
    const found = total === tasks ? all : `${total.toLocaleString('en')} of ${all}`;
    $('matrix-shown').textContent = count < total ? `The first ${count.toLocaleString('en')} of ${total === tasks ? all : found}` : `${found}${total === counts[''] && total === tasks ? '' : ' shown'}`;
    $('matrix-more').hidden = count >= total;
    const ends = this.rows.flatMap(({ results }) => results.flatMap(result => (result ? endsOf(result) : [])));
    $('matrix-legend').replaceChildren(...stripKeys(ends),
      el('span', {}, 'A number is the mean reward, over n runs where some have none. Each opens the newest run that did not pass, or else the newest run.'));
  }

  // ---- The jobs

  drawSides() {
    const { jobs } = this.data;
    $('side-rows').replaceChildren(...jobs.map((job, at) => this.side(job, at)));
    const pairs = jobs.slice(1).filter(({ difference }) => difference.passes);
    const confidence = `${Math.round(100 * this.data.confidence)}%`;
    say($('sides-legend'), pairs.length
      ? `Differences to the first job, over tasks that both ran; each task counts the same. Lines are ${confidence} intervals of differences within tasks. p is that of the exact sign test.`
      : jobs.length > 1 ? 'No task has a scored run in the first job and in another one.' : '');
  }

  side(job, at) {
    const { difference } = job, rest = this.ids.filter(id => id !== job.id);
    const act = (words, ids) => el('a', { href: linkToAcross(ids, this.filter), 'aria-label': `${words} ${nameOfSide(job)}` }, words);
    return el('tr', { role: 'row' },
      el('th', { scope: 'row', role: 'rowheader', class: 'name' }, el('a', { href: linkToJob(job) }, nameOfSide(job)),
        el('span', { class: 'over' }, [job.agent && job.name, momentText(job.created_at)].filter(Boolean).join(' · '))),
      el('td', { role: 'cell', class: 'rate' }, ...rateOf(job)),
      el('td', { class: 'place', 'aria-hidden': 'true' }, gapPlot(difference?.passes)),
      el('td', { role: 'cell', class: 'gap' }, ...gapText(difference)),
      el('td', { role: 'cell', class: 'flipped' }, ...this.flips(difference, at)),
      el('td', { role: 'cell', class: 'does' }, at ? act('Put first', [job.id, ...rest]) : null, this.ids.length > 1 ? act('Remove', rest) : null));
  }

  flips(difference, at) {
    if (!difference) return [el('span', { class: 'quiet' }, this.data.jobs.length > 1 ? 'the others are compared with it' : '—')];
    const { up, down, chance } = difference;
    if (!up && !down) return [el('span', { class: 'quiet' }, difference.passes ? 'none' : '—')];
    const ids = this.data.jobs.length === 2 ? this.ids : [this.ids[0], this.ids[at]];
    const link = (only, sign, count, words) => (count
      ? el('a', { class: `flip ${only}`, href: linkToAcross(ids, { only }) }, `${sign} ${count.toLocaleString('en')} ${words}`)
      : el('span', { class: 'quiet' }, `0 ${words}`));
    return [link('up', '▲', up, 'up'), ' ', link('down', '▼', down, 'down'), ' ', el('span', { class: 'over' }, chanceText(chance))];
  }

  add(id) {
    if (id) location.hash = linkToAcross([...this.ids, id], this.filter);
  }

  // ---- The tasks

  line(row) {
    const { jobs } = this.data, runs = row.results.map(result => result?.run);
    return el('tr', { role: 'row' },
      el('th', { scope: 'row', role: 'rowheader', class: 'task' }, el('span', { class: 'task-name' }, row.id),
        row.title && row.title !== row.id ? el('span', { class: 'over' }, row.title) : null,
        row.differs ? el('span', { class: 'over unmet' }, 'The jobs have different rows of this name, so they are not compared.') : null),
      ...row.results.map((result, at) => el('td', { role: 'cell' }, resultOf(result, row.flips[at], jobs[at]))),
      jobs.length === 2 ? el('td', { role: 'cell', class: 'pair' }, runs[0] && runs[1]
        ? el('a', { href: linkToPair({ id: runs[0] }, { id: runs[1] }), 'aria-label': `Side by side: ${row.id}` }, 'Side by side') : null) : null);
  }

  async refilter() {
    const turn = ++this.turn, { filter } = this;
    try {
      const data = await this.source.across({ ids: this.ids, ...filter });
      if (turn !== this.turn) return;
      this.put(data, filter.only);
      history.replaceState(null, '', linkToAcross(this.ids, filter));
      this.drawSides();
    } catch (error) {
      if (turn === this.turn) this.failed(error);
    }
  }

  async more() {
    const { turn, filter } = this, start = this.rows.length;
    try {
      const data = await this.source.across({ ids: this.ids, ...filter, start });
      if (turn !== this.turn || start !== this.rows.length) return;
      this.rows = [...this.rows, ...data.rows];
      $('matrix-rows').append(...data.rows.map(row => this.line(row)));
      this.told(data);
      $('matrix-rows').children[start]?.querySelector('a')?.focus();
    } catch (error) {
      this.failed(error);
    }
  }

  // ---- The keyboard

  focus(id) {
    const link = id && [...$('matrix-rows').querySelectorAll('a')].find(each => each.getAttribute('href') === linkTo({ id }));
    if (!link) return false;
    link.focus();
    return true;
  }

  /** Moves the focus over the table, past what has no run. */
  move(down, right) {
    const rows = [...$('matrix-rows').children];
    let y = rows.findIndex(row => row.contains(document.activeElement)), x = 1;
    if (y < 0) down = 1;
    else x = [...rows[y].children].indexOf(document.activeElement.closest('td'));
    for (let step = 0; step < rows.length + this.ids.length; step++) {
      y += down;
      x += right;
      const link = rows[y]?.children[x]?.querySelector('a');
      if (!rows[y]?.children[x]) return;
      if (!link) continue;
      link.focus();
      link.closest('tr').scrollIntoView({ block: 'nearest' });
      return;
    }
  }

  pressed(event) {
    if (event.key === '/') {
      $('find-task').focus();
      $('find-task').select();
      return true;
    }
    const inside = $('matrix-rows').contains(document.activeElement);
    const to = { j: [1, 0], k: [-1, 0] }[event.key] ??
      (inside ? { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] : undefined);
    if (!to) return false;
    this.move(...to);
    return true;
  }
}

// ---- Figures

const signedText = value => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;
const signedEnds = ({ low, high }) =>
  [Math.floor(low * 1000 + 1e-6) / 1000, Math.ceil(high * 1000 - 1e-6) / 1000].map(signedText).join(' to ');

const chanceText = chance => `p ${chance < 0.001 ? '< 0.001' : `= ${chance.toFixed(3)}`}`;

function rateOf({ pass_rate: rate, scored, tasks, difference }) {
  const passes = difference?.passes;
  if (passes) {
    return [el('span', { class: 'figure' }, `${passes.first.toFixed(3)} → ${passes.second.toFixed(3)}`),
      el('span', { class: 'over' }, `over ${plural(passes.tasks, 'task')} of both`)];
  }
  if (rate === null) return [el('span', { class: 'quiet' }, 'none')];
  return [el('span', { class: 'figure' }, rate.toFixed(3)), el('span', { class: 'over' }, `over ${scored.toLocaleString('en')} of ${plural(tasks, 'task')}`)];
}

function gapText(difference) {
  if (!difference) return [];
  const { passes, rewards } = difference;
  const told = (figure, name) => (figure === null ? null : el('span', { class: name ? 'over' : null, title: figure.reason },
    `${name}${signedText(figure.value)}`, el('span', { class: 'over' }, figure.low === null ? ' no interval' : ` (${signedEnds(figure)})`)));
  return [told(passes, ''), told(rewards, 'mean reward '),
    passes && passes.low === null ? el('span', { class: 'over' }, passes.reason) : null].filter(Boolean);
}

const gapPart = value => `${(100 * (value + 1)) / 2}%`;

function gapPlot(figure) {
  const field = el('span', { class: 'dots' });
  if (!figure) return field;
  if (figure.low !== null) {
    const line = el('span', { class: 'line' });
    line.style.left = gapPart(figure.low);
    line.style.right = `calc(100% - ${gapPart(figure.high)})`;
    field.append(line);
  }
  const dot = el('span', { class: 'dot' });
  dot.style.left = gapPart(figure.value);
  field.append(dot);
  return field;
}

/** What one task came to in one job, as a link to a run of it. */
function resultOf(result, flip, job) {
  if (!result) return el('span', { class: 'quiet' }, '—');
  const ends = endsOf(result), isMany = result.wanted > 1;
  const words = isMany ? `${result.passed.toLocaleString('en')} of ${result.wanted.toLocaleString('en')} passed`
    : ends[0]?.kind === 'unrewarded' ? 'failed' : ends[0]?.words ?? '';
  const title = `${nameOfSide(job)}: ${endsText(ends)}${result.mean === null ? '' : `; mean reward ${rewardText(result.mean)}, n = ${result.graded.toLocaleString('en')}`}`;
  const inside = [
    isMany ? strip(ends) : el('span', { class: `swatch part ${ends[0]?.kind ?? 'open'}`, 'aria-hidden': 'true' }),
    result.mean === null ? null : el('span', { class: 'figure' }, rewardText(Number(result.mean.toFixed(6)))),
    flip ? el('span', { class: `flip ${flip > 0 ? 'up' : 'down'}`, role: 'img', 'aria-label': flip > 0 ? 'passed more often than in the first job' : 'passed less often than in the first job' }, flip > 0 ? '▲' : '▼') : null,
    el('span', { class: 'end' }, isMany && result.graded < result.wanted ? `${words}, n = ${result.graded.toLocaleString('en')}` : words),
  ];
  if (!result.run) return el('span', { class: 'result none', title }, ...inside);
  return el('a', { class: 'result', href: linkTo({ id: result.run }), title }, ...inside);
}
