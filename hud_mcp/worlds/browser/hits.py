"""The elements that an agent's actions hit, written down for selectors that are tried later.

A handle of an element dies with its document. So the element is kept as data, with its ancestors
and their siblings. To try a selector on it, it is built again, in a page of its own without
scripts and network.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.errors import ActionFailed
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_end, send
from hud_mcp.worlds.browser.tab import Tab

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page

__all__ = ["ANSWER_BOUND_S", "answers", "matching", "write_down"]

HIT_BOUND_S = 1.0
"""The longest wait for a page to name the hit element. A page that hangs names none."""

OPEN_BOUND_S = 10.0
CLOSE_BOUND_S = 5.0

ANSWER_BOUND_S = 5.0
"""The longest time for a new page to open and answer on a healthy machine."""

MAX_CHARS = 60_000
"""The longest record of one action."""

_WORLD = "hud-mcp"
_HIT = Path(__file__).with_name("hit.js").read_text()
_MARK = "data-hud-mcp-hit"

_BUILD = """([tree, mark]) => {
  const make = ([tag, space, attributes, children, marked, text]) => {
    let node;
    try { node = document.createElementNS(space || 'http://www.w3.org/1999/xhtml', tag); }
    catch { node = document.createElement('x'); }
    for (const [name, value] of Object.entries(attributes)) {
      try { node.setAttribute(name, value); } catch { /* a name that only a parser can give */ }
    }
    node.removeAttribute(mark);
    if (marked) node.setAttribute(mark, '');
    for (const child of children) node.append(make(child));
    if (text) node.append(text);
    return node;
  };
  document.replaceChild(make(tree), document.documentElement);
}"""

_ANY_MARKED = "(found, mark) => found.some(node => node.hasAttribute(mark))"


async def write_down(tab: Tab, place: tuple[float, float] | None) -> str | None:
    """Return the record of the element at a place of the viewport, or of the focused one.

    The result is None without an element.

    Args:
        tab: The page.
        place: In CSS pixels; None for the focus.
    """
    said: Any = None
    try:
        with anyio.move_on_after(HIT_BOUND_S * tab.patience()):
            said = await _ask(await tab.cdp(), place)
    except libraries.PlaywrightError as exc:
        if is_end(exc):
            raise
        return None  # the document goes away meanwhile
    return said if isinstance(said, str) and len(said) <= MAX_CHARS else None


async def matching(browser: "Browser", selector: str, targets: Sequence[str]) -> list[bool]:
    """Return whether a selector matches, for each element that was hit.

    Args:
        browser: The browser in which a page for trying is opened, and closed again.
        selector: A selector of Playwright's.
        targets: The results of `write_down`.

    Raises:
        ActionFailed: It is not a selector.
    """
    context = await _open_context(browser)
    try:
        page = await context.new_page()
        known: dict[str, bool] = {}
        for target in targets:
            if target not in known:
                known[target] = await _matches(page, selector, json.loads(target))
        return [known[target] for target in targets]
    except libraries.PlaywrightError as exc:
        if is_end(exc):
            raise
        reason = exc.message.partition(": ")[2].partition("\n")[0] or exc.message
        raise ActionFailed(f"{selector!r} is not a selector: {reason}") from exc
    finally:
        with anyio.move_on_after(CLOSE_BOUND_S, shield=True):
            await context.close()


async def answers(browser: "Browser", bound_s: float = ANSWER_BOUND_S) -> bool:
    """Whether a new page of a browser answers. If not, the machine is to blame."""
    with anyio.move_on_after(bound_s):
        try:
            context = await _open_context(browser)
            try:
                page = await context.new_page()
                return bool(await page.title() == "")
            finally:
                with anyio.move_on_after(CLOSE_BOUND_S, shield=True):
                    await context.close()
        except (libraries.PlaywrightError, TimeoutError):
            return False
    return False


async def _open_context(browser: "Browser") -> "BrowserContext":
    # Cancelled half-way, Playwright would leave a context that nobody has.
    with anyio.CancelScope(shield=True), anyio.fail_after(OPEN_BOUND_S):
        return await browser.new_context(java_script_enabled=False, offline=True)
    raise RuntimeError("nothing cancels a shielded scope")


async def _matches(page: "Page", selector: str, tree: Any) -> bool:
    await page.evaluate(_BUILD, [tree, _MARK])
    return bool(await page.eval_on_selector_all(selector, _ANY_MARKED, _MARK))


async def _ask(cdp: "CDPSession", place: tuple[float, float] | None) -> Any:
    tree: Mapping[str, Any] = await send(cdp, "Page.getFrameTree")
    asked = {"frameId": tree["frameTree"]["frame"]["id"], "worldName": _WORLD}
    world = await send(cdp, "Page.createIsolatedWorld", asked)
    x, y = place or (None, None)
    answer = await send(
        cdp,
        "Runtime.callFunctionOn",
        {
            "functionDeclaration": _HIT,
            "executionContextId": world["executionContextId"],
            "arguments": [{"value": x}, {"value": y}, {"value": MAX_CHARS}],
            "returnByValue": True,
        },
    )
    return answer["result"].get("value")
