// Runs by set, difficulty and skill: a plot that is a table, and the head of each group of rows.

import { $, el } from './dom.js';
import { OUTCOMES, intervalText, linkToGroup, meter, plural, rewardText, secondsText, wordsOf } from './words.js';

const MOST_GROUPS = 10, FIRST_GROUPS = 8;

// ---- How the runs of a group ended

/** Its runs by how they ended, the best first; what was graded is told apart by its reward. */
export function endsOf({ graded, passed, unrewarded, outcomes }) {
  const ends = [
    { kind: 'passed', words: 'passed', count: passed },
    { kind: 'in-part', words: 'in part', count: graded - passed - unrewarded },
    { kind: 'unrewarded', words: 'with reward 0', count: unrewarded },
  ];
  for (const outcome of OUTCOMES.keys()) {
    // An edited record may have a graded run without a reward, which is counted as what it is.
    if (outcome !== 'graded') ends.push({ kind: kindOf(outcome), words: wordsOf(outcome), count: outcomes[outcome] ?? 0 });
  }
  return ends.filter(end => end.count > 0);
}

const kindOf = outcome => (['unfinished', 'not_begun'].includes(outcome) ? 'open' : 'failed');

export const endsText = ends => ends.map(({ count, words }) => `${count.toLocaleString('en')} ${words}`).join(', ');

/** A bar in parts; its words stand beside it. */
export function strip(ends) {
  return el('span', { class: 'strip', 'aria-hidden': 'true' }, ...ends.map(({ kind, count, words }) => {
    const part = el('span', { class: `part ${kind}`, title: `${count.toLocaleString('en')} ${words}` });
    part.style.flexGrow = count;
    return part;
  }));
}

const KEYS = [
  ['passed', 'passed'], ['in-part', 'in part'], ['unrewarded', 'reward 0'], ['failed', 'no reward'], ['open', 'not ended'],
];

/** What each part of a strip means, as far as it is there. */
export function stripKeys(ends) {
  const kinds = new Set(ends.map(end => end.kind));
  return KEYS.filter(([kind]) => kinds.has(kind)).map(([kind, words]) =>
    el('span', { class: 'key' }, el('span', { class: `swatch part ${kind}` }), words));
}

// ---- The plot

/** Draws every grouping that has one; hidden where rows say nothing of themselves. */
export function showGroupings(data) {
  const plotted = data.groupings.filter(grouping => grouping.plotted);
  $('groupings').hidden = plotted.length === 0;
  if (!plotted.length) return;
  $('groupings-title').textContent = `By ${plotted.map(({ words }) => words).join(', ').replace(/, ([^,]*)$/, ' and $1')}`;
  $('groupings-legend').replaceChildren(
    el('span', {}, 'Dots are mean rewards over graded runs; lines are their 95% intervals over tasks.'),
    ...stripKeys(plotted.flatMap(({ groups }) => groups.flatMap(endsOf))));
  $('groupings-plots').replaceChildren(...plotted.map(grouping => plotOf(grouping, data.job)));
}

function plotOf(grouping, job) {
  const means = grouping.groups.flatMap(({ mean }) => (mean ? [mean.value] : []));
  const scale = { low: Math.min(0, ...means), high: Math.max(1, ...means) };
  const rows = grouping.groups.map((group, index) => plotRow(grouping, group, job, scale, grouping.groups.length > MOST_GROUPS && index >= FIRST_GROUPS));
  const column = (kind, label) => el('th', { scope: 'col', role: 'columnheader', class: kind }, label);
  const head = el('tr', { role: 'row' }, column('name', grouping.words), column('value', 'mean reward'),
    axis(scale), column('ends', 'runs'));
  const table = el('table', { class: 'grouped', role: 'table', 'aria-label': `Mean reward by ${grouping.words}` },
    el('thead', { role: 'rowgroup' }, head), el('tbody', { role: 'rowgroup' }, ...rows));
  return el('div', { class: `grouping ${grouping.by}` }, table, moreButton(grouping, rows),
    grouping.overlapping ? el('p', { class: 'legend' }, overlapText(grouping)) : null);
}

