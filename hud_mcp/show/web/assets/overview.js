// One job: its head, the plot of its rewards, and its trajectories in a table.

import { showContexts } from './contexts.js';
import { $, el, facts, say } from './dom.js';
import { drawPlot } from './plot.js';
import { Table } from './table.js';
import {
  OUTCOMES, badge, intervalText, linkTo, meter, moment, plural, rewardText, secondsText, titleOf, toneOf, wordsOf,
} from './words.js';

export class Overview {
  constructor() {
    this.job = null;
    this.picked = null;
    this.table = new Table({
      columns: COLUMNS, noun: 'run', sort: 'number',
      ids: { columns: 'columns', rows: 'rows', shown: 'shown', sort: 'sort' },
      rowClass: ({ trajectory }) => [trajectory.surprise && 'surprise', (trajectory.earlier || trajectory.foreign) && 'earlier'].filter(Boolean).join(' ') || null,
    });
    this.table.filter = row => this.isWanted(row);
    $('filters').addEventListener('submit', event => event.preventDefault());
    for (const id of ['find', 'outcome', 'surprises']) {
      $(id).addEventListener('input', () => this.table.draw());
    }
    $('unpick').addEventListener('click', () => this.pick(null));
    let width = 0;
    new ResizeObserver(() => {
      if ($('plot').clientWidth === width) return;
      width = $('plot').clientWidth;
      this.drawPlot();
    }).observe($('plot'));
  }

  /** Shows a job: as new, or with the filters and the order that it had. */
  show(data) {
    const isOther = this.job?.job.id !== data.job.id;
    const isSame = this.job === data;
    this.job = data;
    if (isOther) this.reset();
    drawHead(data);
    if (isSame) {
      this.drawPlot();
      return;
    }
    showContexts(data.contexts);
    $('tasks').classList.toggle('expects', data.expects);
    $('surprises-label').hidden = !data.expects;
    const chosen = $('outcome').value;
    // Of every row: a try that does not count ended in some way too.
    const met = new Set(data.trajectories.map(trajectory => trajectory.outcome));
    const ends = [...OUTCOMES.keys()].filter(outcome => met.has(outcome));
    $('outcome').replaceChildren(el('option', { value: '' }, 'any'),
      ...ends.map(outcome => el('option', { value: outcome }, wordsOf(outcome))));
    $('outcome').value = ends.includes(chosen) ? chosen : '';
    this.table.show(data.trajectories.map((trajectory, index) => (
      { trajectory, number: index + 1, text: searchText(trajectory) })));
    this.drawPlot();
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

  isWanted({ text, trajectory }) {
    const wanted = $('find').value.trim().toLowerCase(), outcome = $('outcome').value;
    return text.includes(wanted) && (!outcome || trajectory.outcome === outcome) &&
      (!$('surprises').checked || trajectory.surprise) && (!this.picked || this.picked.picks(trajectory));
  }

  pick(bar) {
    this.picked = bar;
    say($('picked'), bar ? `only ${bar.title}` : '');
    $('unpick').hidden = !bar;
    this.table.draw();
    if (!bar) $('find').focus();
  }

  drawPlot() {
    // A try that a later one stands in for, or that no plan has, is in the table alone.
    const rows = (this.job?.trajectories ?? []).map((row, index) => ({ ...row, number: index + 1 })).filter(row => !row.earlier && !row.foreign);
    $('chart').hidden = rows.length === 0;
    drawPlot({ node: $('plot'), legend: $('legend'), rows, choose: bar => this.pick(bar) });
  }

  /** Brings the focus to a trajectory's row. */
  focus(id) {
    const row = this.table.rows.find(({ trajectory }) => trajectory.id === id);
    row?.node?.querySelector('a').focus();
    row?.node?.scrollIntoView({ block: 'nearest' });
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
  $('mean-over').textContent = meanText(data);
  $('outcomes').replaceChildren(...Object.entries(data.outcomes).map(([outcome, count]) =>
    el('div', { class: `count ${outcome} ${toneOf(outcome)}`, 'data-none': count === 0 },
      el('dt', {}, wordsOf(outcome)), el('dd', {}, count.toLocaleString('en')))));
  $('statistics').replaceChildren(...data.statistics.map(figure));
  $('job-metadata').hidden = !job.metadata;
  $('job-metadata-text').textContent = job.metadata ?? '';
}

/** A figure, its interval, and what it is made of. */
function figure({ name, value, low, high, reason, runs, tasks, clusters }) {
  const of = low !== null && clusters < tasks ? `, of ${plural(clusters, 'cluster')}` : '';
  const interval = runs === undefined ? '' : ` (${intervalText({ low, high, reason })}${of})`;
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
    value: row => [...OUTCOMES.keys()].indexOf(row.trajectory.outcome), cell: row => [badge(row.trajectory.outcome)],
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
    trajectory.description, wordsOf(trajectory.outcome)].join('\n').toLowerCase();
}

function taskCell(trajectory) {
  const brief = [wordsOf(trajectory.outcome), trajectory.environment,
    plural(trajectory.step_count, 'step'), secondsText(trajectory.seconds)].join(' · ');
  const notes = [trajectory.earlier && 'an earlier try, not counted',
    trajectory.foreign && 'foreign to the plan, not counted', trajectory.damage && `damaged: ${trajectory.damage}`];
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
