'use strict';

// Draws one report. What was recorded is untrusted: it reaches the page as text nodes and
// as the values of attributes named here, never as markup, a style or an address.

const WORDS = {
  graded: 'graded',
  cancelled: 'cancelled',
  expired: 'expired',
  environment_failed: 'environment failed',
  grading_failed: 'grading failed',
  lost: 'lost',
  unfinished: 'unfinished',
};

/** What stands in a column that is too narrow for the word. */
const LETTERS = {
  cancelled: 'C', expired: 'X', environment_failed: 'E', grading_failed: 'G', lost: 'L', unfinished: 'U',
};

const $ = id => document.getElementById(id);
const data = JSON.parse($('report-data').textContent);
const places = new Map(data.trajectories.map((trajectory, index) => [trajectory.id, index]));

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter(child => child !== null));
  return node;
}

const el = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);

const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);

function say(node, text) {
  node.textContent = text ?? '';
  node.hidden = !text;
}

// ---- Words

const plural = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;
const clip = (text, limit) => (text.length > limit ? `${text.slice(0, limit)}…` : text);
const wordsOf = outcome => WORDS[outcome] ?? outcome;
const titleOf = trajectory => trajectory.task || trajectory.id;

/** A reward with two digits, or as many as it takes not to pass 0.996 off as 1. */
function rewardText(value) {
  if (value === null) return '—';
  if (Number.isInteger(value)) return String(value);
  for (let digits = 2; digits < 7; digits++) {
    const text = value.toFixed(digits);
    if (!Number.isInteger(Number(text))) return text;
  }
  return String(value);
}

function secondsText(seconds) {
  if (seconds === null) return '—';
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

const momentText = iso => `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;

const linkTo = (trajectory, step) =>
  `#traj-${encodeURIComponent(trajectory.id.toWellFormed?.() ?? trajectory.id)}` +
  (step === undefined ? '' : `/step-${step + 1}`);

// ---- The head

function facts(node, items) {
  node.replaceChildren(...items.filter(Boolean).map(item => el('span', {}, item)));
}

function drawHead() {
  const { job } = data;
  document.title = `${job.name} · report`;
  $('job-name').textContent = job.name;
  facts($('job-facts'), [
    job.taskset && `taskset ${job.taskset}`,
    job.agent && `agent ${job.agent}`,
    el('time', { datetime: job.created_at }, momentText(job.created_at)),
    `hud-mcp ${data.versions.join(', ')}`,
  ]);
  $('mean-value').textContent = rewardText(data.mean);
  $('mean-over').textContent = meanText();
  $('outcomes').replaceChildren(...Object.entries(data.outcomes).map(([outcome, count]) =>
    el('div', { class: `count ${outcome}`, 'data-none': count === 0 },
      el('dt', {}, wordsOf(outcome)), el('dd', {}, String(count)))));
  if (job.metadata) {
    $('job-metadata').hidden = false;
    $('job-metadata-text').textContent = job.metadata;
  }
}

function meanText() {
  const total = data.trajectories.length;
  if (!data.rewarded) return `no graded task of ${total}`;
  return `mean reward over ${data.rewarded} graded of ${total}`;
}

// ---- The chart

const CHART = { height: 168, top: 20, bottom: 20, left: 42, widest: 96, widestBar: 52, narrowest: 9 };

function drawChart() {
  const rows = data.trajectories;
  $('chart').hidden = rows.length === 0;
  const room = $('plot').clientWidth - CHART.left - 2;
  if (!rows.length || room <= 0) return;
  const column = Math.max(CHART.narrowest, Math.min(CHART.widest, room / rows.length));
  const rewards = rows.map(row => row.reward ?? 0);
  const low = Math.min(0, ...rewards), high = Math.max(1, ...rewards);
  const tall = CHART.height - CHART.top - CHART.bottom;
  const y = value => CHART.top + (tall * (high - value)) / (high - low);
  const width = CHART.left + column * rows.length + 2;
  const picture = svg('svg', {
    // The table says the same to those who do not see this.
    width, height: CHART.height, viewBox: `0 0 ${width} ${CHART.height}`, 'aria-hidden': 'true',
  }, hatching());
  for (const value of new Set([low, 0, 0.5, 1, high])) picture.append(gridline(value, y(value), width));
  rows.forEach((row, index) => picture.append(drawColumn(row, index, column, y)));
  $('plot').replaceChildren(picture);
  drawLegend(rows, barWidth(column) < TIGHT);
}

function hatching() {
  return svg('defs', {}, svg('pattern', {
    id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)',
  }, svg('line', { x1: 0, y1: 0, x2: 0, y2: 6, class: 'hatch' })));
}

