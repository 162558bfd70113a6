// The live page: a running session's steps as they are recorded. It watches; user.js takes replies.

import { $, el, facts, isTyping, say } from './dom.js';
import { Player } from './player.js';
import { turnItem } from './turns.js';
import { beginReplies, endReplies } from './user.js';
import { badge, clip, hasHash, moment, plural, rewardText, secondsText } from './words.js';

const base = location.pathname.replace(/\/$/, '');
const STATES = { starting: 'starting', running: 'running', grading: 'being graded', ended: 'ended' };
const MOST_LINES = 2000;

const addressOf = shot => `${base}/pictures/${encodeURIComponent(shot.sha256)}`;
const picture = shot => (hasHash(shot) ? { url: addressOf(shot) } : { problem: 'The picture is missing.' });
picture.why = async url => {
  const response = await fetch(url).catch(() => null);
  return response && !response.ok ? response.text() : undefined;
};

/** The steps that were sent so far; earlier ones may be missing. */
const steps = {
  first: 0,
  count: 0,
  found: new Map(),
  at: index => steps.found.get(index),
  load: async () => {},
  outline: () => Array.from({ length: steps.count - steps.first }, (_, index) => {
    const step = steps.found.get(steps.first + index);
    return step ? [step.words, Boolean(step.error), step.after_s, step.took_s, step.after] : ['…', false, NaN, 0, null];
  }),
  errors: () => [...steps.found.values()].filter(step => step.error).map(step => step.index),
  hasPictures: () => steps.pictured,
};

let follows = true, waiting = false, over = false, lines = [], nextLine = 0;

const player = new Player({ picture, moved: step => follow(step === steps.count - 1) });
for (const name of ['grade', 'raw', 'log']) player.tabs.offer(name, false);

/** Says plainly whether the page goes along with the session. */
function follow(wanted) {
  follows = wanted;
  $('follow').setAttribute('aria-pressed', wanted);
  const newer = steps.count - 1 - player.step;
  const behind = newer > 0 ? `${plural(newer, 'newer step')}.` : '';
  $('follows').textContent = over ? 'The session is over.'
    : wanted ? 'Following: the newest step is shown as it comes.' : `Not following. ${behind}`;
  $('follow').hidden = over || wanted;
}

function showLatest() {
  waiting = false;
  if (follows) {
    player.step = steps.count - 1;
    player.side = 'after';
  }
  player.resize();
  player.draw();
  follow(follows);
}

function addStep(step) {
  if (!steps.found.size) {
    steps.first = step.index;
    $('waiting').hidden = true;
    $('workbench').hidden = false;
    steps.pictured = false;
    player.open(steps, step.index);
  }
  steps.pictured ||= step.after !== null || step.before !== null;
  steps.found.set(step.index, step);
  steps.count = Math.max(steps.count, step.index + 1);
  // Many come at once when one begins to watch.
  if (!waiting) requestAnimationFrame(showLatest);
  waiting = true;
}

function showState(head) {
  document.title = `${head.task} · live`;
  $('task-name').textContent = head.task;
  facts($('task-facts'), [head.environment, `template ${head.template}`, moment(head.started_at)]);
  $('asked').hidden = head.prompt === null;
  $('prompt').textContent = head.prompt ?? '';
  const state = document.createElement('span');
  state.className = `state-now${head.state === 'ended' ? ' over' : ''}`;
  state.textContent = STATES[head.state] ?? head.state;
  $('state').replaceChildren(state);
  if (head.state === 'ended' && !steps.count) $('waiting').textContent = 'It ended without a step.';
}

/** The score card: what came of it, as far as the agent may know. */
function showEnd({ outcome, reward, content, seconds }) {
  over = true;
  endReplies();
  const has = reward !== undefined && reward !== null, failed = steps.errors().length;
  $('state').replaceChildren(badge(outcome, has ? reward : null), has ? ` reward ${rewardText(reward)}` : '');
  const figures = [['steps', steps.count], ['failed', failed], ['took', secondsText(seconds ?? null)]];
  $('card').replaceChildren(
    has ? el('span', { class: 'big' }, rewardText(reward)) : el('span', { class: 'no-reward' }, 'no reward shown'), badge(outcome, has ? reward : null),
    el('dl', {}, ...figures.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, String(value))))),
    content ? el('p', { class: 'content' }, clip(content, 600)) : '');
  $('card').hidden = false;
  if (steps.count) showLatest();
  follow(follows);
}

function addLines({ first, lines: more }) {
  lines = [...(first === nextLine ? lines : []), ...more].slice(-MOST_LINES);
  nextLine = first + more.length;
  player.tabs.offer('log', true);
  const end = $('log').scrollHeight - $('log').scrollTop - $('log').clientHeight < 40;
  $('log').textContent = lines.join('\n');
  if (end) $('log').scrollTop = $('log').scrollHeight;
}

function listen() {
  const events = new EventSource(`${base}/events`);
  const on = (kind, take) => events.addEventListener(kind, event => take(JSON.parse(event.data)));
  on('state', head => {
    say($('notice'), '');
    showState(head);
  });
  on('step', addStep);
  on('turns', ({ turns }) => $('turns-left').replaceChildren(...turns.map(turnItem)));
  on('log', addLines);
  on('end', end => {
    events.close();
    showEnd(end);
  });
  events.addEventListener('error', () => {
    const closed = events.readyState === EventSource.CLOSED;
    say($('notice'), closed ? 'This session cannot be watched any more.' : 'The connection was lost; trying again.');
  });
}

$('follow').addEventListener('click', () => {
  follow(true);
  if (steps.count) showLatest();
});
document.addEventListener('keydown', event => {
  if (event.altKey || event.ctrlKey || event.metaKey || isTyping(event)) return;
  if (player.pressed(event)) event.preventDefault();
});
$('workbench').hidden = true;
if (document.body.dataset.replies === 'yes') beginReplies(base);
listen();
document.documentElement.dataset.rendered = 'yes';
