// What was done, drawn on the picture that it was done on.

import { el, svg } from './dom.js';
import { clip } from './words.js';

export function drawMarks(actions, shot) {
  const { width, height } = shot;
  const lines = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none' });
  const spots = [];
  let place = null;
  for (const [index, action] of actions.entries()) {
    const on = point => [point[0] / shot.scale, point[1] / shot.scale];
    const path = action.path?.map(on) ?? scrollPath(action, shot, place, width, height);
    if (path) {
      lines.append(...line(path));
      spots.push(arrowHead(path, width, height));
    }
    const at = action.point ? on(action.point) : path?.[0] ?? null;
    if (at) spots.push(spot(action, index, at, width, height));
    else if (action.typed && place && !action.named) caption(place.node, action.typed);
    const end = action.path ? path.at(-1) : at;
    if (end) place = { at: end, node: spots.at(-1) };
    else if (action.named) place = null;
  }
  return [lines, ...spots];
}

/** Where a scroll is drawn: from its point, or from where the pointer last was, or the middle. */
function scrollPath(action, shot, place, width, height) {
  if (!action.scroll || (action.named && !action.point)) return null;
  const start = action.point?.map(value => value / shot.scale) ?? place?.at ?? [width / 2, height / 2];
  const [x, y] = action.scroll.map(value => value / shot.scale);
  const far = Math.hypot(x, y) || 1;
  const length = Math.max(0.12 * height, Math.min(far, 0.35 * height)) / far;
  return [start, [start[0] + x * length, start[1] + y * length]];
}

function line(path) {
  const points = path.map(point => point.join(',')).join(' ');
  return ['halo', 'stroke'].map(name => svg('polyline', { points, class: name }));
}

function putAt(node, [x, y], width, height) {
  node.style.left = `${(100 * x) / width}%`;
  node.style.top = `${(100 * y) / height}%`;
  node.classList.toggle('to-left', x > width * 0.6);
  node.classList.toggle('to-bottom', y < height * 0.1);
  return node;
}

function arrowHead(path, width, height) {
  const end = path.at(-1);
  const from = path.findLast(point => point[0] !== end[0] || point[1] !== end[1]) ?? end;
  const head = el('span', { class: 'arrow' });
  head.style.rotate = `${Math.atan2(end[1] - from[1], end[0] - from[0])}rad`;
  return putAt(head, end, width, height);
}

function spot(action, index, at, width, height) {
  const outside = at[0] < 0 || at[1] < 0 || at[0] > width || at[1] > height;
  const inside = [Math.max(0, Math.min(width, at[0])), Math.max(0, Math.min(height, at[1]))];
  const node = el('span', { class: classOf(action) },
    el('span', { class: 'ring' }), el('span', { class: 'order' }, String(index + 1)));
  if (action.typed) caption(node, action.typed);
  if (outside) caption(node, 'outside the picture');
  return putAt(node, inside, width, height);
}

function classOf({ path, scroll, presses, state }) {
  const kinds = [(path || scroll) && 'start', presses === false && 'light', state !== 'performed' && 'undone'];
  return ['spot', ...kinds.filter(Boolean)].join(' ');
}

function caption(node, text) {
  node.append(el('span', { class: 'typed' }, clip(text, 60)));
}
