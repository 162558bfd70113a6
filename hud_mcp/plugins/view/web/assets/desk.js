// The page on which a person works on a task: what is done here is what the agent does.

import { $, el, say } from './dom.js';

const DRAG_PX = 6;
const MODES = {
  click: ['Click', 'Press on the picture to click there.'],
  drag: ['Drag', 'Press where to begin, then where to end.'],
  move: ['Move', 'Press where the pointer is to go.'],
};

let shown = 0, turn = null, sending = false;
let mode = null, pressed = null, from = null;

async function send(asked) {
  if (sending || !turn || turn.busy || turn.over) return;
  sending = true;
  busy(true);
  const response = await fetch('/do', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...asked, number: turn.number }),
  }).catch(() => null);
  sending = false;
  if (!response) say($('notice'), 'The connection was lost; is the evaluation over?');
  else if (!response.ok) say($('notice'), await response.text());
  if (!response?.ok) busy(false);
}

function busy(is) {
  $('work').setAttribute('aria-busy', is);
  for (const button of $('work').querySelectorAll('button')) button.setAttribute('aria-disabled', is);
  if (is) $('state').textContent = 'Working …';
}

function read(field, input) {
  if (field.kind === 'flag') return input.checked;
  if (input.value === '') return field.required && field.kind === 'text' ? '' : undefined;
  if (field.kind === 'number') return Number(input.value);
  if (field.kind === 'words') return input.value.split(/[\s,]+/).filter(Boolean);
  if (field.kind === 'json') return JSON.parse(input.value);
  if (field.kind === 'choice') return field.options[Number(input.value)];
  return input.value;
}

function inputOf(field, id) {
  const help = field.help ? `${id}-help` : null;
  const common = { id, 'aria-describedby': help, required: field.required && field.kind !== 'flag' };
  if (field.kind === 'flag') return el('input', { ...common, type: 'checkbox' });
  if (field.kind === 'choice') {
    const none = field.required ? [] : [el('option', { value: '' }, '')];
    const options = field.options.map((option, index) => el('option', { value: index }, String(option)));
    return el('select', common, ...none, ...options);
  }
  const type = field.kind === 'number' ? 'number' : 'text';
  return el('input', { ...common, type, step: type === 'number' ? 'any' : null, autocomplete: 'off' });
}

function formOf(form, index) {
  const inputs = form.fields.map((field, place) => [field, inputOf(field, `field-${index}-${place}`)]);
  const rows = inputs.map(([field, input]) => el('div', { class: `row ${field.kind}` },
    el('label', { for: input.id }, field.label),
    input,
    field.help ? el('p', { class: 'quiet', id: `${input.id}-help` }, field.help) : null));
  const submit = event => {
    event.preventDefault();
    let made;
    try {
      made = inputs.map(([field, input]) => [field.name, read(field, input)]).filter(pair => pair[1] !== undefined);
    } catch {
      say($('notice'), 'That is no JSON. Write numbers and lists, such as [0.5, 1].');
      return;
    }
    const values = Object.fromEntries(made);
    send({ action: form.into ? { ...form.action, [form.into]: values } : { ...form.action, ...values } });
  };
  return el('details', { class: 'act' }, el('summary', {}, form.title),
    el('form', { submit }, ...rows, el('button', { type: 'submit' }, form.title)));
}

function showForms() {
  const plain = turn.forms.filter(form => !form.fields.length);
  const buttons = plain.map(form => el('button', { type: 'button', click: () => send({ action: form.action }) }, form.title));
  const look = el('button', { type: 'button', click: () => send({ action: null }) }, 'Look again');
  $('buttons').replaceChildren(...buttons, look);
  $('forms').replaceChildren(...turn.forms.filter(form => form.fields.length).map(formOf));
}

function showRefs() {
  const refs = turn.pointer.includes('click') ? turn.refs : [];
  $('refs').hidden = !refs.length;
  $('refs').replaceChildren(...refs.map(([ref, name]) => el('li', {}, el('button', {
    type: 'button',
    click: () => send({ action: { type: 'click', ref } }),
  }, name))));
}