export const overlapText = ({ words }) =>
  `A run counts in each ${words} that its task has, so these add up to more than the job.`;

function moreButton({ words, groups }, rows) {
  if (groups.length <= MOST_GROUPS) return null;
  const show = () => {
    for (const row of rows) row.hidden = false;
    rows[FIRST_GROUPS].querySelector('a').focus();
    button.remove();
  };
  const button = el('button', { type: 'button', class: 'more', click: show }, `Show all ${groups.length} ${words}s`);
  return button;
}

function plotRow({ by }, group, job, scale, hidden) {
  const ends = endsOf(group);
  return el('tr', { role: 'row', hidden },
    el('th', { scope: 'row', role: 'rowheader', class: 'name' },
      el('a', { href: linkToGroup(job, by, [group.name]) }, group.title)),
    el('td', { role: 'cell', class: 'value' }, ...meanCell(group)),
    fieldCell(group.mean, scale),
    el('td', { role: 'cell', class: 'ends' }, strip(ends), el('span', { class: 'over' }, endsText(ends))));
}

function meanCell({ mean, wanted }) {
  if (!mean) return [el('span', { class: 'quiet' }, 'none'), ' ', el('span', { class: 'over' }, `0 graded of ${wanted.toLocaleString('en')}`)];
  return [el('span', { class: 'figure' }, mean.value.toFixed(3)), ' ',
    el('span', { class: 'over', title: mean.reason }, intervalOf(mean))];
}

/** What is of one task has no interval over tasks, and no reason to say so. */
const intervalOf = mean => (mean.low === null && mean.reason === null ? '' : mean.low === null ? 'no interval' : intervalText(mean));

const part = (value, { low, high }) => `${(100 * (value - low)) / (high - low)}%`;

/** The scale, which stands above the dots. The cells beside them say the same in numbers. */
function axis(scale) {
  return el('td', { class: 'place', 'aria-hidden': 'true' },
    ...[scale.low, (scale.low + scale.high) / 2, scale.high].map(value => el('span', {}, rewardText(value))));
}

function fieldCell(mean, scale) {
  const field = el('span', { class: 'dots' }), cell = el('td', { class: 'place', 'aria-hidden': 'true' }, field);
  if (!mean) return cell;
  if (mean.low !== null) {
    const line = el('span', { class: 'line' });
    line.style.left = part(mean.low, scale);
    line.style.right = `calc(100% - ${part(mean.high, scale)})`;
    field.append(line);
  }
  const dot = el('span', { class: 'dot' });
  dot.style.left = part(mean.value, scale);
  field.append(dot);
  return cell;
}

// ---- The head of a group of rows

/** The cells of a group's head, by the column that they stand in. */
export function groupCells(group, { isFiltered, count, isOpen }, why = null) {
  const ends = endsOf(group);
  const told = [
    `${group.graded.toLocaleString('en')} graded of ${plural(group.wanted, 'run')}`,
    isFiltered && `${count.toLocaleString('en')} shown`,
    group.use && `model: ${group.use}`,
  ].filter(Boolean).join(' · ');
  return {
    task: [el('span', { class: 'over' }, told), el('span', { class: 'brief' }, endsText(ends)),
      why && !isOpen ? el('span', { class: 'note' }, why) : ''],
    outcome: [strip(ends), el('span', { class: 'over' }, endsText(ends))],
    reward: group.mean
      ? [meter(group.mean.value), el('span', { class: 'figure' }, rewardText(Number(group.mean.value.toFixed(3)))),
        el('span', { class: 'over', title: group.mean.reason }, intervalOf(group.mean))]
      : [el('span', { class: 'quiet' }, 'none')],
    seconds: [el('span', { title: `${secondsText(group.seconds)} together` }, group.seconds.toFixed(1))],
  };
}
