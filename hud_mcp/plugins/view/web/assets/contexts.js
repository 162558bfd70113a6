// Reward by context: the splits and their gap, and for each feature a plot and a table.

import { $, el, svg } from './dom.js';
import { intervalText, plural, rewardText } from './words.js';

const FIELD = { width: 380, height: 176, top: 12, bottom: 40, left: 42, right: 14 };
const TRAIN = 'train';
const APART = 8;

/** Shows reward by context; hidden where no context varies. */
export function showContexts(found) {
  $('contexts').hidden = !found;
  if (!found) return;
  const series = seriesOf(found.splits);
  $('contexts-splits').replaceChildren(
    ...found.splits.map(split => splitFigure(split, found.splits.length)),
    ...found.gaps.map(gapFigure));
  $('contexts-unused').hidden = !found.unused_count;
  $('contexts-unused').textContent = unusedText(found);
  $('contexts-legend').replaceChildren(...legendOfContexts(series, found.features));
  $('features').replaceChildren(...found.features.map(feature => drawFeature(feature, series)));
}

/** One for each split; what was held out has a mark of its own each. */
function seriesOf(splits) {
  const alone = splits.length === 1;
  let held = 0;
  return splits.map(({ split }) => {
    const isHeld = !alone && split !== TRAIN && split !== '';
    return { key: split, label: alone ? 'reward' : split || 'no split', mark: isHeld ? (held++ % HELD.length) + 1 : 0 };
  });
}

const MOST_NAMED = 12;

function unusedText({ unused, unused_count: count }) {
  if (!count) return '';
  const shown = unused.slice(0, MOST_NAMED), more = count - shown.length;
  return `Contexts that no run used: ${shown.join(', ')}${more ? ` and ${more.toLocaleString('en')} more` : ''}.`;
}

const signed = value => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;

function splitFigure({ split, mean, given_up: givenUp, ungraded }, count) {
  const name = split || (count > 1 ? 'no split' : 'all runs');
  const over = [
    mean ? `${plural(mean.runs, 'run')} of ${plural(mean.tasks, 'task')}` : 'nothing is graded',
    givenUp ? `${givenUp.toLocaleString('en')} given up, as 0` : '',
    ungraded ? `${ungraded.toLocaleString('en')} without a reward` : '',
  ].filter(Boolean).join(', ');
  return contextFigure(name, mean ? mean.value.toFixed(3) : '—', mean, false, over);
}

const gapFigure = gap => contextFigure(
  `train less ${gap.split}`, gap.value === null ? '—' : signed(gap.value), gap, true, plural(gap.tasks, 'task'));

function contextFigure(name, text, estimate, isSigned, over) {
  const interval = estimate ? ` (${intervalText(estimate, { isSigned })})` : '';
  return el('div', {}, el('dt', {}, name),
    el('dd', {}, text, el('span', { class: 'quiet' }, interval), el('span', { class: 'over' }, over)));
}

function legendOfContexts(series, features) {
  if (!features.length) return [];
  const sure = 'Lines are 95% intervals over tasks.';
  if (series.length === 1) return [`Mean reward by the value of each feature that varies. ${sure}`];
  const key = ({ mark, label }) => el('span', { class: 'key' },
    svg('svg', { width: 16, height: 12, viewBox: '0 0 16 12', class: 'features-key', 'aria-hidden': 'true' },
      markOf(mark, 8, 6)), label);
  const isTrained = series.some(({ key: split }) => split === TRAIN);
  const band = isTrained ? [el('span', { class: 'key' }, el('span', { class: 'swatch' }), 'trained on')] : [];
  return [...series.map(key), ...band, el('span', {}, sure)];
}

// ---- One feature

