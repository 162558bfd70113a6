"""Actions on a page, and what the page saw of them."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import (
    Action,
)
from hud_mcp.worlds.browser import BrowserWorld

Browse = Callable[..., Awaitable[BrowserWorld]]
LOGGING = """<script>
  window.seen = [];
  for (const kind of ['click', 'dblclick', 'auxclick', 'contextmenu', 'keydown', 'keyup',
                      'mousedown', 'mouseup', 'input', 'wheel', 'mousemove']) {
    addEventListener(kind, e => seen.push([kind, e.target.id || e.target.tagName,
      e.key || e.detail || 0, e.shiftKey || false, e.ctrlKey || false]), true);
  }
</script>"""


async def seen(world: BrowserWorld, kind: str) -> list[list[Any]]:
    """What the page noticed of one kind of event: target, key or count, shift, ctrl."""
    found: list[list[Any]] = await world.page.evaluate("() => window.seen")
    return [entry[1:] for entry in found if entry[0] == kind]


async def act(world: BrowserWorld, *actions: Action) -> None:
    """Perform actions, each within a bound."""
    for action in actions:
        with anyio.fail_after(PATIENCE_S):
            await world.act(action)


async def refusal(world: BrowserWorld, action: Action) -> str:
    """Perform an action that must be refused, and return why."""
    with anyio.fail_after(PATIENCE_S), pytest.raises(ActionFailed) as caught:
        await world.act(action)
    return str(caught.value)
