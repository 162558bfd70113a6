// The live page: a running session's steps as they are recorded. It only watches.

import { $, facts, isTyping, say } from './dom.js';
import { Player } from './player.js';
import { turnItem } from './turns.js';
import { badge, clip, hasHash, moment, rewardText } from './words.js';

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
    return step ? [step.words, Boolean(step.error)] : ['…', false];
  }),
  errors: () => [...steps.found.values()].filter(step => step.error).map(step => step.index),
  hasPictures: () => steps.pictured,
};

let follows = true, waiting = false, lines = [], nextLine = 0;

const player = new Player({ picture, moved: step => follow(step === steps.count - 1) });

function follow(wanted) {
  follows = wanted;
  $('follow').setAttribute('aria-pressed', wanted);
}

function showLatest() {
  waiting = false;
  player.resize();
  $('outline').replaceChildren();
  if (follows) {
    player.step = steps.count - 1;
    player.side = 'after';
  }
  player.draw();
  if ($('all-steps').open) player.buildOutline();
}

function addStep(step) {
  if (!steps.found.size) {
    steps.first = step.index;
    $('waiting').hidden = true;
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

function showEnd({ outcome, reward, content }) {
  const said = reward === undefined || reward === null ? '' : `reward ${rewardText(reward)}`;
  $('state').replaceChildren(badge(outcome), said ? ` ${said}` : '', content ? ` ${clip(content, 300)}` : '');
}

function addLines({ first, lines: more }) {
  lines = [...(first === nextLine ? lines : []), ...more].slice(-MOST_LINES);
  nextLine = first + more.length;
  $('logged').hidden = false;
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
    const over = events.readyState === EventSource.CLOSED;
    say($('notice'), over ? 'This session cannot be watched any more.' : 'The connection was lost; trying again.');
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
$('player').hidden = true;
listen();
document.documentElement.dataset.rendered = 'yes';