function gridline(value, y, width) {
  return svg('g', { class: value === 0 ? 'grid zero' : 'grid' },
    svg('line', { x1: CHART.left, x2: width, y1: y, y2: y }),
    svg('text', { x: CHART.left - 8, y: y + 3.5, 'text-anchor': 'end' }, rewardText(value)));
}

const TIGHT = 13;
const barWidth = column => Math.min(CHART.widestBar, column * 0.76);

function drawColumn(row, index, column, y) {
  const width = barWidth(column);
  const middle = CHART.left + column * (index + 0.5);
  const box = { x: middle - width / 2, width };
  const every = column >= 20 ? 1 : column >= 12 ? 5 : 10;
  const label = (index + 1) % every === 0 || every === 1 ? String(index + 1) : '';
  return svg('a', { href: linkTo(row), tabindex: -1, class: row.surprise ? 'column surprise' : 'column' },
    svg('title', {}, columnTitle(row, index)),
    svg('rect', { class: 'reach', x: CHART.left + column * index, y: 0, width: column, height: CHART.height }),
    row.reward === null ? drawFailure(row, box, middle, y) : drawReward(row, box, middle, y),
    svg('text', { class: 'number', x: middle, y: CHART.height - 5, 'text-anchor': 'middle' }, label));
}

function columnTitle(row, index) {
  const end = row.reward === null ? `${wordsOf(row.outcome)}, no reward` : `reward ${rewardText(row.reward)}`;
  return `${index + 1}  ${titleOf(row)}: ${end}${row.surprise ? `, ${expectedText(row)}` : ''}`;
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
  }, tight ? LETTERS[row.outcome] ?? '–' : wordsOf(row.outcome));
  return svg('g', { class: 'failure' },
    svg('rect', { ...box, y: top, height: bottom - top, rx: 2 }), word);
}

function drawLegend(rows, tight) {
  const failures = [...new Set(rows.filter(row => row.reward === null).map(row => row.outcome))];
  const lines = ['One column per task, in the order in which they began; the number is the row’s.'];
  const named = outcome => (tight ? `${LETTERS[outcome] ?? '–'} ${wordsOf(outcome)}` : wordsOf(outcome));
  if (failures.length) lines.push(`Hatched: no reward (${failures.map(named).join(', ')}).`);
  if (rows.some(row => row.surprise)) lines.push('≠: not as expected.');
  $('legend').textContent = lines.join(' ');
}

// ---- The table

const COLUMNS = [
  { key: 'number', label: 'No.', value: row => row.number },
  { key: 'task', label: 'Task', value: row => titleOf(row.trajectory).toLowerCase() },
  { key: 'environment', label: 'Environment', value: row => row.trajectory.environment },
  { key: 'outcome', label: 'Outcome', value: row => Object.keys(WORDS).indexOf(row.trajectory.outcome) },
  { key: 'reward', label: 'Reward', value: row => row.trajectory.reward },
  { key: 'steps', label: 'Steps', value: row => row.trajectory.steps.length },
  { key: 'seconds', label: 'Seconds', value: row => row.trajectory.seconds },
];
if (data.expects) {
  COLUMNS.push({ key: 'expected', label: 'Expected', value: row => row.trajectory.expected });
}

const table = { rows: [], sort: 'number', descending: false };

function buildTable() {
  table.rows = data.trajectories.map((trajectory, index) => {
    const row = { trajectory, number: index + 1, text: searchText(trajectory) };
    row.node = tableRow(row);
    return row;
  });
  $('columns').replaceChildren(...COLUMNS.map(column =>
    el('th', { scope: 'col', class: column.key, id: `column-${column.key}` },
      el('button', { type: 'button', click: () => sortBy(column.key) }, column.label))));
  $('sort').replaceChildren(...COLUMNS.map(column => el('option', { value: column.key }, column.label)));
  const ends = Object.keys(WORDS).filter(outcome => data.outcomes[outcome]);
  $('outcome').append(...ends.map(outcome => el('option', { value: outcome }, wordsOf(outcome))));
  $('surprises-label').hidden = !data.expects;
  $('sort').addEventListener('change', () => sortBy($('sort').value));
  $('filters').addEventListener('submit', event => event.preventDefault());
  for (const id of ['find', 'outcome', 'surprises']) $(id).addEventListener('input', drawRows);
  drawRows();
}

