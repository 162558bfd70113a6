// The tools of servers in recorded runs: which were listed and called, and how many calls failed.

import { $, el } from './dom.js';
import { plural } from './words.js';

const head = (words, kind) => el('th', { scope: 'col', role: 'columnheader', class: kind }, words);

/** Draws the tools into a place and its `-used`; hidden where no server was called. */
export function showTools(place, use) {
  $(place).hidden = !use;
  if (!use) return;
  const called = use.tools.filter(tool => tool.calls > 0), idle = use.tools.filter(tool => tool.calls === 0);
  const servers = use.servers.map(({ name, count, tokens }) => (
    `${name} lists ${plural(count, 'tool')}, about ${tokens.toLocaleString('en')} tokens in each request.`));
  $(`${place}-used`).replaceChildren(
    el('p', { class: 'legend' }, `${servers.join(' ')} ${plural(use.calls, 'call')}, ${use.errors} failed.`),
    el('table', { class: 'spent tools', role: 'table', 'aria-label': 'The tools that were called' },
      el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, head('Tool', 'what'), head('Calls', 'sum'), head('Failed', 'most'))),
      el('tbody', { role: 'rowgroup' }, ...called.map(row))),
    idle.length ? el('p', { class: 'legend' }, `Never called: ${idle.map(tool => tool.name).join(', ')}.`) : '');
}

function row({ name, calls, errors }) {
  const cell = (kind, value) => el('td', { role: 'cell', class: kind }, value.toLocaleString('en'));
  return el('tr', { role: 'row' },
    el('th', { scope: 'row', role: 'rowheader', class: 'what' }, name), cell('sum', calls), cell('most', errors));
}
