// What numbers, moments and outcomes are called, and where things are.

import { el } from './dom.js';

/** Every way to end by its name, in the order in which they are shown: the server says what each is. */
export const OUTCOMES = new Map(
  JSON.parse(document.getElementById('outcome-words').textContent).map(outcome => [outcome.name, outcome]));

export const plural = (count, word) =>
  `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`;
export const clip = (text, limit) => (text.length > limit ? `${text.slice(0, limit)}…` : text);
export const wordsOf = outcome => OUTCOMES.get(outcome)?.words ?? outcome;
export const letterOf = outcome => OUTCOMES.get(outcome)?.letter ?? '–';
export const toneOf = outcome => OUTCOMES.get(outcome)?.tone ?? 'bad';
export const titleOf = trajectory => trajectory.task || trajectory.id;

/** A reward with two digits, or as many as it takes not to pass 0.996 off as 1. */
export function rewardText(value) {
  if (value === null) return '—';
  if (Number.isInteger(value)) return String(value);
  for (let digits = 2; digits < 7; digits++) {
    const text = value.toFixed(digits);
    if (!Number.isInteger(Number(text))) return text;
  }
  return String(value);
}

/** Both ends of an interval, rounded outwards so that none is shown narrower than it is, or why there is none. */
export function intervalText({ low, high, reason }, { isSigned = false } = {}) {
  if (low === null || low === undefined) return `no interval: ${reason ?? 'unknown'}`;
  const digits = isSigned ? 3 : 2, scale = 10 ** digits;
  const ends = [Math.floor(low * scale + 1e-6) / scale, Math.ceil(high * scale - 1e-6) / scale];
  const sign = end => (end < 0 ? '−' : '+');
  return ends.map(end => `${isSigned ? sign(end) : ''}${Math.abs(end).toFixed(digits)}`).join(' to ');
}

export function secondsText(seconds) {
  if (seconds === null) return '—';
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export const momentText = iso => `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;

/** US dollars; what costs a fraction of a cent is told too. */
export const moneyText = value => `$${value.toFixed(value >= 100 ? 2 : 4)}`;

/** How long ago a moment was, in its largest unit. */
export function agoText(iso, now = Date.now()) {
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000);
  const [size, unit] = [[86400, 'day'], [3600, 'hour'], [60, 'minute']].find(([size]) => seconds >= size) ?? [1, ''];
  return unit ? `${plural(Math.floor(seconds / size), unit)} ago` : 'just now';
}

export const moment = iso => el('time', { datetime: iso }, momentText(iso));

export const expectedText = trajectory => `${rewardText(trajectory.expected)} was expected`;

/** How it ended, with a dot that a reward fills: wholly, in part, or not at all. */
export function badge(outcome, reward = null) {
  const filled = reward === null ? '' : reward <= 0 ? ' nothing' : reward < 1 - 1e-6 ? ' in-part' : '';
  return el('span', { class: `badge ${outcome} ${toneOf(outcome)}${filled}` }, wordsOf(outcome));
}

export function meter(value) {
  const filled = el('span', { class: 'filled' });
  filled.style.width = `${100 * Math.max(0, Math.min(1, value))}%`;
  return el('span', { class: 'meter', 'aria-hidden': 'true' }, filled);
}

/** The reward in large figures, or the lack of one, and how it ended. */
export function verdict(trajectory) {
  const figure = trajectory.reward === null
    ? el('span', { class: 'no-reward' }, 'no reward')
    : el('span', { class: 'big' }, rewardText(trajectory.reward));
  return [figure, badge(trajectory.outcome, trajectory.reward),
    trajectory.surprise ? el('strong', { class: 'unmet' }, expectedText(trajectory)) : ''];
}

/** Whether a picture is named by a hash; nothing else is asked for. */
export const hasHash = shot => /^[0-9a-f]{64}$/.test(shot.sha256);

// ---- Places within the page

const quoted = text => encodeURIComponent(text.toWellFormed?.() ?? text);

/** An id as an address has it: what the record itself has chosen says what it is by its beginning. */
const named = (kind, id) => (new RegExp(`^${kind}-[0-9a-f]{12,16}$`).test(id) ? `#${id}` : `#${kind}-${quoted(id)}`);
const whole = (kind, text) => (/^[0-9a-f]{12,16}$/.test(text) ? `${kind}-${text}` : unquoted(text));

export const linkTo = (trajectory, step) =>
  `${named('traj', trajectory.id)}${step === undefined ? '' : `/step-${step + 1}`}`;
export const linkToJob = job => named('job', job.id);
/** A job with its runs in groups, of which some are open. */
export const linkToGroup = (job, by, open = []) => `${linkToJob(job)}/by-${[by, ...open.map(quoted)].join('/')}`;
export const linkToPair = (first, second) => `#compare-${quoted(first.id)}/${quoted(second.id)}`;

/** Several jobs, task by task; of the tasks, those that a filter wants. */
export function linkToAcross(ids, { only = '', find = '' } = {}) {
  const wanted = new URLSearchParams(Object.entries({ only, find }).filter(([, value]) => value)).toString();
  return `#across-${ids.map(quoted).join('/')}${wanted ? `?${wanted}` : ''}`;
}

function unquoted(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Reads an address's fragment; what is none of these is the first page. */
export function readPlace(hash) {
  const one = /^#traj-([^/]*)((?:\/[^/]*)*)$/.exec(hash);
  if (one) return { page: 'trajectory', id: whole('traj', one[1]), parts: one[2].split('/').slice(1).map(unquoted) };
  const two = /^#compare-([^/]*)\/([^/]*)$/.exec(hash);
  if (two) return { page: 'compare', ids: [unquoted(two[1]), unquoted(two[2])] };
  const several = /^#across-([^?]*)(?:\?(.*))?$/s.exec(hash);
  if (several) {
    const wanted = new URLSearchParams(several[2] ?? '');
    return { page: 'across', ids: several[1].split('/').map(unquoted), only: wanted.get('only') ?? '', find: wanted.get('find') ?? '' };
  }
  const job = /^#job-([^/]*)(?:\/by-([a-z]+)((?:\/[^/]*)*))?$/.exec(hash);
  if (job) return { page: 'job', id: whole('job', job[1]), by: job[2] ?? null, open: (job[3] ?? '').split('/').slice(1).map(unquoted) };
  return { page: 'home' };
}