function searchText(trajectory) {
  return [titleOf(trajectory), trajectory.id, trajectory.environment, trajectory.template,
    trajectory.description, wordsOf(trajectory.outcome)].join('\n').toLowerCase();
}

function tableRow({ trajectory, number }) {
  const brief = [wordsOf(trajectory.outcome), trajectory.environment,
    plural(trajectory.steps.length, 'step'), secondsText(trajectory.seconds)].join(' · ');
  return el('tr', { class: trajectory.surprise ? 'surprise' : null },
    el('td', { class: 'number' }, String(number)),
    el('th', { scope: 'row', class: 'task' },
      el('a', { href: linkTo(trajectory) }, titleOf(trajectory)),
      el('span', { class: 'brief' }, brief)),
    el('td', { class: 'environment' }, trajectory.environment),
    el('td', { class: 'outcome' }, badge(trajectory.outcome)),
    el('td', { class: 'reward' }, ...rewardCell(trajectory)),
    el('td', { class: 'steps' }, String(trajectory.steps.length)),
    el('td', { class: 'seconds' }, trajectory.seconds === null ? '—' : trajectory.seconds.toFixed(1)),
    data.expects ? el('td', { class: 'expected' }, expectedCell(trajectory)) : null);
}

const badge = outcome => el('span', { class: `badge ${outcome}` }, wordsOf(outcome));

function rewardCell(trajectory) {
  const unmet = trajectory.surprise
    ? el('strong', { class: 'brief unmet' }, `≠ ${rewardText(trajectory.expected)}`) : null;
  if (trajectory.reward === null) return [el('span', { class: 'quiet' }, 'none'), unmet];
  return [meter(trajectory.reward), el('span', { class: 'figure' }, rewardText(trajectory.reward)), unmet];
}

function meter(value) {
  const filled = el('span', { class: 'filled' });
  filled.style.width = `${100 * Math.max(0, Math.min(1, value))}%`;
  return el('span', { class: 'meter', 'aria-hidden': 'true' }, filled);
}

const expectedText = trajectory => `${rewardText(trajectory.expected)} was expected`;

function expectedCell(trajectory) {
  if (trajectory.expected === null) return el('span', { class: 'quiet' }, 'any');
  if (!trajectory.surprise) return el('span', { class: 'quiet' }, rewardText(trajectory.expected));
  return el('strong', { class: 'unmet' }, `≠ ${rewardText(trajectory.expected)}`);
}

function sortBy(key) {
  table.descending = table.sort === key && !table.descending;
  table.sort = key;
  drawRows();
}

/** What has no value, such as the reward of a failure, stays last in either order. */
function compareBy(value, descending) {
  return (first, second) => {
    const a = value(first), b = value(second);
    if (a === b) return first.number - second.number;
    if (a === null) return 1;
    if (b === null) return -1;
    return (a < b ? -1 : 1) * (descending ? -1 : 1);
  };
}

function drawRows() {
  const wanted = $('find').value.trim().toLowerCase(), outcome = $('outcome').value;
  const shown = table.rows.filter(({ text, trajectory }) => text.includes(wanted) &&
    (!outcome || trajectory.outcome === outcome) && (!$('surprises').checked || trajectory.surprise));
  const { value } = COLUMNS.find(column => column.key === table.sort);
  shown.sort(compareBy(value, table.descending));
  $('rows').replaceChildren(...shown.map(row => row.node));
  $('shown').textContent = shown.length === table.rows.length
    ? plural(shown.length, 'task') : `${shown.length} of ${plural(table.rows.length, 'task')} shown`;
  for (const { key } of COLUMNS) {
    const order = key === table.sort ? (table.descending ? 'descending' : 'ascending') : 'none';
    $(`column-${key}`).setAttribute('aria-sort', order);
  }
  $('sort').value = table.sort;
}

// ---- One trajectory

const view = { trajectory: null, step: 0, side: 'before' };

