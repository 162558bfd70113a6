// One job: its head, the plot of its rewards, and its trajectories in a table.

import { showContexts } from './contexts.js';
import { commaSeparated, jsonLines, plainRuns, save } from './download.js';
import { $, el, facts, say } from './dom.js';
import { groupCells, overlapText, showGroupings } from './groups.js';
import { PagedRows, Pager } from './paged.js';
import { drawPlot } from './plot.js';
import { showSpending } from './spending.js';
import { Table } from './table.js';
import { showTools } from './tools.js';
import {
  OUTCOMES, badge, intervalText, linkTo, linkToGroup, linkToJob, meter, moment, plural, rewardText, secondsText, titleOf, toneOf, wordsOf,
} from './words.js';

export class Overview {
  constructor(source, failed) {
    Object.assign(this, { source, failed });
    this.job = null;
    this.picked = null;
    this.table = new Table({
      columns: COLUMNS, noun: 'run', sort: 'number',
      ids: { columns: 'columns', rows: 'rows', shown: 'shown', sort: 'sort' },
      rowClass: ({ trajectory }) => [trajectory.surprise && 'surprise', isLeftOut(trajectory) && 'earlier'].filter(Boolean).join(' ') || null,
    });
    this.pager = new Pager(this.table);
    this.by = null;
    this.table.filter = row => this.isWanted(row);
    this.table.isFiltered = () => this.isFiltered();
    this.table.toggled = () => this.keepPlace();
    $('group-by').addEventListener('change', () => this.group($('group-by').value || UNGROUPED));
    $('fold-all').addEventListener('click', () => this.foldAll());
    $('save-csv').addEventListener('click', () => this.save('csv', 'text/csv', commaSeparated));
    $('save-jsonl').addEventListener('click', () => this.save('jsonl', 'application/x-ndjson', jsonLines));
    $('filters').addEventListener('submit', event => event.preventDefault());
    for (const id of ['find', 'outcome', 'surprises']) {
      $(id).addEventListener('input', () => this.refilter());
    }
    $('unpick').addEventListener('click', () => this.pick(null));
    let width = 0;
    new ResizeObserver(() => {
      if ($('plot').clientWidth === width) return;
      width = $('plot').clientWidth;
      this.drawPlot();
    }).observe($('plot'));
  }

  /** Shows a job: as new, or with the filters and the order that it had; grouped as the place says. */
  show(data, place = { by: this.by, open: [...this.table.open] }) {
    const isOther = this.job?.job.id !== data.job.id;
    const isSame = this.job === data;
    this.job = data;
    if (isOther) this.reset();
    drawHead(data);
    this.take(place.by, place.open);
    if (isSame) {
      this.table.draw();
      this.drawPlot();
      return;
    }
    showLatest(data);
    showGroupings(data);
    showContexts(data.contexts);
    showSpending(data.spending);
    showTools('tools', data.tools);
    $('tasks').classList.toggle('expects', data.expects);
    $('surprises-label').hidden = !data.expects;
    const chosen = $('outcome').value;
    // Of every row: a try that does not count ended in some way too.
    const met = new Set(data.met ?? data.trajectories.map(trajectory => trajectory.outcome));
    const ends = [...OUTCOMES.keys()].filter(outcome => met.has(outcome));
    $('outcome').replaceChildren(el('option', { value: '' }, 'any'),
      ...ends.map(outcome => el('option', { value: outcome }, wordsOf(outcome))));
    $('outcome').value = ends.includes(chosen) ? chosen : '';
    this.page(data);
    this.table.show(data.trajectories.map((trajectory, index) => (
      { trajectory, number: index + 1, text: searchText(trajectory) })));
    this.drawPlot();
  }

  /** Has the server page the rows of a job that has very many. */
  page({ job, paged }) {
    const { table, pager, source, failed } = this, before = table.pages;
    table.pages = null;
    if (!paged) pager.show(null);
    else if (before?.job === job.id) table.pages = before;
    else {
      table.pages = new PagedRows({
        table, pager, failed, query: () => this.query(), ask: query => source.rows(job.id, query), rowOf: pagedRow,
      });
      table.pages.job = job.id;
    }
    table.pages?.expire();
  }

