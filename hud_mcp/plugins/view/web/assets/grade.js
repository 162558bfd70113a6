// How a trajectory ended: the reward, its parts, and the receipt.

import { el } from './dom.js';
import { meter, rewardText, wordsOf } from './words.js';

export function gradeOf({ receipt, reward, outcome, answer }) {
  if (!receipt) return [el('p', { class: 'quiet' }, 'It has not ended, so there is no grade.')];
  const head = reward === null
    ? `No reward: ${wordsOf(outcome)}.` : `Reward ${rewardText(reward)}.`;
  const list = Object.entries(receipt.facts).filter(([, value]) => value !== null);
  return [
    el('p', { class: 'lead' }, head, receipt.content ? ` ${receipt.content}` : null),
    answer === null || answer === undefined ? ''
      : el('div', { class: 'answer' }, el('h3', {}, 'Answer'), el('pre', { tabindex: 0, role: 'group', 'aria-label': 'The answer' }, answer)),
    receipt.error ? el('p', { class: 'error' }, receipt.error) : '',
    receipt.subscores.length ? el('ul', { class: 'tree' }, ...receipt.subscores.map(subscore)) : '',
    receipt.info ? el('pre', { tabindex: 0, role: 'group', 'aria-label': 'More of the grade' }, receipt.info) : '',
    el('details', {}, el('summary', {}, 'Receipt'),
      el('dl', { class: 'receipt' }, ...list.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]))),
  ];
}

function subscore({ name, value, weight, info, children }) {
  return el('li', {},
    el('span', { class: 'score' },
      el('span', { class: 'name' }, name), meter(value),
      el('span', { class: 'figure' }, rewardText(value)),
      el('span', { class: 'quiet' }, `weight ${rewardText(weight)}`)),
    info ? el('span', { class: 'note' }, info) : null,
    children.length ? el('ul', {}, ...children.map(subscore)) : null);
}