function openTrajectory(index, step) {
  const trajectory = data.trajectories[index];
  view.trajectory = trajectory;
  view.step = Math.max(0, Math.min(step, trajectory.steps.length - 1));
  drawTask(trajectory);
  drawPager(index);
  drawGrade(trajectory);
  say($('log'), trajectory.logs ?? 'Nothing was logged.');
  drawPlayer(trajectory);
}

function drawTask(trajectory) {
  document.title = `${titleOf(trajectory)} · ${data.job.name}`;
  $('task-name').textContent = titleOf(trajectory);
  say($('task-description'), trajectory.description);
  facts($('task-facts'), [
    `${trajectory.environment} ${trajectory.environment_version}`.trim(),
    `template ${trajectory.template}`,
    trajectory.args && `with ${trajectory.args}`,
    trajectory.context && `context ${trajectory.context}`,
    trajectory.seed !== null && `seed ${trajectory.seed}`,
    el('time', { datetime: trajectory.started_at }, momentText(trajectory.started_at)),
    secondsText(trajectory.seconds),
    `record ${trajectory.id}`,
  ]);
  const figure = trajectory.reward === null
    ? el('span', { class: 'no-reward' }, 'no reward') : el('span', { class: 'big' }, rewardText(trajectory.reward));
  $('verdict').replaceChildren(figure, badge(trajectory.outcome),
    trajectory.surprise ? el('strong', { class: 'unmet' }, expectedText(trajectory)) : '');
  $('prompt').textContent = trajectory.prompt ?? 'None was recorded.';
}

function drawPager(index) {
  const { trajectories } = data;
  for (const [id, other] of [['previous-trajectory', index - 1], ['next-trajectory', index + 1]]) {
    if (trajectories[other]) $(id).setAttribute('href', linkTo(trajectories[other]));
    else $(id).removeAttribute('href');
  }
}

function drawPlayer(trajectory) {
  const count = trajectory.steps.length;
  $('player').hidden = count === 0;
  $('all-steps').open = false;
  $('outline').replaceChildren();
  if (!count) return;
  $('scrub').max = count;
  $('stage').hidden = !trajectory.steps.some(step => step.after);
  $('split').classList.toggle('no-pictures', $('stage').hidden);
  $('error-ticks').replaceChildren(...trajectory.steps.flatMap((step, index) =>
    step.error ? [errorTick(index, count)] : []));
  drawStep();
}

function errorTick(index, count) {
  const tick = el('span');
  tick.style.setProperty('--at', count > 1 ? index / (count - 1) : 0);
  return tick;
}

function goTo(step) {
  const last = view.trajectory.steps.length - 1;
  view.step = Math.max(0, Math.min(step, last));
  drawStep();
}

function stepWords(step) {
  const words = step.actions.map(action => action.words).join('; ');
  return words || (step.kind === 'screenshot' ? 'look' : `${step.kind} without an action`);
}

function drawStep() {
  const { trajectory, step: index } = view;
  const step = trajectory.steps[index], count = trajectory.steps.length;
  $('scrub').value = index + 1;
  $('scrub').setAttribute('aria-valuetext', `Step ${index + 1} of ${count}: ${clip(stepWords(step), 120)}`);
  $('position').textContent = `${index + 1} / ${count}`;
  $('previous-step').setAttribute('aria-disabled', index === 0);
  $('next-step').setAttribute('aria-disabled', index === count - 1);
  drawPanel(step, index);
  drawStage(step, index);
  markOutline();
}

function drawPanel(step, index) {
  $('step-title').textContent = `Step ${index + 1}`;
  $('step-link').setAttribute('href', linkTo(view.trajectory, index));
  facts($('step-facts'), [
    step.kind,
    `after ${secondsText(step.after_s)}`,
    `took ${secondsText(step.took_s)}`,
    step.reward !== null && `reward ${rewardText(step.reward)}`,
    step.terminated && 'the task reached its end',
    step.truncated && 'cut off by a limit',
  ]);
  $('actions').replaceChildren(...step.actions.map(actionItem));
  say($('step-error'), step.error);
  say($('seen'), step.text);
  $('seen').scrollTop = 0;
  $('seen-title').textContent = step.text ? 'What it read then' : 'It read no text';
  $('step-info').hidden = !step.info;
  $('step-info-text').textContent = step.info ?? '';
}

