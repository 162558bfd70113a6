// The runs of a job: how they ended in one strip, then a column or a cell for each, and how often
// each reward was.

import { el, svg } from './dom.js';
import { endsOf, strip } from './groups.js';
import { OUTCOMES, expectedText, letterOf, linkTo, plural, rewardText, titleOf, wordsOf } from './words.js';

const CHART = { height: 168, top: 20, bottom: 20, left: 42, widest: 96, widestBar: 52, narrowest: 9 };
const TIGHT = 13;
const MOST_COLUMNS = 24, MOST_CELLS = 1200;
const FEW_ALIKE = 8;

/**
 * Draws into a node that is laid out: how the runs ended, in one strip, then each of them.
 *
 * tally: what the server has counted of very many runs, of which there are no rows here.
 * wanted: how many runs there are to be; `choose` is told which rewards were picked of many.
 */
export function drawPlot({ node, legend, rows, tally = null, wanted, choose }) {
  const room = node.clientWidth - CHART.left - 2;
  if (room <= 0) return;
  if (tally) {
    drawTally({ node, legend, room, tally, wanted, choose });
    return;
  }
  const ends = endsOf(countEnds(rows, wanted));
  const parts = [el('div', { class: 'ends-of-all' }, strip(ends), el('p', { class: 'keys legend' }, ...countedKeys(ends)))];
  const told = [], isFilling = wanted > rows.length || rows.some(row => row.outcome === 'unfinished');
  const isVaried = !areAlike(rows);
  const draw = (maker, ...more) => {
    const part = el('div', {});
    parts.push(part);
    told.push(maker(part, rows, room, ...more));
  };
  if (rows.length && isVaried && !isFilling && rows.length <= MOST_COLUMNS) draw(drawColumns);
  else if (Math.max(wanted, rows.length) <= MOST_CELLS) draw(drawCells, wanted);
  if (rows.length > MOST_COLUMNS && new Set(rows.map(row => row.reward)).size > 1) draw(part => drawHistogram(part, barsOf(rows), room, choose));
  if (rows.length >= FEW_ALIKE && !isVaried && !isFilling) told.unshift(alikeText(rows[0], rows.length));
  node.replaceChildren(...parts);
  legend.textContent = told.filter(Boolean).join(' ');
}

function drawTally({ node, legend, room, tally, wanted, choose }) {
  const left = Math.max(0, wanted - tally.runs);
  const ends = endsOf({ ...tally, outcomes: left ? { ...tally.outcomes, not_begun: left } : tally.outcomes });
  const parts = [el('div', { class: 'ends-of-all' }, strip(ends), el('p', { class: 'keys legend' }, ...countedKeys(ends)))];
  const told = [], isFilling = left > 0 || tally.outcomes.unfinished > 0;
  if (tally.alike && !isFilling) told.push(alikeText(tally.alike, tally.runs));
  if (tally.varied) {
    const part = el('div', {});
    parts.push(part);
    told.push(drawHistogram(part, barsOfTally(tally), room, choose));
  }
  node.replaceChildren(...parts);
  legend.textContent = told.join(' ');
}

/** Whether all ended in one way, with one reward, as was expected. */
const areAlike = rows => rows.every(row =>
  row.reward === rows[0].reward && row.outcome === rows[0].outcome && !row.surprise);

function alikeText({ reward, outcome }, count) {
  const end = reward === null ? `ended alike, without a reward: ${wordsOf(outcome)}` : `have reward ${rewardText(reward)}`;
  return `All ${plural(count, 'run')} ${end}.`;
}

const PASSES = 1 - 1e-6;

function countEnds(rows, wanted) {
  const graded = rows.filter(row => row.reward !== null), outcomes = {};
  for (const row of rows) if (row.reward === null) outcomes[row.outcome] = (outcomes[row.outcome] ?? 0) + 1;
  if (wanted > rows.length) outcomes.not_begun = wanted - rows.length;
  return {
    graded: graded.length, passed: graded.filter(row => row.reward >= PASSES).length,
    unrewarded: graded.filter(row => row.reward <= 0).length, outcomes,
  };
}

const countedKeys = ends => ends.map(({ kind, count, words }) => el('span', { class: 'key' },
  el('span', { class: `swatch part ${kind}` }), `${count.toLocaleString('en')} ${words}`));

// ---- A cell for each run

function drawCells(node, rows, _room, wanted) {
  const cells = rows.map(row => el('a', {
    href: linkTo(row), tabindex: -1, class: `cell part ${kindOfRun(row)}${row.surprise ? ' surprise' : ''}`, title: columnTitle(row),
  }));
  const left = Math.max(0, wanted - rows.length);
  const waiting = Array.from({ length: left }, () => el('span', { class: 'cell part waiting' }));
  // The table says the same to those who do not see this.
  node.replaceChildren(el('div', { class: 'cells', 'aria-hidden': 'true' }, ...cells, ...waiting));
  return `One cell per run, in the order in which they began${left ? `; ${left.toLocaleString('en')} have not begun` : ''}.`;
}