function drawFeature(feature, series) {
  const range = feature.train_low === null ? null
    : `trained on ${rangeText(feature.train_low, feature.train_high)}`;
  const id = `feature-${feature.feature}`;
  return el('figure', { class: 'feature', 'aria-labelledby': id },
    el('figcaption', {}, el('strong', { id }, feature.feature), range ? el('span', { class: 'quiet' }, range) : null),
    drawField(feature, series),
    featureTable(feature, series));
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

function drawField(feature, series) {
  const estimates = feature.bins.flatMap(bin => Object.values(bin.rewards));
  const seen = estimates.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value]);
  const low = Math.min(0, ...seen), high = Math.max(1, ...seen);
  const tall = FIELD.height - FIELD.top - FIELD.bottom;
  const y = value => FIELD.top + (tall * (high - value)) / (high - low);
  const { at, scale } = placing(feature);
  // The table below says the same to those who do not see this.
  const field = svg('svg', {
    class: 'field', viewBox: `0 0 ${FIELD.width} ${FIELD.height}`, 'aria-hidden': 'true',
  });
  field.append(...bandsOf(feature, series, at, scale, y(high), tall));
  for (const value of new Set([low, 0, 0.5, 1, high])) {
    field.append(svg('g', { class: value === 0 ? 'grid zero' : 'grid' },
      svg('line', { x1: FIELD.left, x2: FIELD.width - 2, y1: y(value), y2: y(value) }),
      svg('text', { x: FIELD.left - 8, y: y(value) + 3.5, 'text-anchor': 'end' }, rewardText(value))));
  }
  field.append(...ticksOf(feature, at));
  feature.bins.forEach((bin, index) => {
    const here = series.filter(({ key }) => Object.hasOwn(bin.rewards, key));
    here.forEach((one, place) => {
      field.append(drawEstimate(bin, one, at(index) + APART * (place - (here.length - 1) / 2), y));
    });
  });
  return field;
}

/** Behind what was trained on: a range of numbers, or the column of each value. */
function bandsOf(feature, series, at, scale, top, tall) {
  const band = (x, width) => svg('rect', { class: 'trained', x, y: top, width, height: tall });
  if (feature.train_low !== null) {
    const start = scale(feature.train_low) - 9;
    return [band(start, scale(feature.train_high) + 9 - start)];
  }
  const isSplit = series.length > 1 && series.some(({ key }) => key === TRAIN);
  if (!isSplit || feature.numeric) return [];
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

// A diamond, a square, and triangles that stand and hang.
const HELD = [
  [[0, -5.5], [5.5, 0], [0, 5.5], [-5.5, 0]],
  [[-4, -4], [4, -4], [4, 4], [-4, 4]],
  [[0, -5], [5, 4], [-5, 4]],
  [[0, 5], [5, -4], [-5, -4]],
];

/** Apart by shape as well as by colour. */
function markOf(mark, x, y) {
  if (!mark) return svg('circle', { class: 'mark-train', cx: x, cy: y, r: 4 });
  const corners = HELD[mark - 1].map(([right, down]) => `${x + right} ${y + down}`);
  return svg('path', { class: 'mark-held', d: `M${corners.join(' L')} Z` });
}

function drawEstimate(bin, { key, label, mark }, x, y) {
  const { value, low, high } = bin.rewards[key];
  const whisker = low === null ? null
    : svg('line', { class: mark ? 'whisker held' : 'whisker', x1: x, x2: x, y1: y(low), y2: y(high) });
  return svg('g', {}, svg('title', {}, `${bin.label}, ${label}: ${estimateText(bin.rewards[key])}`),
    whisker, markOf(mark, x, y(value)));
}

const estimateText = estimate =>
  `${estimate.value.toFixed(3)} (${intervalText(estimate)}), ${plural(estimate.runs, 'run')}`;

function featureTable(feature, shown) {
  const head = el('tr', {}, el('th', { scope: 'col' }, 'value'),
    ...shown.map(({ label }) => el('th', { scope: 'col' }, label)));
  const rows = feature.bins.map(bin => el('tr', { class: bin.outside ? 'outside' : null },
    el('th', { scope: 'row' }, bin.label, bin.outside ? el('span', { class: 'quiet' }, ' outside') : null),
    ...shown.map(({ key }) => el('td', {}, ...estimateCell(Object.hasOwn(bin.rewards, key) ? bin.rewards[key] : null)))));
  const more = feature.left_out ? el('caption', {}, `${plural(feature.left_out, 'more value')} not shown`) : null;
  return el('table', { class: 'by-value' }, more, el('thead', {}, head), el('tbody', {}, ...rows));
}

function estimateCell(estimate) {
  if (!estimate) return [el('span', { class: 'quiet' }, '—')];
  const sure = estimate.low === null ? 'no interval' : intervalText(estimate);
  return [estimate.value.toFixed(3), el('span', { class: 'over', title: estimate.reason },
    `${sure}, n ${estimate.runs.toLocaleString('en')}`)];
}