function actionItem(action) {
  return el('li', { class: action.state === 'not performed' ? 'undone' : null },
    el('span', { class: 'words' }, action.words),
    action.state === 'performed' ? null : el('em', { class: 'state' }, ` ${action.state}`),
    action.note ? el('span', { class: 'note' }, action.note) : null);
}

function buildOutline() {
  if (!$('all-steps').open || $('outline').childElementCount) return;
  $('outline').replaceChildren(...view.trajectory.steps.map((step, index) =>
    el('li', {}, el('button', { type: 'button', class: step.error ? 'failed' : null, click: () => goTo(index) },
      clip(stepWords(step), 200), step.error ? el('em', { class: 'state' }, ' failed') : null))));
  markOutline();
}

function markOutline() {
  $('outline').querySelector('[aria-current]')?.removeAttribute('aria-current');
  $('outline').children[view.step]?.firstElementChild.setAttribute('aria-current', 'step');
}

// ---- The picture, and what was done on it

const canChoose = (step, side) => step[side] !== null && (side === 'after' || step.actions.length > 0);

/** An action is drawn on the picture that the agent had before it; a look shows what it saw. */
function sideOf(step) {
  const wanted = view.side === 'before' || !step.after ? 'before' : 'after';
  return canChoose(step, wanted) ? wanted : 'after';
}

function drawStage(step, index) {
  if ($('stage').hidden) return;
  const side = sideOf(step), shot = step[side];
  for (const name of ['before', 'after']) {
    $(`side-${name}`).setAttribute('aria-pressed', side === name);
    $(`side-${name}`).setAttribute('aria-disabled', !canChoose(step, name));
  }
  showPicture(shot, index, side);
  const drawn = side === 'before' || !canChoose(step, 'before') ? step.actions : [];
  $('marks').replaceChildren(...(shot ? drawMarks(drawn, shot) : []));
  $('caption').textContent = captionOf(step, index, side);
}

function captionOf(step, index, side) {
  const unplaced = step.actions.filter(action => action.state !== 'not performed' &&
    !action.point && !action.path && (!action.scroll || action.named));
  const shot = step[side];
  if (!shot) return `No picture was taken in step ${index + 1}.`;
  if (side === 'after' && step.before && step.actions.length) return `After step ${index + 1}`;
  const words = unplaced.map(action => action.words).join('; ');
  const from = side === 'before' ? `As step ${index + 1} found it` : `As step ${index + 1} left it`;
  return clip(words ? `${from}: ${words}` : from, 300);
}

function showPicture(shot, index, side) {
  const image = $('picture'), known = shot && data.pictures[shot.sha256];
  const frame = $('frame');
  frame.style.setProperty('--ratio', known ? known.width / known.height : 1.6);
  const text = known && !known.problem ? $(`picture-${shot.sha256}`)?.textContent : undefined;
  if (text === undefined) {
    image.hidden = true;
    image.removeAttribute('src');
    say($('placeholder'), placeholderText(shot, known));
    return;
  }
  say($('placeholder'), '');
  image.hidden = false;
  image.alt = `The screen ${side} step ${index + 1}`;
  image.dataset.sha256 = shot.sha256;
  const source = `data:${known.mime};base64,${text}`;
  if (image.src !== source) image.src = source;
}

function placeholderText(shot, known) {
  if (!shot) return 'No picture was taken in this step.';
  if (known?.problem) return `The picture ${known.problem}.`;
  return document.readyState === 'loading' ? 'The picture is still loading.' : 'The picture is missing.';
}

function pictureBroke() {
  if (!$('picture').hasAttribute('src')) return;
  $('picture').hidden = true;
  say($('placeholder'), 'The picture is damaged: it cannot be shown.');
}

function drawMarks(actions, shot) {
  const { width, height } = data.pictures[shot.sha256];
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
  if (!action.scroll || action.named) return null;
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
  const node = el('span', { class: `spot ${action.type}${action.state === 'performed' ? '' : ' undone'}` },
    el('span', { class: 'ring' }), el('span', { class: 'order' }, String(index + 1)));
  if (action.typed) caption(node, action.typed);
  if (outside) caption(node, 'outside the picture');
  return putAt(node, inside, width, height);
}

function caption(node, text) {
  node.append(el('span', { class: 'typed' }, clip(text, 60)));
}