function showPicture() {
  $('seen').hidden = turn.picture === null;
  if (turn.picture === null) return;
  $('picture').src = `/picture/${turn.picture}`;
  $('picture').classList.toggle('aim', turn.pointer.length > 0);
}

function showModes() {
  const offered = Object.keys(MODES).filter(name => turn.pointer.includes(name));
  $('modes').hidden = offered.length < 2;
  $('modes').replaceChildren($('modes').firstElementChild, ...offered.map(name => el('label', {},
    el('input', { type: 'radio', name: 'mode', value: name, change: () => choose(name) }), MODES[name][0])));
  choose(offered[0] ?? null);
}

function choose(name) {
  mode = name;
  from = null;
  for (const input of $('modes').querySelectorAll('input')) input.checked = input.value === name;
  const drags = name === 'click' && turn.pointer.includes('drag') ? ' Hold the mouse and move it to drag.' : '';
  $('caption').textContent = name ? MODES[name][1] + drags : '';
}

function pointAt(event) {
  const { naturalWidth, naturalHeight } = $('picture');
  const box = $('picture').getBoundingClientRect();
  const at = (given, start, size, most) => Math.max(0, Math.min(most - 1, Math.round((given - start) * most / size)));
  return { x: at(event.clientX, box.left, box.width, naturalWidth), y: at(event.clientY, box.top, box.height, naturalHeight) };
}

/** What a press on the picture comes to: a mouse that was moved meanwhile has dragged. */
function release(event) {
  const began = pressed;
  pressed = null;
  if (!mode || !began) return;
  const moved = Math.hypot(event.clientX - began.clientX, event.clientY - began.clientY) > DRAG_PX;
  if (moved) {
    if (turn.pointer.includes('drag')) send({ action: { type: 'drag', path: [began.point, pointAt(event)] } });
  } else if (mode === 'drag' && !from) {
    from = began.point;
    $('caption').textContent = `From ${from.x}, ${from.y}. Now press where to end.`;
  } else if (mode === 'drag') {
    send({ action: { type: 'drag', path: [from, began.point] } });
    choose(mode);
  } else {
    send({ action: { type: mode, point: began.point } });
  }
}

function show(next) {
  const begins = !turn || next.number !== turn.number;
  turn = next;
  document.title = `${turn.task} · your task`;
  $('task-name').textContent = turn.task;
  $('asked').hidden = $('work').hidden = false;
  $('prompt').textContent = turn.prompt;
  $('text').textContent = turn.text;
  if (begins) {
    $('answer').value = '';
    showForms();
    showModes();
    $('task-name').focus();
  }
  showRefs();
  showPicture();
  busy(turn.busy || turn.over);
  say($('notice'), turn.error);
  $('state').textContent = turn.over ? `This task is over. ${turn.said}` : turn.busy ? 'Working …' : 'It is your turn.';
}

async function watch() {
  for (;;) {
    const response = await fetch(`/state?seen=${shown}`).catch(() => null);
    const news = response?.ok ? await response.json() : { over: true };
    if (news.turn && news.version !== shown) show(news.turn);
    if (news.over) {
      busy(true);
      $('state').textContent = 'The evaluation is over. You may close this page.';
      return;
    }
    shown = news.version;
  }
}

$('answering').addEventListener('submit', event => {
  event.preventDefault();
  send({ answer: $('answer').value });
});
$('picture').addEventListener('pointerdown', event => {
  if (event.button !== 0 || !mode) return;
  pressed = { clientX: event.clientX, clientY: event.clientY, point: pointAt(event) };
  if (event.pointerType === 'mouse') $('picture').setPointerCapture(event.pointerId);
});
$('picture').addEventListener('pointerup', release);
$('picture').addEventListener('pointercancel', () => { pressed = null; });
$('picture').addEventListener('load', () => {
  const { naturalWidth, naturalHeight } = $('picture');
  $('picture').parentElement.style.setProperty('--ratio', naturalWidth / naturalHeight);
});
watch();
document.documentElement.dataset.rendered = 'yes';