function kindOfRun({ reward, outcome }) {
  if (reward === null) return outcome === 'unfinished' ? 'open' : 'failed';
  return reward >= PASSES ? 'passed' : reward > 0 ? 'in-part' : 'unrewarded';
}

function drawColumns(node, rows, room) {
  const column = Math.max(CHART.narrowest, Math.min(CHART.widest, room / rows.length));
  const rewards = rows.map(row => row.reward ?? 0);
  const low = Math.min(0, ...rewards), high = Math.max(1, ...rewards);
  const y = scaleBetween(low, high);
  const width = CHART.left + column * rows.length + 2;
  // The table says the same to those who do not see this.
  const picture = frame(width, { 'aria-hidden': 'true' });
  for (const value of new Set([low, 0, 0.5, 1, high])) picture.append(gridline(value, y(value), width));
  rows.forEach((row, index) => picture.append(drawColumn(row, index, column, y)));
  node.replaceChildren(picture);
  return legendOf(rows, barWidth(column) < TIGHT);
}

function scaleBetween(low, high) {
  const tall = CHART.height - CHART.top - CHART.bottom;
  return value => CHART.top + (tall * (high - value)) / (high - low);
}

const frame = (width, attributes) => svg('svg', {
  width, height: CHART.height, viewBox: `0 0 ${width} ${CHART.height}`, ...attributes,
}, hatching());

function hatching() {
  return svg('defs', {}, svg('pattern', {
    id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)',
  }, svg('line', { x1: 0, y1: 0, x2: 0, y2: 6, class: 'hatch' })));
}

function gridline(value, y, width, text = rewardText(value)) {
  return svg('g', { class: value === 0 ? 'grid zero' : 'grid' },
    svg('line', { x1: CHART.left, x2: width, y1: y, y2: y }),
    svg('text', { x: CHART.left - 8, y: y + 3.5, 'text-anchor': 'end' }, text));
}

const barWidth = column => Math.min(CHART.widestBar, column * 0.76);

function drawColumn(row, index, column, y) {
  const width = barWidth(column);
  const middle = CHART.left + column * (index + 0.5);
  const box = { x: middle - width / 2, width };
  const every = column >= 20 ? 1 : column >= 12 ? 5 : 10;
  const label = row.number % every === 0 || every === 1 ? String(row.number) : '';
  return svg('a', { href: linkTo(row), tabindex: -1, class: row.surprise ? 'column surprise' : 'column' },
    svg('title', {}, columnTitle(row)),
    svg('rect', { class: 'reach', x: CHART.left + column * index, y: 0, width: column, height: CHART.height }),
    row.reward === null ? drawFailure(row, box, middle, y) : drawReward(row, box, middle, y),
    svg('text', { class: 'number', x: middle, y: CHART.height - 5, 'text-anchor': 'middle' }, label));
}

function columnTitle(row) {
  const end = row.reward === null ? `${wordsOf(row.outcome)}, no reward` : `reward ${rewardText(row.reward)}`;
  return `${row.number}  ${titleOf(row)}: ${end}${row.surprise ? `, ${expectedText(row)}` : ''}`;
}

function drawReward(row, box, middle, y) {
  const top = Math.min(y(row.reward), y(0)), height = Math.max(2.5, Math.abs(y(row.reward) - y(0)));
  const start = row.reward === 0 ? top - 2.5 : top;
  const kind = row.reward >= 1 ? 'full' : 'partial';
  const text = box.width >= 22 ? rewardText(row.reward) : '';
  return svg('g', { class: `reward ${kind}` },
    svg('rect', { ...box, y: start, height, rx: Math.min(2, height / 2) }),
    svg('text', { x: middle, y: start - 6, 'text-anchor': 'middle' }, row.surprise && text ? `${text} ≠` : text));
}

/** A hatched column with the outcome's word along it: it has no height that could be read as a reward. */
function drawFailure(row, box, middle, y) {
  const top = y(1), bottom = y(0);
  const tight = box.width < TIGHT;
  const word = svg('text', {
    'text-anchor': 'middle', 'dominant-baseline': 'central', x: middle, y: (top + bottom) / 2,
    transform: tight ? null : `rotate(-90 ${middle} ${(top + bottom) / 2})`,
  }, tight ? letterOf(row.outcome) : wordsOf(row.outcome));
  return svg('g', { class: 'failure' },
    svg('rect', { ...box, y: top, height: bottom - top, rx: 2 }), word);
}

function legendOf(rows, tight) {
  const failures = [...new Set(rows.filter(row => row.reward === null).map(row => row.outcome))];
  const lines = ['One column per run, in the order in which they began; the number is the row’s.'];
  const named = outcome => (tight ? `${letterOf(outcome)} ${wordsOf(outcome)}` : wordsOf(outcome));
  if (failures.length) lines.push(`Hatched: no reward (${failures.map(named).join(', ')}).`);
  if (rows.some(row => row.surprise)) lines.push('≠: not as expected.');
  return lines.join(' ');
}

// ---- Many trajectories

