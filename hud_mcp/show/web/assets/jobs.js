// All jobs of a record, newest first.

import { $, el } from './dom.js';
import { Table } from './table.js';
import { linkToJob, meter, momentText, plural, rewardText } from './words.js';

export class JobsPage {
  constructor() {
    this.table = new Table({
      columns: JOB_COLUMNS, noun: 'job', sort: 'when', descending: true,
      ids: { columns: 'job-columns', rows: 'job-rows', shown: 'jobs-shown', sort: 'job-sort' },
    });
    this.table.filter = row => row.text.includes($('find-job').value.trim().toLowerCase());
    $('job-filters').addEventListener('submit', event => event.preventDefault());
    $('find-job').addEventListener('input', () => this.table.draw());
  }

  show(data) {
    this.data = data;
    const jobs = data.loose ? [{ ...LOOSE, ...data.loose }, ...data.jobs] : data.jobs;
    $('jobs-empty').hidden = jobs.length > 0;
    $('jobs-table').hidden = $('jobs-shown').hidden = jobs.length === 0;
    this.table.show(jobs.map((job, index) => ({
      job, number: jobs.length - index,
      text: [job.name, job.id, job.taskset, job.agent].join('\n').toLowerCase(),
    })));
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
    return this.table.pressed(event);
  }
}

/** Sessions that no job ran, such as a person's: they are listed as one. */
const LOOSE = { id: '', name: 'Sessions without a job', taskset: null, agent: null };

const JOB_COLUMNS = [
  {
    key: 'job', label: 'Job', isHead: true, value: row => row.job.name.toLowerCase(),
    cell: ({ job }) => [
      el('a', { href: linkToJob(job) }, job.name),
      el('span', { class: 'brief' }, [
        job.agent, job.created_at && momentText(job.created_at), plural(job.total, 'session'),
      ].filter(Boolean).join(' · ')),
    ],
  },
  { key: 'taskset', label: 'Taskset', value: row => row.job.taskset, cell: ({ job }) => [job.taskset ?? '—'] },
  { key: 'agent', label: 'Agent', value: row => row.job.agent, cell: ({ job }) => [job.agent ?? '—'] },
  {
    key: 'when', label: 'When', value: row => row.job.created_at,
    cell: ({ job }) => [job.created_at ? momentText(job.created_at) : '—'],
  },
  { key: 'sessions', label: 'Sessions', value: row => row.job.total, cell: ({ job }) => [job.total.toLocaleString('en')] },
  {
    key: 'graded', label: 'Graded', value: row => row.job.graded,
    cell: ({ job }) => [job.graded.toLocaleString('en')],
  },
  {
    key: 'average', label: 'Mean reward', value: row => row.job.mean,
    cell: ({ job }) => (job.mean === null ? [el('span', { class: 'quiet' }, '—')]
      : [meter(job.mean), el('span', { class: 'figure' }, rewardText(job.mean))]),
  },
];
