// The viewer: the record is on a server, which is asked for what is looked at.

import { App } from './app.js';
import { $, say } from './dom.js';
import { hasHash } from './words.js';

const JOB_PAGE = 500, STEP_PAGE = 50, KEPT_JOBS = 4;

async function ask(path, parameters = {}) {
  const query = new URLSearchParams(parameters);
  let response;
  try {
    response = await fetch(`${path}?${query}`);
  } catch {
    throw new Error('The server has ended or does not answer. What is shown stays as it was; `hud-mcp view` shows the record again.');
  }
  const text = await response.text();
  if (!response.ok && !text.startsWith('{')) throw new Error(text);
  const found = JSON.parse(text);
  if (!response.ok) throw new Error(found.error);
  return found;
}

// ---- Jobs

const jobs = new Map();

/** A job; the same object while nothing in it has changed. All rows of a short one are in it. */
async function fetchJob(id) {
  for (;;) {
    const before = jobs.get(id);
    const found = await ask('/api/job', { id, known: before?.revision ?? '' });
    if (found.waiting) {
      say($('notice'), 'The job is being prepared; its runs appear here as they begin.');
      await new Promise(done => setTimeout(done, 500));
      continue;
    }
    if (before?.revision === found.revision) return before;
    if (found.since) found.trajectories = changedRows(before.trajectories, found);
    else if (!found.paged && !await fetchRest(id, found)) continue;
    jobs.delete(id);
    jobs.set(id, found);
    if (jobs.size > KEPT_JOBS) jobs.delete(jobs.keys().next().value);
    return found;
  }
}

function changedRows(rows, { total, changed }) {
  const now = rows.slice(0, total);
  for (const [place, row] of changed) now[place] = row;
  return now;
}

/** Adds the other rows of a short job; false where it has changed in the meantime. */
async function fetchRest(id, { trajectories, total, revision }) {
  const rest = [];
  for (let start = JOB_PAGE; start < total; start += JOB_PAGE) {
    rest.push(ask('/api/rows', { id, start, revision }));
  }
  try {
    for (const page of await Promise.all(rest)) trajectories.push(...page.rows);
    return true;
  } catch (error) {
    if (!/has changed/.test(error.message)) throw error;
    return false;
  }
}

// ---- Steps

/** Steps that are asked for page by page. */
class PagedSteps {
  constructor(trajectory) {
    this.id = trajectory.id;
    this.count = trajectory.outline.length; // fewer than it had, where steps were pruned
    this.lines = trajectory.outline.map(([words, failed, at, took, shot, thoughts]) => (
      [words, failed, at, took, shot && { ...shot, of: trajectory.id }, thoughts]));
    this.times = trajectory.spans;
    this.pictured = trajectory.has_pictures;
    this.found = new Map();
    this.asked = new Map();
  }

  at(index) {
    return this.found.get(index);
  }

  load(index) {
    const start = index - (index % STEP_PAGE);
    if (!this.asked.has(start)) this.asked.set(start, this.fetch(start));
    return this.asked.get(start);
  }

  async fetch(start) {
    try {
      const { steps } = await ask('/api/steps', { id: this.id, start, stop: start + STEP_PAGE });
      for (const step of steps) {
        for (const side of ['before', 'after']) if (step[side]) step[side].of = this.id;
        this.found.set(step.index, step);
      }
    } catch (error) {
      this.asked.delete(start);
      throw error;
    }
  }

  outline() {
    return this.lines;
  }

  spans() {
    return this.times;
  }

  errors() {
    return this.lines.flatMap(([, failed], index) => (failed ? [index] : []));
  }

  hasPictures() {
    return this.pictured;
  }
}

// ---- Pictures

const addressOf = shot => `/picture?${new URLSearchParams({ id: shot.of, hash: shot.sha256 })}`;

const picture = shot => (hasHash(shot) ? { url: addressOf(shot) } : { problem: 'The picture is missing.' });

/** What the server says of a picture that cannot be shown. */
picture.why = async url => {
  try {
    const response = await fetch(url);
    return response.ok ? undefined : await response.text();
  } catch {
    return 'The server does not answer.';
  }
};

function preload(shot) {
  if (shot && hasHash(shot)) new Image().src = addressOf(shot);
}

new App({
  home: 'jobs',
  refresh_s: 2,
  jobs: () => ask('/api/jobs'),
  job: async (id, { fresh = false } = {}) => (fresh ? fetchJob(id) : jobs.get(id) ?? fetchJob(id)),
  trajectory: async id => {
    const trajectory = await ask('/api/trajectory', { id });
    return { trajectory, steps: new PagedSteps(trajectory) };
  },
  place: async ({ id }) => ask('/api/place', { id }),
  rows: async (id, query) => ask('/api/rows', { id, ...query }),
  across: ({ ids, only, find, start = 0, known = '' }) =>
    ask('/api/across', [...ids.map(id => ['job', id]), ['only', only], ['find', find], ['start', start], ['known', known]]),
  runs: async task => (await ask('/api/runs', { task })).runs,
  picture,
  preload,
}).start();
