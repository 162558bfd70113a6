// Reward by context: the splits and their gap, and for each feature a plot and a table.

import { $, el, svg } from './dom.js';
import { plural, rewardText } from './words.js';

const FIELD = { width: 380, height: 176, top: 12, bottom: 40, left: 42, right: 14 };
const SERIES = [
  { key: 'train', label: 'train', shift: -4 },
  { key: 'held_out', label: 'held out', shift: 4 },
];

/** Shows reward by context; hidden where no context varies. */
export function showContexts(found) {
  $('contexts').hidden = !found;
  if (!found) return;
  const isSplit = found.gaps.length > 0;
  $('contexts-splits').replaceChildren(
    ...found.splits.map(split => splitFigure(split, found.splits.length)),
    ...found.gaps.map(gapFigure));
  $('contexts-legend').replaceChildren(...legendOfContexts(isSplit));
  $('features').replaceChildren(...found.features.map(feature => drawFeature(feature, isSplit)));
}

const signed = value => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;

function splitFigure({ split, mean, ungraded }, count) {
  const name = split || (count > 1 ? 'no split' : 'all runs');
  const over = [
    mean ? `${plural(mean.runs, 'run')} of ${plural(mean.tasks, 'task')}` : 'nothing is graded',
    ungraded ? `${ungraded.toLocaleString('en')} without a reward` : '',
  ].filter(Boolean).join(', ');
  return contextFigure(name, mean ? mean.value.toFixed(3) : '—', mean, value => value.toFixed(2), over);
}

const gapFigure = gap => contextFigure(
  `train less ${gap.split === 'held out' ? 'all held out' : gap.split}`, signed(gap.value), gap, signed,
  `${plural(gap.tasks, 'task')} drawn together`);

function contextFigure(name, text, { low, high } = {}, words, over) {
  const interval = low === null || low === undefined ? '' : ` (${words(low)} to ${words(high)})`;
  return el('div', {}, el('dt', {}, name),
    el('dd', {}, text, el('span', { class: 'quiet' }, interval), el('span', { class: 'over' }, over)));
}

function legendOfContexts(isSplit) {
  const sure = 'Lines are 95% intervals over tasks.';
  if (!isSplit) return [`Mean reward by the value of each feature that varies. ${sure}`];
  const key = series => el('span', { class: 'key' },
    svg('svg', { width: 16, height: 12, viewBox: '0 0 16 12', class: 'features-key', 'aria-hidden': 'true' },
      markOf(series.key, 8, 6)), series.label);
  const band = el('span', { class: 'key' }, el('span', { class: 'swatch' }), 'trained on');
  return [...SERIES.map(key), band, el('span', {}, sure)];
}

// ---- One feature

function drawFeature(feature, isSplit) {
  const range = feature.train_low === null ? null
    : `trained on ${rangeText(feature.train_low, feature.train_high)}`;
  const id = `feature-${feature.feature}`;
  return el('figure', { class: 'feature', 'aria-labelledby': id },
    el('figcaption', {}, el('strong', { id }, feature.feature), range ? el('span', { class: 'quiet' }, range) : null),
    drawField(feature),
    featureTable(feature, isSplit));
}

const valueText = value => String(Number(value.toPrecision(4)));
const rangeText = (low, high) => [low, high].slice(low === high ? 1 : 0).map(valueText).join(' to ');

/** Where bins stand: numbers by their size, other values side by side. */
function placing(feature) {
  const inner = FIELD.width - FIELD.left - FIELD.right;
  const places = feature.bins.map((_, index) => FIELD.left + (inner * (index + 0.5)) / feature.bins.length);
  if (!feature.numeric) return { at: index => places[index], scale: null };
  const ends = feature.bins.flatMap(bin => [bin.low, bin.high]);
  const low = Math.min(...ends), high = Math.max(...ends);
  const margin = 14, wide = inner - 2 * margin;
  const scale = value => FIELD.left + margin + (high === low ? wide / 2 : (wide * (value - low)) / (high - low));
  return { at: index => scale(feature.bins[index].at), scale };
}

