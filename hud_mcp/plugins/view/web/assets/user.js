// A person who answers as the user of a running session: each message that waits, and its reply.
// The token goes in a header and stays in this tab: no other page's request has it.

import { $, say } from './dom.js';

const POLL_MS = 1000;
const TOKEN_KEY = 'hud-mcp/viewer';
const GONE = 'The message waits no longer: it has its reply, its time is up, or the server began again. Your words were not sent, and are kept.';

let address = '', draftKey = '', awaited = null, isSending = false, isDone = false, sent = 0, timer = 0;

const keep = (key, text) => (text ? sessionStorage.setItem(key, text) : sessionStorage.removeItem(key));

async function ask(more = {}) {
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (!token) return null;
  const headers = { ...more.headers, authorization: `Bearer ${token}` };
  return fetch(address, { ...more, headers, cache: 'no-store' }).catch(() => null);
}

function isRefused(response) {
  if (response?.status !== 401 && response?.status !== 403) return false;
  keep(TOKEN_KEY, '');
  admit();
  say($('user-notice'), "This is not the viewer's token.");
  return true;
}

/** Shows the field for the token, or what waits for a reply. */
function admit() {
  const known = Boolean(sessionStorage.getItem(TOKEN_KEY));
  $('entering').hidden = known;
  if (!known) $('replying').hidden = true;
  $('user-state').textContent = known ? 'No message waits for you.' : '';
}

function timeLeft(seconds) {
  return seconds >= 120 ? `${Math.round(seconds / 60)} minutes` : `${seconds} seconds`;
}

function show(next) {
  if (next?.state !== awaited?.state) {
    // The same words under another state: the server began again, and asks again.
    if (!next && $('reply').value) say($('user-notice'), GONE);
    if (next) {
      say($('user-notice'), '');
      $('message').textContent = next.message;
      $('reply').maxLength = next.chars;
      document.title = `● ${document.title.replace(/^● /, '')}`;
    } else document.title = document.title.replace(/^● /, '');
    $('user-state').textContent = next ? 'A message waits for your reply.' : 'No message waits for you.';
  }
  awaited = next;
  $('replying').hidden = !next;
  if (next) $('left').textContent = `Without a reply within ${timeLeft(next.left_s)}, the conversation ends.`;
}

async function poll() {
  const before = sent, response = isSending ? null : await ask();
  const found = !isRefused(response) && response?.ok ? await response.json().catch(() => null) : null;
  if (found && !isSending && before === sent) show(found.waits); // else it is older than the reply
  if (!isDone) timer = setTimeout(poll, POLL_MS);
}

async function send(ends) {
  const reply = $('reply').value;
  if (isSending || !awaited || (!ends && !reply.trim())) return;
  isSending = true;
  sent += 1;
  $('replying').setAttribute('aria-busy', true);
  const response = await ask({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ state: awaited.state, reply, ends }),
  });
  isSending = false;
  $('replying').setAttribute('aria-busy', false);
  if (isRefused(response)) return;
  if (response?.ok) {
    $('reply').value = '';
    keep(draftKey, '');
    say($('user-notice'), '');
    show(null);
    $('user-state').textContent = ends ? 'Sent. You have ended the conversation.' : 'Sent.';
  } else say($('user-notice'), response ? `${await response.text()} Your words were not sent.` : 'The connection was lost. Your words are kept; send them again.');
}

/** Lets a person answer here, as far as they have the token. */
export function beginReplies(base) {
  address = `${base}/user`;
  draftKey = `hud-mcp/draft${base}`;
  $('user').hidden = false;
  $('reply').value = sessionStorage.getItem(draftKey) ?? '';
  $('reply').addEventListener('input', () => keep(draftKey, $('reply').value));
  $('reply').addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) $('replying').requestSubmit();
  });
  $('replying').addEventListener('submit', event => {
    event.preventDefault();
    send(event.submitter?.value === 'ends');
  });
  $('entering').addEventListener('submit', event => {
    event.preventDefault();
    keep(TOKEN_KEY, $('viewer-token').value.trim());
    $('viewer-token').value = '';
    say($('user-notice'), '');
    admit();
    clearTimeout(timer);
    poll();
  });
  admit();
  poll();
}

/** The session is over: nobody is asked any more. */
export function endReplies() {
  isDone = true;
  clearTimeout(timer);
  $('user').hidden = true;
}