// ---- The grade

function drawGrade({ receipt, reward, outcome }) {
  if (!receipt) {
    $('grade').replaceChildren(el('p', { class: 'quiet' }, 'It has not ended, so there is no grade.'));
    return;
  }
  const head = reward === null
    ? `No reward: ${wordsOf(outcome)}.` : `Reward ${rewardText(reward)}.`;
  const list = Object.entries(receipt.facts).filter(([, value]) => value !== null);
  $('grade').replaceChildren(
    el('p', { class: 'lead' }, head, receipt.content ? ` ${receipt.content}` : null),
    receipt.error ? el('p', { class: 'error' }, receipt.error) : '',
    receipt.subscores.length ? el('ul', { class: 'tree' }, ...receipt.subscores.map(subscore)) : '',
    receipt.info ? el('pre', { tabindex: 0, role: 'region', 'aria-label': 'More of the grade' }, receipt.info) : '',
    el('details', {}, el('summary', {}, 'Receipt'),
      el('dl', { class: 'receipt' }, ...list.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]))));
}

function subscore({ name, value, weight, info, children }) {
  return el('li', {},
    el('span', { class: 'score' },
      el('span', { class: 'name' }, name), meter(value),
      el('span', { class: 'figure' }, rewardText(value)),
      el('span', { class: 'quiet' }, `weight ${rewardText(weight)}`)),
    info ? el('span', { class: 'note' }, info) : null,
    children.length ? el('ul', {}, ...children.map(subscore)) : null);
}

// ---- Where we are

/** Reads `#traj-<id>` and `#traj-<id>/step-<n>`; anything else is the overview. */
function readHash() {
  const match = /^#traj-([^/]*)(?:\/step-(\d{1,9}))?$/.exec(location.hash);
  if (!match) return null;
  try {
    return { id: decodeURIComponent(match[1]), step: match[2] ? Number(match[2]) - 1 : 0 };
  } catch {
    return { id: match[1], step: 0 };
  }
}

function route({ moved = true } = {}) {
  const wanted = readHash();
  const index = wanted && places.get(wanted.id);
  const found = index !== null && index !== undefined;
  const left = view.trajectory;
  $('overview').hidden = found;
  $('detail').hidden = !found;
  say($('notice'), wanted && !found ? `This report has no trajectory ${wanted.id}.` : '');
  if (found) {
    openTrajectory(index, wanted.step);
    if (moved && left !== view.trajectory) arrive($('task-name'));
    return;
  }
  view.trajectory = null;
  document.title = `${data.job.name} · report`;
  drawChart();
  if (moved && left) table.rows[places.get(left.id)].node.querySelector('a').focus();
}

function arrive(node) {
  scrollTo(0, 0);
  node.focus({ preventScroll: true });
}

function choose(side) {
  if (!canChoose(view.trajectory.steps[view.step], side)) return;
  view.side = side;
  drawStep();
}

function swapSides() {
  choose(sideOf(view.trajectory.steps[view.step]) === 'before' ? 'after' : 'before');
}

function pressed(event) {
  if (!view.trajectory || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === 'Escape') location.hash = '';
  if (!view.trajectory.steps.length) return;
  if (event.key === 'b' || event.key === 'B') swapSides();
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  goTo(view.step + by);
}

function listen() {
  addEventListener('hashchange', () => route());
  addEventListener('DOMContentLoaded', () => view.trajectory?.steps.length && drawStep());
  document.addEventListener('keydown', pressed);
  $('scrub').addEventListener('input', () => goTo(Number($('scrub').value) - 1));
  $('previous-step').addEventListener('click', () => goTo(view.step - 1));
  $('next-step').addEventListener('click', () => goTo(view.step + 1));
  $('side-before').addEventListener('click', () => choose('before'));
  $('side-after').addEventListener('click', () => choose('after'));
  $('picture').addEventListener('error', pictureBroke);
  $('all-steps').addEventListener('toggle', buildOutline);
  let width = 0;
  new ResizeObserver(() => {
    if ($('plot').clientWidth === width) return;
    width = $('plot').clientWidth;
    drawChart();
  }).observe($('plot'));
}

drawHead();
buildTable();
listen();
route({ moved: false });
document.documentElement.dataset.rendered = 'yes';
