"""Browsers that are written down, and others that take up what was written."""

# ruff: noqa: E501  # pages are easier to read unbroken

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from waiting import PATIENCE_S

from hud_mcp.values.action import (
    Action,
    CustomAction,
)
from hud_mcp.values.observation import Look
from hud_mcp.worlds.browser import BrowserWorld, SiteRequest

Make = Callable[..., Awaitable[BrowserWorld]]


async def act(world: BrowserWorld, *actions: Action) -> None:
    """Perform actions, each within a bound."""
    for action in actions:
        with anyio.fail_after(PATIENCE_S):
            await world.act(action)


async def read(world: BrowserWorld, **options: Any) -> str:
    """The text of an observation."""
    with anyio.fail_after(PATIENCE_S):
        return (await world.observe(Look(**options))).text or ""


async def snapshot(world: BrowserWorld) -> bytes:
    """A snapshot, within a bound."""
    with anyio.fail_after(PATIENCE_S):
        return await world.snapshot()


async def restore(world: BrowserWorld, data: bytes) -> BrowserWorld:
    """The world, after it took a snapshot up."""
    with anyio.fail_after(PATIENCE_S):
        await world.restore(data)
    return world


def go(url: str) -> CustomAction:
    """Go to an address."""
    return CustomAction(action="goto", args={"url": url})


FORM = """<title>Form</title><form><input id=n placeholder=Name><input id=p type=password>
<input id=d type=date><input id=r type=range><textarea id=t>old</textarea>
<input type=checkbox id=c><input type=checkbox id=k checked>
<input type=radio name=x value=1 checked><input type=radio name=x value=2 id=two>
<select id=s><option value=1>One<option value=2>Two</select>
<select id=m multiple><option>A<option>B<option>C</select></form>
<div id=e contenteditable><b>bold</b></div><div id=h></div><p id=o></p>
<script>window.told = [];
for (const kind of ['input', 'change']) addEventListener(kind, e => told.push(kind + ' ' + e.target.id));
h.attachShadow({ mode: 'open' }).innerHTML = '<input id=deep>';
n.addEventListener('input', () => { o.textContent = 'Hello ' + n.value; });</script>"""


async def shop(request: SiteRequest, state: dict[str, Any]) -> dict[str, Any]:
    """Count visits."""
    state["visits"] = state.get("visits", 0) + 1
    return {"visits": state["visits"]}
