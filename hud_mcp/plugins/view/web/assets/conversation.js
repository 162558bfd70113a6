// A run's conversation as one: the agent, its user and the world side by side.

import { el } from './dom.js';

/** Draws the loaded steps of a conversation, with a mark on the shown one; null where nobody talks. */
export function conversationOf(steps, shown) {
  const rows = [], goals = new Set();
  let user = 'User', isShown = false;
  for (let index = steps.first ?? 0; index < steps.count; index += 1) {
    const step = steps.at(index);
    if (step === undefined) continue;
    if (step.user?.goal) goals.add([step.user.goal, step.user.persona].filter(Boolean).join('\n'));
    if (step.user?.is_person) user = `User: a person ${step.user.on_page ? 'on the live page' : 'at the caller'}`;
    isShown ||= index === shown;
    // Its words stand beside the message that they answer; the first ones answer none.
    if (step.kind === 'user' && rows.length) continue;
    rows.push(rowOf(step, isShown));
    isShown = false;
  }
  if (!rows.some(row => row.talks)) return null;
  return el('details', { class: 'conversation', open: '' },
    el('summary', {}, 'The conversation'),
    ...[...goals].map(goal => el('details', { class: 'goal' },
      el('summary', {}, "The user's goal, which its agent does not see"), el('pre', { tabindex: 0 }, goal))),
    el('table', {},
      el('thead', {}, el('tr', {}, ...['Agent', user, 'World'].map(name => el('th', { scope: 'col' }, name)))),
      el('tbody', {}, ...rows.map(row => row.root))));
}

function rowOf(step, isShown) {
  const talks = step.kind === 'message', speaks = talks || step.kind === 'user';
  const world = speaks ? step.events ?? [] : [step.words, ...(step.events ?? [])];
  const cells = [talks ? step.says : step.kind === 'response' ? step.words : '', speaks ? step.text : '', step.kind === 'response' ? '' : world.join('\n')];
  return {
    talks,
    root: el('tr', { 'aria-current': isShown ? 'step' : null }, ...cells.map(text => el('td', {}, text ?? ''))),
  };
}
