// The runs of a job as a file: CSV for a spreadsheet, or JSON Lines.

import { el } from './dom.js';

const FIELDS = [
  'id', 'task', 'environment', 'template', 'outcome', 'cause', 'reward', 'expected', 'step_count', 'seconds',
  'started_at', 'earlier', 'foreign', 'why',
];

/** The runs as plain objects; what a run has several of is a list. */
export function plainRuns({ job, groupings, trajectories }) {
  const said = groupings.filter(({ by }) => ['set', 'difficulty', 'skill', 'split'].includes(by));
  return trajectories.map(trajectory => ({
    job: job.id,
    ...Object.fromEntries(FIELDS.map(name => [name, trajectory[name]])),
    ...Object.fromEntries(said.map(({ by, groups, overlapping }) => {
      const names = (trajectory.groups[by] ?? []).map(place => groups[place].name).filter(Boolean);
      return [by, overlapping ? names : names[0] ?? null];
    })),
  }));
}

export const jsonLines = runs => runs.map(run => `${JSON.stringify(run)}\n`).join('');

/** RFC 4180. A text that a spreadsheet would take for a formula begins with an apostrophe. */
export function commaSeparated(runs, { isMore = false } = {}) {
  const names = Object.keys(runs[0] ?? {});
  return [...(isMore ? [] : [names]), ...runs.map(run => names.map(name => run[name]))]
    .map(row => `${row.map(csvCell).join(',')}\r\n`).join('');
}

function csvCell(value) {
  if (value === null || value === undefined) return '';
  const text = Array.isArray(value) ? value.join(' ') : String(value);
  const safe = typeof value !== 'number' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Hands a file to the reader; nothing leaves the page. */
export function save(parts, name, type) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  el('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