  /** The filters and the order as the server is asked for them. */
  query() {
    const { table } = this, yes = is => (is ? 'yes' : '');
    return {
      find: $('find').value.trim(), outcome: $('outcome').value, surprises: yes($('surprises').checked),
      pick: this.picked?.pick ?? '', sort: table.sort, descending: yes(table.descending),
      by: this.by ?? '', filtered: yes(this.isFiltered()),
      ...placesOf(table),
    };
  }

  // ---- Groups

  /** Groups the rows without drawing them: as an address says, or the repeated runs of each task. */
  take(by, open = []) {
    const { groupings, trajectories, strays } = this.job;
    by ??= groupings.find(one => one.repeated)?.by;
    const grouping = groupings.find(one => one.by === by) ?? null;
    this.by = grouping?.by ?? (by === UNGROUPED ? UNGROUPED : null);
    $('group-by').replaceChildren(el('option', { value: '' }, 'none'),
      ...groupings.map(one => el('option', { value: one.by }, one.words)));
    $('group-by').value = grouping?.by ?? '';
    $('group-label').hidden = groupings.length === 0;
    $('fold-all').hidden = $('group-hint').hidden = !grouping;
    say($('group-note'), grouping?.overlapping ? overlapText(grouping) : '');
    const groups = grouping?.groups.map((group, index) => {
      const isIn = trajectory => trajectory.groups[by].includes(index);
      // The runs of a folded task are out of sight: its row tells why the first of them failed.
      // Of a long job, the server tells it with the row.
      const why = grouping.repeated ? trajectories.find(row => row.why && isIn(row))?.why : null;
      return {
        name: group.name, title: group.title, holds: ({ trajectory }) => isIn(trajectory),
        values: grouping.repeated ? { task: group.title, reward: group.mean?.value ?? null, seconds: group.seconds } : {},
        cells: shown => groupCells(group, shown, shown.why ?? why),
      };
    });
    if (groups && (strays?.includes(by) ?? trajectories.some(trajectory => !trajectory.groups[by].length))) groups.push(STRAY);
    this.table.groupBy(groups ?? null, open);
    this.nameFold();
  }

  group(by) {
    this.take(by);
    this.table.draw();
    this.keepPlace();
  }

  /** The address of this job as it is shown. */
  address(job) {
    if (!this.by || this.job?.job.id !== job.id) return linkToJob(job);
    return linkToGroup(job, this.by, [...this.table.open]);
  }

  /** Has the address say what is open, so that a reload and the way back lead here. */
  keepPlace() {
    this.nameFold();
    const address = this.address(this.job.job);
    if (location.hash !== address) history.replaceState(null, '', address);
  }

  nameFold() {
    const { table } = this;
    $('fold-all').textContent = table.groups?.every(group => table.isOpen(group)) ? 'Fold all' : 'Open all';
  }

  foldAll() {
    const { table } = this, wanted = !table.groups.every(group => table.isOpen(group));
    for (const group of table.groups) table.toggle(group, wanted);
    table.draw();
    this.keepPlace();
  }

  async save(ending, type, write) {
    const { job: data, source } = this, parts = [], name = `${data.job.id || 'sessions'}.${ending}`;
    try {
      for (let start = 0; data.paged && start < data.total; start += SAVED_ROWS) {
        const { rows } = await source.rows(data.job.id, { start, count: SAVED_ROWS });
        parts.push(write(plainRuns({ ...data, trajectories: rows }), { isMore: start > 0 }));
      }
      if (!data.paged) parts.push(write(plainRuns(data)));
      save(parts, name, type);
    } catch (error) {
      this.failed(error);
    }
  }

  reset() {
    $('find').value = '';
    $('outcome').value = '';
    $('surprises').checked = false;
    this.picked = null;
    say($('picked'), '');
    $('unpick').hidden = true;
    Object.assign(this.table, { sort: 'number', descending: false });
  }

  isFiltered() {
    return Boolean($('find').value.trim() || $('outcome').value || $('surprises').checked || this.picked);
  }

  refilter() {
    this.table.folded.clear();
    this.table.draw();
    this.nameFold();
  }

  isWanted({ text, trajectory }) {
    const wanted = $('find').value.trim().toLowerCase(), outcome = $('outcome').value;
    return text.includes(wanted) && (!outcome || trajectory.outcome === outcome) &&
      (!$('surprises').checked || trajectory.surprise) && (!this.picked || this.picked.picks(trajectory));
  }

