// What one step did, and what its model thought, said and used, in words.

import { conversationOf } from './conversation.js';
import { el, facts, say } from './dom.js';
import { turnItem } from './turns.js';
import { rewardText, secondsText } from './words.js';

/** named: whether its elements have ids; one panel of a page may. */
export class Panel {
  constructor({ named }) {
    const part = (name, kind, attributes = {}, ...children) =>
      (this[name] = el(kind, { ...attributes, id: named ? name : null }, ...children));
    this.root = part('panel', 'div', { class: 'panel' },
      el('div', { class: 'bar' },
        part('step-title', 'h2'),
        part('step-link', 'a', { class: 'quiet' }, 'Link to this step')),
      part('step-facts', 'p', { class: 'facts' }),
      part('turns', 'div'),
      part('actions', 'ol', { class: 'actions' }),
      part('events', 'ul', { class: 'actions' }),
      part('conversation', 'div', { class: 'talk' }),
      part('step-error', 'p', { class: 'error', hidden: true }),
      part('step-info', 'details', { hidden: true },
        el('summary', {}, 'More of this step'), part('step-info-text', 'pre', { tabindex: 0 })));
  }

  /** Draws a step; `link` is where it can be found again, or null. */
  draw(step, link, steps) {
    this['step-title'].textContent = `Step ${step.index + 1}`;
    if (link) this['step-link'].setAttribute('href', link);
    this['step-link'].hidden = !link;
    facts(this['step-facts'], [
      step.kind,
      `after ${secondsText(step.after_s)}`,
      `took ${secondsText(step.took_s)}`,
      step.reward !== null && `reward ${rewardText(step.reward)}`,
      step.terminated && 'the task reached its end',
      step.truncated && 'cut off by a limit',
    ]);
    this.turns.replaceChildren(...(step.turns ?? []).map(turnItem));
    this.actions.replaceChildren(...step.actions.map(actionItem));
    this.actions.hidden = !step.actions.length;
    const events = step.events ?? [];
    this.events.replaceChildren(...events.map(said => el('li', {}, el('span', { class: 'words' }, `The world: ${said}`))));
    this.events.hidden = !events.length;
    const talk = steps ? conversationOf(steps, step.index) : null;
    this.conversation.replaceChildren(...talk ? [talk] : []);
    this.conversation.hidden = !talk;
    talk?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
    say(this['step-error'], step.error);
    this['step-info'].hidden = !step.info;
    this['step-info-text'].textContent = step.info ?? '';
  }
}

function actionItem(action) {
  return el('li', { class: action.state === 'not performed' ? 'undone' : null },
    el('span', { class: 'words' }, action.words),
    action.state === 'performed' ? null : el('em', { class: 'state' }, ` ${action.state}`),
    action.note ? el('span', { class: 'note' }, action.note) : null);
}
