// What a model thought, said and called before a step; only people who read the record are sent it.

import { el } from './dom.js';
import { secondsText } from './words.js';

/** One reply of a model. */
export function turnItem(turn) {
  const short = turn.facts.filter(fact => !fact.startsWith('settings ')), settings = turn.facts.filter(fact => fact.startsWith('settings '));
  return el('section', { class: 'turn', 'aria-label': `Turn ${turn.number + 1} of the model` },
    el('h3', {}, `Turn ${turn.number + 1} of the model`),
    el('p', { class: 'facts' },
      ...[`after ${secondsText(turn.after_s)}`, `took ${secondsText(turn.took_s)}`, ...short].map(fact => el('span', {}, fact))),
    turn.reasoning ? saidBlock('It thought', turn.reasoning) : null,
    turn.text ? saidBlock('It said', turn.text) : null,
    turn.calls.length ? saidBlock('It called', turn.calls.join('\n')) : null,
    turn.error ? el('p', { class: 'error' }, turn.error) : null,
    ...turn.removed.map(text => el('p', { class: 'quiet' }, text)),
    settings.length ? el('details', {}, el('summary', {}, 'Settings'), el('pre', { tabindex: 0 }, settings[0].slice('settings '.length))) : null);
}

function saidBlock(title, text) {
  return el('details', { open: '' }, el('summary', {}, title), el('pre', { tabindex: 0 }, text));
}
