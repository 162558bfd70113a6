// Where one is within a trajectory, as its address says it: a step, a tab, a filter of the steps.

import { linkTo } from './words.js';

export const TABS = ['step', 'steps', 'observation', 'log', 'grade', 'raw'];
const VIEWS = ['before', 'after', 'changes'];

/** Reads what follows a trajectory's id in its address; what is unknown says nothing. */
export function readParts(parts) {
  const place = { step: 0, tab: null, view: null, find: '', failed: false };
  for (const part of parts) {
    const step = /^step-(\d{1,9})$/.exec(part), find = /^find-(.*)$/s.exec(part);
    if (step) place.step = Math.max(0, Number(step[1]) - 1);
    else if (find) [, place.find] = find;
    else if (part === 'failed') place.failed = true;
    else if (VIEWS.includes(part)) place.view = part;
    else if (TABS.includes(part)) place.tab = part;
  }
  return place;
}

export function linkToPlace(run, { step, tab = null, view = null, find = '', failed = false }) {
  const parts = [view, tab, failed ? 'failed' : null, find ? `find-${find}` : null].filter(Boolean);
  return [linkTo(run, step), ...parts.map(part => encodeURIComponent(part.toWellFormed?.() ?? part))].join('/');
}
