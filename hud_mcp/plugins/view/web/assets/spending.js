// What the runs of a job took: time, steps, tokens and cost, and its slowest tasks.

import { $, el, facts } from './dom.js';
import { linkTo, moneyText, plural, secondsText } from './words.js';

const countText = value => (value >= 100 ? Math.round(value) : Math.round(value * 10) / 10).toLocaleString('en');

function durationText(seconds) {
  if (seconds < 3600) return secondsText(seconds);
  return `${Math.floor(seconds / 3600).toLocaleString('en')} h ${Math.round((seconds % 3600) / 60)} min`;
}

const SPENT = {
  seconds: ['Time', durationText], steps: ['Steps', countText], turns: ['Model turns', countText],
  input: ['Tokens in', countText], output: ['Tokens out', countText], cached: ['Of those in, cached', countText],
  cost_usd: ['Cost', moneyText], model_s: ['Waiting for the model', durationText], environment_s: ['Steps of the environment', durationText],
};

/** Draws what runs took; hidden where none has ended. */
export function showSpending(spending) {
  $('spending').hidden = !spending;
  if (!spending) return;
  const { runs, open, elapsed_s: elapsed, at_once: atOnce, unpriced, cost_per_pass: perPass, figures, slowest } = spending;
  facts($('spending-facts'), [
    `${plural(runs, 'run')} ended in ${durationText(elapsed)}`,
    runs > 1 && atOnce !== null && `${atOnce.toFixed(1)} at once on average`,
    open && `${plural(open, 'run')} not ended`,
    perPass !== null && `${moneyText(perPass)} for each run that passed`,
    unpriced && `the cost of ${plural(unpriced, 'run')} is not wholly known`,
  ]);
  // A job of agents that do nothing has figures that are 0 throughout.
  const told = figures.filter(({ name, most }) => most > 0 || name === 'seconds');
  $('spending-tables').replaceChildren(figureTable(told, runs), slowest.length ? slowTable(slowest) : '');
}

const column = (words, kind) => el('th', { scope: 'col', role: 'columnheader', class: kind }, words);
const entry = (kind, ...children) => el('td', { role: 'cell', class: kind }, ...children);

function spentTable(label, kind, heads, rows) {
  return el('table', { class: `spent ${kind}`, role: 'table', 'aria-label': label },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads)), el('tbody', { role: 'rowgroup' }, ...rows));
}

function figureTable(figures, runs) {
  const isOne = runs === 1;
  const heads = [column('', 'what'), column(isOne ? 'The run' : 'In all', 'sum')];
  heads[0].append(el('span', { class: 'unseen' }, 'Figure'));
  if (!isOne) heads.push(column('Median run', 'middle'), column('Middle half', 'half'), el('td', { class: 'range' }), column('Most', 'most'));
  return spentTable('What the runs took', isOne ? 'single' : '', heads, figures.map(figure => figureRow(figure, runs)));
}

function figureRow(figure, runs) {
  const [words, text] = SPENT[figure.name];
  const of = figure.runs < runs ? el('span', { class: 'over' }, ` of ${plural(figure.runs, 'run')}`) : null;
  const row = el('tr', { role: 'row' },
    el('th', { scope: 'row', role: 'rowheader', class: 'what' }, words, of), entry('sum', text(figure.total)));
  if (runs > 1) {
    const half = figure.low === figure.high ? text(figure.low) : `${text(figure.low)} to ${text(figure.high)}`;
    row.append(entry('middle', text(figure.median)), entry('half', half), el('td', { class: 'range', 'aria-hidden': 'true' }, rangeOf(figure)),
      entry('most', el('a', { href: linkTo({ id: figure.most_run }), 'aria-label': `Most: ${text(figure.most)}, ${words}` }, text(figure.most))));
  }
  return row;
}

/** From the least to the most, on a scale from 0; the middle half is thick, and the median a mark in it. */
function rangeOf({ least, low, median, high, most }) {
  const field = el('span', { class: 'spread' });
  if (most <= 0) return field;
  const place = (kind, from, to) => {
    const node = el('span', { class: kind });
    node.style.left = `${(100 * from) / most}%`;
    node.style.right = `${100 - (100 * to) / most}%`;
    field.append(node);
  };
  place('all', least, most);
  place('half-of', low, high);
  place('mid', median, median);
  return field;
}

function slowTable(slowest) {
  const isMany = slowest.some(task => task.runs > 1);
  const heads = [column('Slowest tasks', 'what'), isMany ? column('Runs', 'runs') : null, column(isMany ? 'Median run' : 'Time', 'middle'), isMany ? column('Longest', 'most') : null];
  return spentTable('The slowest tasks', isMany ? 'slow many' : 'slow', heads.filter(Boolean), slowest.map(task => el('tr', { role: 'row' },
    el('th', { scope: 'row', role: 'rowheader', class: 'what' }, el('a', { href: linkTo({ id: task.most_run }) }, task.task)),
    isMany ? entry('runs', countText(task.runs)) : null, entry('middle', durationText(task.median_s)),
    isMany ? entry('most', durationText(task.most_s)) : null)));
}