function drawField(feature) {
  const estimates = feature.bins.flatMap(bin => [bin.train, bin.held_out]).filter(Boolean);
  const seen = estimates.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value]);
  const low = Math.min(0, ...seen), high = Math.max(1, ...seen);
  const tall = FIELD.height - FIELD.top - FIELD.bottom;
  const y = value => FIELD.top + (tall * (high - value)) / (high - low);
  const { at, scale } = placing(feature);
  // The table below says the same to those who do not see this.
  const field = svg('svg', {
    class: 'field', viewBox: `0 0 ${FIELD.width} ${FIELD.height}`, 'aria-hidden': 'true',
  });
  field.append(...bandsOf(feature, at, scale, y(high), tall));
  for (const value of new Set([low, 0, 0.5, 1, high])) {
    field.append(svg('g', { class: value === 0 ? 'grid zero' : 'grid' },
      svg('line', { x1: FIELD.left, x2: FIELD.width - 2, y1: y(value), y2: y(value) }),
      svg('text', { x: FIELD.left - 8, y: y(value) + 3.5, 'text-anchor': 'end' }, rewardText(value))));
  }
  field.append(...ticksOf(feature, at));
  feature.bins.forEach((bin, index) => {
    const both = bin.train && bin.held_out;
    for (const series of SERIES) {
      if (bin[series.key]) field.append(drawEstimate(bin, series, at(index) + (both ? series.shift : 0), y));
    }
  });
  return field;
}

/** Behind what was trained on: a range of numbers, or the column of each value. */
function bandsOf(feature, at, scale, top, tall) {
  const band = (x, width) => svg('rect', { class: 'trained', x, y: top, width, height: tall });
  if (feature.train_low !== null) {
    const start = scale(feature.train_low) - 9;
    return [band(start, scale(feature.train_high) + 9 - start)];
  }
  if (!feature.bins.some(bin => bin.held_out) || feature.numeric) return [];
  const wide = (FIELD.width - FIELD.left - FIELD.right) / feature.bins.length;
  return feature.bins.flatMap((bin, index) => (bin.outside ? [] : [band(at(index) - wide / 2, wide)]));
}

/** Labels below the axis, as many as have room, on two lines where they are close. */
function ticksOf(feature, at) {
  const ends = [-Infinity, -Infinity];
  return feature.bins.flatMap((bin, index) => {
    const text = feature.numeric ? valueText(bin.at) : clipLabel(bin.label);
    const half = 3.3 * text.length + 3, x = Math.max(half, Math.min(FIELD.width - half, at(index)));
    const line = ends.findIndex(end => end <= x - half);
    const tick = svg('line', { class: 'tick', x1: at(index), x2: at(index), y1: FIELD.height - FIELD.bottom, y2: FIELD.height - FIELD.bottom + 4 });
    if (line < 0) return [tick];
    ends[line] = x + half;
    return [tick, svg('text', { x, y: FIELD.height - FIELD.bottom + 17 + 14 * line, 'text-anchor': 'middle' }, text)];
  });
}

const clipLabel = text => (text.length > 14 ? `${text.slice(0, 13)}…` : text);

/** Apart by shape as well as by colour. */
function markOf(key, x, y) {
  if (key === 'train') return svg('circle', { class: 'mark-train', cx: x, cy: y, r: 4 });
  return svg('path', { class: 'mark-held', d: `M${x} ${y - 5.5} L${x + 5.5} ${y} L${x} ${y + 5.5} L${x - 5.5} ${y} Z` });
}

function drawEstimate(bin, { key, label }, x, y) {
  const { value, low, high } = bin[key];
  const whisker = low === null ? null
    : svg('line', { class: `whisker ${key}`, x1: x, x2: x, y1: y(low), y2: y(high) });
  return svg('g', {}, svg('title', {}, `${bin.label}, ${label}: ${estimateText(bin[key])}`),
    whisker, markOf(key, x, y(value)));
}

function estimateText({ value, low, high, runs }) {
  const interval = low === null ? '' : ` (${low.toFixed(2)} to ${high.toFixed(2)})`;
  return `${value.toFixed(3)}${interval}, ${plural(runs, 'run')}`;
}

function featureTable(feature, isSplit) {
  const shown = isSplit ? SERIES : [{ key: 'train', label: 'reward' }];
  const head = el('tr', {}, el('th', { scope: 'col' }, 'value'),
    ...shown.map(({ label }) => el('th', { scope: 'col' }, label)));
  const rows = feature.bins.map(bin => el('tr', { class: bin.outside ? 'outside' : null },
    el('th', { scope: 'row' }, bin.label, bin.outside ? el('span', { class: 'quiet' }, ' outside') : null),
    ...shown.map(({ key }) => el('td', {}, ...estimateCell(bin[key])))));
  const more = feature.left_out ? el('caption', {}, `${plural(feature.left_out, 'more value')} not shown`) : null;
  return el('table', { class: 'by-value' }, more, el('thead', {}, head), el('tbody', {}, ...rows));
}

function estimateCell(estimate) {
  if (!estimate) return [el('span', { class: 'quiet' }, '—')];
  const { value, low, high, runs } = estimate;
  const interval = low === null ? '' : `${low.toFixed(2)} to ${high.toFixed(2)}, `;
  return [value.toFixed(3), el('span', { class: 'over' }, `${interval}n ${runs.toLocaleString('en')}`)];
}
