// All jobs of a record, newest first.

import { $, el } from './dom.js';
import { Table } from './table.js';
import { agoText, linkToAcross, linkToJob, meter, momentText, moneyText, plural, rewardText, secondsText } from './words.js';

export class JobsPage {
  constructor() {
    this.table = new Table({
      columns: JOB_COLUMNS, noun: 'job', sort: 'when', descending: true,
      ids: { columns: 'job-columns', rows: 'job-rows', shown: 'jobs-shown', sort: 'job-sort' },
    });
    this.table.filter = row => row.text.includes($('find-job').value.trim().toLowerCase()) &&
      (!$('job-state').value || row.job.state === $('job-state').value);
    $('job-filters').addEventListener('submit', event => event.preventDefault());
    for (const id of ['find-job', 'job-state']) $(id).addEventListener('input', () => this.table.draw());
    $('job-rows').addEventListener('change', event => this.pick(event.target.value, event.target.checked));
    $('compare-jobs').addEventListener('click', () => {
      location.hash = linkToAcross([...CHOSEN]);
    });
  }

  show(data) {
    this.data = data;
    const known = new Set(data.jobs.map(({ id }) => id));
    for (const id of CHOSEN) if (!known.has(id)) CHOSEN.delete(id);
    this.nameChosen();
    const jobs = data.loose ? [{ ...LOOSE, ...data.loose }, ...data.jobs] : data.jobs;
    $('jobs-empty').hidden = jobs.length > 0;
    $('jobs-table').hidden = $('jobs-shown').hidden = jobs.length === 0;
    this.table.show(jobs.map((job, index) => ({
      job, number: jobs.length - index,
      text: [job.name, job.id, job.taskset, job.agent].join('\n').toLowerCase(),
    })));
  }

  pick(id, isWanted) {
    if (isWanted) CHOSEN.add(id);
    else CHOSEN.delete(id);
    this.nameChosen();
  }

  /** More than eight are too many to be read beside each other. */
  nameChosen() {
    const button = $('compare-jobs'), count = CHOSEN.size;
    button.hidden = count === 0;
    button.disabled = count > MOST_CHOSEN;
    button.textContent = count === 1 ? 'Compare with others' : `Compare ${count} jobs${count > MOST_CHOSEN ? `: at most ${MOST_CHOSEN}` : ''}`;
  }

  focus(id) {
    this.table.rows.find(({ job }) => job.id === id)?.node?.querySelector('a').focus();
  }

  pressed(event) {
    if (event.key === '/') {
      $('find-job').focus();
      $('find-job').select();
      return true;
    }
    const box = event.key === 'x' && document.activeElement.closest?.('#job-rows tr')?.querySelector('[type="checkbox"]');
    if (box) {
      box.click();
      return true;
    }
    return this.table.pressed(event);
  }
}

const MOST_CHOSEN = 8;

/** The ids of the jobs that are to be compared, in the order in which they were chosen. */
const CHOSEN = new Set();

/** A box that chooses a job; sessions of no job and proofs of tasks have none. */
function pickBox({ id, name, proof }) {
  if (!id || proof) return [];
  const box = el('input', { type: 'checkbox', class: 'pick', value: id, 'aria-label': `Choose ${name} to compare` });
  box.checked = CHOSEN.has(id);
  return [box];
}

/** Sessions that no job ran, such as a person's: they are listed as one. */
const LOOSE = { id: '', name: 'Sessions without a job', taskset: null, agent: null };

const isKnown = figure => figure !== null && figure !== undefined;

const STATES = { running: 'open', ended: 'good', stopped: 'bad' };

/** Whether it goes on, and how far it is; sessions without a job have neither. */
function stateCell({ state, ended, wanted, total }) {
  if (!state) return [el('span', { class: 'quiet' }, plural(total, 'session'))];
  const far = wanted && ended < wanted ? `${ended.toLocaleString('en')} of ${plural(wanted, 'run')} ended` : plural(ended, 'run');
  return [el('span', { class: `badge ${state} ${STATES[state]}` }, state), el('span', { class: 'over' }, far)];
}

const JOB_COLUMNS = [
  {
    key: 'job', label: 'Job', isHead: true, value: row => row.job.name.toLowerCase(),
    cell: ({ job }) => [
      ...pickBox(job),
      el('a', { href: linkToJob(job) }, job.name),
      el('span', { class: 'brief' }, [
        job.agent, job.created_at && agoText(job.created_at), job.state, plural(job.total, 'session'),
        isKnown(job.cost) && moneyText(job.cost),
        job.failed && `${job.failed.toLocaleString('en')} without a grade`,
      ].filter(Boolean).join('\u00a0· ')),
    ],
  },
  { key: 'taskset', label: 'Task sets', value: row => row.job.taskset, cell: ({ job }) => [job.taskset ?? '—'] },
  { key: 'agent', label: 'Agent', value: row => row.job.agent, cell: ({ job }) => [job.agent ?? '—'] },
  {
    key: 'when', label: 'When', value: row => row.job.created_at,
    cell: ({ job }) => (job.created_at ? [momentText(job.created_at), el('span', { class: 'over' }, agoText(job.created_at))] : ['—']),
  },
  {
    key: 'progress', label: 'State', value: row => row.job.state ?? null,
    cell: ({ job }) => stateCell(job),
  },
  {
    key: 'took', label: 'Duration', value: row => row.job.seconds ?? null,
    cell: ({ job }) => [
      isKnown(job.seconds) ? secondsText(job.seconds) : '—',
      ...(isKnown(job.cost) ? [el('span', { class: 'over' }, moneyText(job.cost))] : []),
    ],
  },
  {
    key: 'failures', label: 'No grade', value: row => row.job.failed ?? null,
    cell: ({ job }) => (job.failed ? [el('span', { class: 'unmet' }, job.failed.toLocaleString('en'))] : [job.failed === 0 ? '0' : '—']),
  },
  {
    key: 'average', label: 'Mean reward', value: row => row.job.mean,
    cell: ({ job }) => (job.mean === null ? [el('span', { class: 'quiet' }, '—')]
      : [meter(job.mean), el('span', { class: 'figure' }, rewardText(job.mean))]),
  },
];
