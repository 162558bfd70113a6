"""The page of consent: who asks for what, and the person's yes or no. It needs no script."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from hud_mcp.plugins.oauth.values import OPERATE, WORK, Client

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #505a64; --ground: #f4f5f7;
  --card: #fff; --line: #8a939c; --main: #0b57d0; --on: #fff; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #b4bcc4; --ground: #16181b;
  --card: #202327; --line: #7d8690; --main: #a8c7fa; --on: #062e6f; --bad: #ffb4ab; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 28rem; margin: 4vh auto; padding: 1.5rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .75rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; font-size: 1.35rem; line-height: 1.3; }
dl { margin: 0 0 1rem; } dt { color: var(--soft); font-size: .875rem; }
dd { margin: 0 0 .6rem; } ul { margin: .25rem 0 0; padding-left: 1.25rem; }
label { display: block; margin-top: .75rem; font-weight: 600; }
input { width: 100%; min-height: 2.75rem; margin-top: .25rem; padding: .5rem .75rem; font: inherit;
  color: inherit; background: transparent; border: 1px solid var(--line); border-radius: .5rem; }
.bad { color: var(--bad); font-weight: 600; } .soft { color: var(--soft); font-size: .875rem; }
.row { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.25rem; }
button { flex: 1 1 8rem; min-height: 2.75rem; font: inherit; font-weight: 600; cursor: pointer;
  border-radius: .5rem; border: 1px solid var(--main); background: none; color: var(--main); }
button.main { background: var(--main); color: var(--on); }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

_SCOPES: Mapping[str, str] = {
    WORK: "Start tasks in your name, work on your sessions, and see their grades",
    OPERATE: "Run and grade tasks as the operator of this server",
}


def consent_page(
    client: Client, *, scopes: Sequence[str], resource: str, redirect_uri: str, csrf: str,
    asks_name: bool, name: str = "", problem: str = "", status: int = 200,
) -> HTMLResponse:  # fmt: skip
    """Return the page for one request of a client. All of the client's words are escaped.

    `csrf` proves that the form is this page's, and `problem` is the sentence on a refused attempt.
    """
    shown = client.name or "An app without a name"
    items = "".join(f"<li>{escape(_SCOPES[each])}</li>" for each in scopes)
    focus = " autofocus"
    user = (
        '<label for="name">Name</label><input id="name" name="name" required maxlength="64" '
        f'autocomplete="username" autocapitalize="none" value="{escape(name)}"{focus}>'
        if asks_name
        else '<input type="hidden" name="username" autocomplete="username" value="owner">'
    )
    word = "Password" if asks_name else "Passcode"
    alert = f'<p class="bad" role="alert" id="problem">{escape(problem)}</p>' if problem else ""
    described = ' aria-describedby="problem" aria-invalid="true"' if problem else ""
    body = f"""<h1>Allow “{escape(shown)}” to use this server?</h1>
<dl><dt>Who asks</dt><dd>{_who(client)}</dd>
<dt>For</dt><dd>{escape(resource)}<ul>{items}</ul></dd>
<dt>The answer goes to</dt><dd>{escape(_where(redirect_uri))}</dd></dl>
<p class="soft">Allow this only if you have just asked an app to connect.</p>
{alert}<form method="post">
<input type="hidden" name="csrf" value="{escape(csrf)}">{user}
<label for="password">{word}</label><input id="password" name="password" type="password" required
 maxlength="1024" autocomplete="current-password"{described}{"" if asks_name else focus}>
<div class="row"><button class="main" name="decision" value="allow">Allow</button>
<button name="decision" value="deny" formnovalidate>Deny</button></div></form>"""
    return _page(f"Allow {shown}?", body, status, form_action=_source(redirect_uri))


def refusal_page(text: str, *, status: int = 400) -> HTMLResponse:
    """Return the page for a request whose answer has nowhere to go."""
    body = (
        f'<h1>This request cannot be answered</h1><p role="alert">{escape(text)}</p>'
        '<p class="soft">Go back to the app, and connect it again.</p>'
    )
    return _page("This request cannot be answered", body, status)


def _who(client: Client) -> str:
    if client.has_document:
        return f"The app of {escape(urlsplit(client.id).netloc)}"
    return "An app that gave itself this name; nobody vouches for it"


def _where(redirect_uri: str) -> str:
    parts = urlsplit(redirect_uri)
    if parts.scheme == "http":
        return f"An app on your own machine ({parts.netloc})"
    return parts.netloc if parts.scheme == "https" else f"An app of your device ({parts.scheme}:)"


def _source(redirect_uri: str) -> str:
    """Return the redirect's place for a policy: a browser applies it to where a form leads."""
    parts = urlsplit(redirect_uri)
    plain = parts.scheme in ("http", "https") and "[" not in parts.netloc
    return f"{parts.scheme}://{parts.netloc}" if plain else f"{parts.scheme}:"


def _page(title: str, body: str, status: int, *, form_action: str = "") -> HTMLResponse:
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    )
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
        f"form-action 'self' {form_action}; frame-ancestors 'none'"
    )
    return HTMLResponse(
        text,
        status,
        {
            "content-security-policy": policy.replace(" ;", ";"),
            "x-frame-options": "DENY",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "cross-origin-opener-policy": "same-origin",
            "cache-control": "no-store",
        },
    )