  pick(bar) {
    this.picked = bar;
    say($('picked'), bar ? `only ${bar.title}` : '');
    $('unpick').hidden = !bar;
    this.refilter();
    if (!bar) $('find').focus();
  }

  drawPlot() {
    // A try that a later one stands in for, or that no plan has, is in the table alone.
    const rows = (this.job?.trajectories ?? []).map((row, index) => ({ ...row, number: index + 1 })).filter(row => !isLeftOut(row));
    const tally = this.job?.tally;
    const wanted = Math.max(this.job?.wanted ?? 0, tally?.runs ?? rows.length);
    $('chart').hidden = wanted === 0;
    drawPlot({ node: $('plot'), legend: $('legend'), rows, tally, wanted, choose: bar => this.pick(bar) });
  }

  /** Brings the focus to a trajectory's row. */
  focus(id) {
    const link = [...$('rows').querySelectorAll('a')].find(each => each.getAttribute('href') === linkTo({ id }));
    link?.focus();
    link?.closest('tr').scrollIntoView({ block: 'nearest' });
  }

  pressed(event) {
    if (event.key === '/') {
      $('find').focus();
      $('find').select();
      return true;
    }
    return this.table.pressed(event);
  }
}

/** What an address says of a job whose runs are in no groups, though they would be. */
const UNGROUPED = 'none';

/** Runs of tasks that are not in the job's plan. */
const STRAY = {
  name: '-', title: 'not in the plan', holds: ({ trajectory }) => Object.values(trajectory.groups).some(places => !places.length),
  cells: ({ count }) => ({ task: [el('span', { class: 'over' }, `${plural(count, 'run')}, counted nowhere`)] }),
};

const LATEST = 8, SAVED_ROWS = 500;

/** Which groups are open as the server is asked: by the fewer of those that are and are not. */
function placesOf(table) {
  const places = wanted => (table.groups ?? []).flatMap((group, place) => (table.isOpen(group) === wanted ? [place] : []));
  const open = places(true), folded = places(false);
  return open.length > folded.length ? { open: 'all', folded: folded.join(',') } : { open: open.join(','), folded: '' };
}

/** Whether a run counts nowhere: a later try stands in for it, no plan has it, or its grade is gone. */
const isLeftOut = ({ earlier, foreign, erased }) => earlier || foreign || erased;

const pagedRow = trajectory => ({ trajectory, number: trajectory.number });

/** While a job runs: which runs failed last, and why. */
function showLatest({ trajectories, latest, outcomes }) {
  const failed = latest ? [...latest].reverse()
    : trajectories.filter(row => row.outcome !== 'unfinished' && (row.reward === null || row.reward < 1 - 1e-6));
  $('latest').hidden = !outcomes.unfinished || !failed.length;
  $('latest-rows').replaceChildren(...failed.slice(-LATEST).reverse().map(row => el('li', {},
    el('a', { href: linkTo(row) }, titleOf(row)), ' ', badge(row.outcome, row.reward), row.reward === null ? '' : ` reward ${rewardText(row.reward)}`,
    row.why ? el('span', { class: 'note' }, row.why) : null)));
}

const MEAN = 'mean reward';

function drawHead(data) {
  const { job } = data;
  $('job-name').textContent = job.name;
  facts($('job-facts'), [
    job.taskset && `taskset ${job.taskset}`,
    job.agent && `agent ${job.agent}`,
    job.protocol,
    job.created_at && moment(job.created_at),
    `hud-mcp ${data.versions.join(', ')}`,
  ]);
  say($('job-damage'), job.damage);
  $('mean-value').textContent = rewardText(data.mean);
  const mean = data.statistics.find(({ name }) => name === MEAN);
  $('mean-over').textContent = meanText(data);
  say($('mean-interval'), mean ? intervalWords(mean) : '');
  $('outcomes').replaceChildren(...Object.entries(data.outcomes).map(([outcome, count]) =>
    el('div', { class: `count ${outcome} ${toneOf(outcome)}`, 'data-none': count === 0 },
      el('dt', {}, wordsOf(outcome)), el('dd', {}, count.toLocaleString('en')))));
  // The mean stands above, in large figures.
  $('statistics').replaceChildren(...data.statistics.filter(each => each !== mean).map(figure));
  $('job-metadata').hidden = !job.metadata;
  $('job-metadata-text').textContent = job.metadata ?? '';
}