/** Exactly 0 and exactly 1 have bars of their own where all rewards lie between them. */
export function binsOf(rewards) {
  const low = Math.min(0, ...rewards), high = Math.max(1, ...rewards);
  const unit = low === 0 && high === 1;
  const count = 10, width = (high - low) / count;
  const edge = index => (index === count ? high : Number((low + index * width).toPrecision(12)));
  const between = Array.from({ length: count }, (_, index) => {
    const from = edge(index), to = edge(index + 1), last = index === count - 1;
    return {
      label: rewardText(from),
      words: `${rewardText(from)} to ${rewardText(to)}`,
      holds: unit
        ? value => value > 0 && value < 1 && value >= from && value < to
        : value => value >= from && (value < to || last),
    };
  });
  if (!unit) return between;
  between[0].label = '';
  return [
    { label: '0', words: '0', exact: true, holds: value => value === 0 },
    ...between,
    { label: '1', words: '1', exact: true, holds: value => value === 1 },
  ];
}

function barsOf(rows) {
  const rewards = rows.flatMap(row => (row.reward === null ? [] : [row.reward]));
  const bars = binsOf(rewards).map(bin => ({
    ...bin, kind: 'reward', title: `reward ${bin.words}`, count: rewards.filter(bin.holds).length,
    picks: row => row.reward !== null && bin.holds(row.reward),
  }));
  const failed = new Set(rows.filter(row => row.reward === null).map(row => row.outcome));
  for (const outcome of [...OUTCOMES.keys()].filter(name => failed.has(name))) {
    const picks = row => row.reward === null && row.outcome === outcome;
    bars.push({ ...barOfFailure(outcome), count: rows.filter(picks).length, picks });
  }
  return bars;
}

const barOfFailure = outcome => (
  { kind: 'failure', outcome, label: letterOf(outcome), title: `${wordsOf(outcome)}, no reward` });

/** The same of what the server has counted; `pick` is what it is asked for then. */
function barsOfTally({ bars, outcomes }) {
  const isExact = bar => bar !== undefined && bar.low === bar.high;
  const found = bars.map(({ low, high, pick, count }, index) => {
    const exact = low === high, words = exact ? rewardText(low) : `${rewardText(low)} to ${rewardText(high)}`;
    return {
      kind: 'reward', exact, pick, count, words, title: `reward ${words}`,
      label: !exact && isExact(bars[index - 1]) ? '' : rewardText(low),
    };
  });
  const failed = [...OUTCOMES.keys()].filter(name => outcomes[name]);
  return [...found, ...failed.map(outcome => ({ ...barOfFailure(outcome), pick: outcome, count: outcomes[outcome] }))];
}

function drawHistogram(node, bars, room, choose) {
  const column = Math.max(24, Math.min(CHART.widest, room / bars.length));
  const most = Math.max(...bars.map(bar => bar.count));
  const width = CHART.left + column * bars.length + 2;
  const y = scaleBetween(0, most);
  const picture = frame(width, { role: 'group', 'aria-label': 'How often each reward was' });
  for (const value of [0, most]) picture.append(gridline(value, y(value), width, value.toLocaleString('en')));
  bars.forEach((bar, index) => picture.append(drawBar(bar, index, column, y, choose)));
  node.replaceChildren(picture);
  const failures = bars.filter(bar => bar.kind === 'failure').map(bar => `${bar.label} ${wordsOf(bar.outcome)}`);
  return [
    'Below: how many runs got each reward; choose a bar to list them.',
    failures.length ? `Hatched: no reward (${failures.join(', ')}).` : '',
  ].join(' ').trim();
}

function drawBar(bar, index, column, y, choose) {
  const width = barWidth(column), middle = CHART.left + column * (index + 0.5);
  const height = bar.count ? Math.max(2, y(0) - y(bar.count)) : 0;
  const pick = () => bar.count && choose(bar);
  return svg('g', {
    class: `bar-of ${bar.kind}${bar.exact ? (bar.label === '0' ? ' unrewarded' : ' full') : ' partial'}`, role: 'button', tabindex: bar.count ? 0 : -1,
    'aria-disabled': !bar.count && 'true',
    click: pick,
    keydown: event => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      pick();
    },
  },
  svg('title', {}, `${bar.title}: ${plural(bar.count, 'run')}`),
  svg('rect', { class: 'reach', x: CHART.left + column * index, y: 0, width: column, height: CHART.height }),
  svg('rect', { class: 'body', x: middle - width / 2, width, y: y(0) - height, height, rx: 2 }),
  svg('text', { class: 'amount', 'aria-hidden': 'true', x: middle, y: y(0) - height - 6, 'text-anchor': 'middle' },
    bar.count ? bar.count.toLocaleString('en') : ''),
  // The label of a range stands at its lower edge.
  svg('text', {
    class: 'number', 'aria-hidden': 'true', 'text-anchor': 'middle', y: CHART.height - 5,
    x: bar.exact || bar.kind === 'failure' ? middle : CHART.left + column * index,
  }, column < 36 && !bar.exact && bar.kind === 'reward' && bar.label !== '0.50' ? '' : bar.label));
}