/** An interval, and of how many clusters of tasks it is, where those are fewer. */
function intervalWords({ low, high, reason, tasks, clusters }) {
  const of = low !== null && clusters < tasks ? `, of ${plural(clusters, 'cluster')}` : '';
  return `${intervalText({ low, high, reason })}${of}`;
}

/** A figure, its interval, and what it is made of. */
function figure({ name, value, runs, tasks, ...rest }) {
  const interval = runs === undefined ? '' : ` (${intervalWords({ tasks, ...rest })})`;
  const made = runs === undefined ? null : `${plural(runs, 'run')} of ${plural(tasks, 'task')}`;
  const text = runs === undefined ? String(value) : value.toFixed(3);
  return el('div', {}, el('dt', {}, name), el('dd', { title: made }, text, el('span', { class: 'quiet' }, interval)));
}

function meanText(data) {
  const total = data.wanted.toLocaleString('en');
  if (!data.rewarded) return `no graded task of ${total}`;
  return `mean reward over ${data.rewarded.toLocaleString('en')} graded of ${total}`;
}

// ---- The table

const COLUMNS = [
  { key: 'number', label: 'No.', value: row => row.number, cell: row => [String(row.number)] },
  {
    key: 'task', label: 'Task', isHead: true,
    value: row => titleOf(row.trajectory).toLowerCase(), cell: row => taskCell(row.trajectory),
  },
  {
    key: 'environment', label: 'Environment',
    value: row => row.trajectory.environment, cell: row => [row.trajectory.environment],
  },
  {
    key: 'outcome', label: 'Outcome',
    value: row => [...OUTCOMES.keys()].indexOf(row.trajectory.outcome), cell: ({ trajectory }) => [badge(trajectory.outcome, trajectory.reward)],
  },
  { key: 'reward', label: 'Reward', value: row => row.trajectory.reward, cell: row => rewardCell(row.trajectory) },
  {
    key: 'steps', label: 'Steps',
    value: row => row.trajectory.step_count, cell: row => [row.trajectory.step_count.toLocaleString('en')],
  },
  {
    key: 'seconds', label: 'Seconds', value: row => row.trajectory.seconds,
    cell: ({ trajectory }) => [trajectory.seconds === null ? '—' : trajectory.seconds.toFixed(1)],
  },
  {
    key: 'expected', label: 'Expected',
    value: row => row.trajectory.expected, cell: row => [expectedCell(row.trajectory)],
  },
];

function searchText(trajectory) {
  return [titleOf(trajectory), trajectory.id, trajectory.environment, trajectory.template,
    trajectory.description, trajectory.why ?? '', wordsOf(trajectory.outcome)].join('\n').toLowerCase();
}

function taskCell(trajectory) {
  const brief = [wordsOf(trajectory.outcome), trajectory.environment,
    plural(trajectory.step_count, 'step'), secondsText(trajectory.seconds)].join(' · ');
  const notes = [trajectory.earlier && 'an earlier try, not counted',
    trajectory.foreign && 'foreign to the plan, not counted', trajectory.erased && 'not counted',
    trajectory.pruned, trajectory.why !== trajectory.pruned && trajectory.why, trajectory.damage && `damaged: ${trajectory.damage}`];
  return [el('a', { href: linkTo(trajectory) }, titleOf(trajectory)), el('span', { class: 'brief' }, brief),
    ...notes.filter(Boolean).map(words => el('span', { class: 'note' }, words))];
}

function rewardCell(trajectory) {
  const unmet = trajectory.surprise
    ? el('strong', { class: 'brief unmet' }, `≠ ${rewardText(trajectory.expected)}`) : '';
  if (trajectory.reward === null) return [el('span', { class: 'quiet' }, 'none'), unmet];
  return [meter(trajectory.reward), el('span', { class: 'figure' }, rewardText(trajectory.reward)), unmet];
}

function expectedCell(trajectory) {
  if (trajectory.expected === null) return el('span', { class: 'quiet' }, 'any');
  if (!trajectory.surprise) return el('span', { class: 'quiet' }, rewardText(trajectory.expected));
  return el('strong', { class: 'unmet' }, `≠ ${rewardText(trajectory.expected)}`);
}
