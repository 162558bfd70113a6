"""The target of an action: a point, a ref of the last text, or a selector, turned into a place.

Playwright's own click waits for two frames, scrolls, hit-tests and retries through its
driver, 49 ms each time. Here one script in the page does the same checks, and leaves a guard
there. A script may move something meanwhile, so that another element would get the press. The
guard keeps such a press from the page, and `aimed` tries again.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio

from hud_mcp.base.text import clip_repr
from hud_mcp.errors import ActionFailed
from hud_mcp.values.action import Point
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_elsewhere, is_end
from hud_mcp.worlds.browser.driver import TARGET, TRACKER
from hud_mcp.worlds.browser.tab import Tab

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

__all__ = [
    "DISARM",
    "Place",
    "aimed",
    "check_place_takes",
    "check_point",
    "check_takes",
    "disarm",
    "find_element",
    "focused_element",
    "middle_in_view",
    "takes_keys",
]


_CLICK = "Click it instead."
_HINTS = {
    "color": "Write it as '#ff8800'.",
    "date": "Write it as '2026-01-31'.",
    "datetime-local": "Write it as '2026-01-31T14:05'.",
    "file": "No file can be given here: go on without one.",
    "month": "Write it as '2026-01'.",
    "number": "Write a number such as '7' or '2.5'.",
    "range": "Write a number within its bounds, on one of its steps.",
    "select": "Use the custom action select_option.",
    "time": "Write it as '14:05'.",
    "week": "Write it as '2026-W05'.",
}

_BY_KEYS = frozenset({"text", "search", "url", "tel", "email", "password", "number", "words"})
"""The kinds of fields that take any text by keys, or a number."""

_ASK = Path(__file__).with_name("field.js").read_text()

_AT_PLACE = Path(__file__).with_name("at_place.js").read_text()


async def check_takes(element: "ElementHandle", text: str) -> None:
    """Check that a field takes a text, without changing it.

    Raises:
        ActionFailed: It drops or changes this text, or takes none. The error says what it takes.
    """
    found = await _ask(element, text)
    if found["refuses"]:
        kind = found["kind"]
        raise ActionFailed(
            f"A field of type {kind!r} does not take {clip_repr(text, 80)}, and is as it was. "
            f"{_HINTS.get(kind, _CLICK)}"
        )
    if found["fixed"]:
        raise ActionFailed("The field is not editable: it takes no text now.")


async def check_place_takes(page: "Page", x: float, y: float, text: str) -> None:
    """Check that the field at a place takes a text. Another element there takes any.

    Raises:
        ActionFailed: The reasons of `check_takes`.
    """
    handle = await page.evaluate_handle(_AT_PLACE, [x, y, TRACKER])
    if (element := handle.as_element()) is not None:
        await check_takes(element, text)


async def takes_keys(element: "ElementHandle", text: str) -> bool:
    """Whether keys write this text into an element, as from a person."""
    found = await _ask(element, text)
    return found["kind"] in _BY_KEYS and not (found["refuses"] or found["fixed"] or found["barred"])


async def _ask(element: "ElementHandle", text: str) -> Any:
    return await element.evaluate(_ASK, text)


_CAPTURES = re.compile(r"(^|>>)\s*\*")
"""The mark of a selector in which a part before its end names the element."""

REACH_BOUND_S = 2.0
"""The longest wait for a covered, disabled or moving element before the action fails."""

AIM_BOUND_S = 5.0
"""The time for which presses are tried again that another element would get."""

MIN_AIMS = 3
"""The fewest tries. On a busy machine one may take all of that time."""

DISARM_BOUND_S = 2.0
"""The longest wait for a page to say what a press met. A page that hangs says nothing."""

DISARM = f"() => window['{TRACKER}'] ? window['{TRACKER}'].disarm() : null"

_PLACE = Path(__file__).with_name("place.js").read_text()

_PLACE_SHOWN = f"""options => {{
  const tracker = window['{TRACKER}'], shown = tracker && tracker.take();
  return shown && ({_PLACE})(shown, options);
}}"""

_FOCUSED = Path(__file__).with_name("focused.js").read_text()

_PROBLEMS = {
    "gone": "is no longer on the page. Look again.",
    "invisible": "is not visible. Open or scroll to what holds it first.",
    "disabled": "is disabled. Do what the page asks for first.",
    "outside": "cannot be scrolled into view.",
}


@dataclass(frozen=True)
class Place:
    """A place on the page, in CSS pixels of the viewport.

    Attributes:
        scrolled: Whether it was out of view before.
        moves: Whether it did not stand still.
        name: The element there, in words.
        frame: The document whose guard watches it; None for the page's own.
    """

    x: float
    y: float
    scrolled: bool = False
    moves: bool = False
    name: str = ""
    frame: "Frame | None" = None


def check_point(page: "Page", point: Point) -> Place:
    """Return a point as a place.

    Raises:
        ActionFailed: It is outside the viewport.
    """
    size = page.viewport_size or {"width": 0, "height": 0}
    # No numbers: the agent counts in pixels of its picture, which may be scaled.
    beyond = [
        f"{axis} is beyond the {edge} edge of the page"
        for axis, edge, is_beyond in (
            ("x", "left", point.x < 0),
            ("x", "right", point.x >= size["width"]),
            ("y", "top", point.y < 0),
            ("y", "bottom", point.y >= size["height"]),
        )
        if is_beyond
    ]
    if beyond:
        raise ActionFailed(
            f"{' and '.join(beyond)}. x goes from 0 to the picture's width, y from 0 to its "
            "height. Scroll, and take a new screenshot."
        )
    return Place(point.x, point.y)


async def find_element(tab: Tab, ref: str | None, selector: str | None) -> "ElementHandle":
    """Return the one element that a ref or a selector names.

    Raises:
        ActionFailed: No element matches, or several do.
    """
    try:
        found = await tab.page.query_selector_all(_engine(tab, ref, selector))
    except libraries.PlaywrightError as exc:
        if is_end(exc):
            raise
        if is_elsewhere(exc):
            raise ActionFailed("The page opened another document. Look again.") from exc
        if ref is not None:
            found: list[ElementHandle] = []
        else:
            reason = exc.message.partition(": ")[2] or exc.message
            raise ActionFailed(f"{selector!r} is not a selector: {reason}") from exc
    if len(found) == 1:
        return found[0]
    if ref is not None:
        raise ActionFailed(
            f"There is no {ref!r} on the page as you last saw it. Look again, and use a ref "
            "of the new text."
        )
    if not found:
        raise ActionFailed(
            f"{selector!r} matches nothing on the page. Look again, or use a ref of the text."
        )
    raise ActionFailed(
        f"{selector!r} matches {len(found)} elements, and one is needed. Add `>> nth=0` for "
        "the first, or use a ref of the text."
    )


async def middle_in_view(page: "Page", element: "ElementHandle") -> Point | None:
    """Return an element's middle in CSS pixels of the viewport; None if it is out of view."""
    box = await element.bounding_box()
    size = page.viewport_size
    if box is None or size is None:
        return None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    inside = 0 <= x < size["width"] and 0 <= y < size["height"]
    return Point(x=x, y=y) if inside else None


async def focused_element(frame: "Frame") -> "ElementHandle | None":
    """Return the focused element, in frames of the same origin too; None for the page itself."""
    handle = await frame.evaluate_handle(_FOCUSED, TRACKER)
    return handle.as_element()


async def aimed(
    tab: Tab,
    ref: str | None,
    selector: str | None,
    send: Callable[[Place], Awaitable[None]],
    *,
    kind: Literal["press", "hover"] = "press",
) -> Place:
    """Scroll the target of a ref or a selector into view, and send something to it.

    The page may move meanwhile, so that another element would get a press. Such a press is kept
    from the page, and sent again to the target's new place. So a target that never stands still
    is hit in motion.

    Args:
        tab: The page.
        ref: The target's ref, or None.
        selector: The target's selector, or None.
        send: The function that moves the pointer to a place, or presses there.
        kind: The kind of `send`.

    Returns:
        The place of the target at the successful try.

    Raises:
        ActionFailed: No element matches, or several do. Or the target is covered, disabled or
            invisible for `REACH_BOUND_S`, or gets no press in `AIM_BOUND_S`. Nothing was pressed.
    """
    reach_s = REACH_BOUND_S
    end = anyio.current_time() + AIM_BOUND_S * tab.patience()
    attempts = 0
    while True:
        place = await _place_of(tab, ref, selector, kind, reach_s)
        other: str | None = None
        try:
            await send(place)
        finally:
            other = await disarm(tab, place.frame)
        if not other:
            return place
        attempts += 1
        reach_s = 0 if place.moves else REACH_BOUND_S  # to wait for it once is enough
        if anyio.current_time() > end and attempts >= MIN_AIMS:
            done = (
                "Nothing was pressed. Press tab until it has the focus, then enter."
                if kind == "press"
                else "The pointer is not on it. Scroll or move at a point of the picture."
            )
            raise ActionFailed(
                f"{ref or selector!r} ({place.name}) does not stay under the pointer: {other} "
                f"covers it each time. {done}"
            )


async def disarm(tab: Tab, frame: "Frame | None" = None) -> str | None:
    """Remove the guard that an action set, and return what got in its way, or None.

    Args:
        tab: The page.
        frame: The document that has the guard; None for the page's own.
    """
    said: Any = None
    with anyio.move_on_after(DISARM_BOUND_S * tab.patience(), shield=True):
        try:
            said = await (frame or tab.page.main_frame).evaluate(DISARM)
        except libraries.PlaywrightError:
            return None  # its document went away: what was sent had an effect
    return said if isinstance(said, str) else None


async def _place_of(
    tab: Tab, ref: str | None, selector: str | None, kind: str, reach_s: float
) -> Place:
    called = repr(ref or selector)
    found: tuple[dict[str, Any], Frame | None] | None = None
    with anyio.move_on_after((REACH_BOUND_S + 1.5) * tab.patience()):
        found = await _ask_for_place(tab, ref, selector, kind, reach_s)
    if found is None:
        raise ActionFailed(f"The page did not report where {called} is. Wait, and try again.")
    answer, frame = found
    name = str(answer.get("name", "an element"))
    problem = answer.get("problem")
    if problem is None:
        scrolled = bool(answer.get("scrolled"))
        moves = bool(answer.get("moving"))
        return Place(answer["x"], answer["y"], scrolled, moves, name, frame)
    text = _PROBLEMS.get(problem) or f"is covered by {answer.get('by')}. Close that first."
    raise ActionFailed(f"{called} ({name}) {text}")


async def _ask_for_place(
    tab: Tab, ref: str | None, selector: str | None, kind: str, reach_s: float
) -> "tuple[dict[str, Any], Frame | None]":
    options = [TRACKER, reach_s * 1000 * tab.patience(), kind]
    engine, found = _engine(tab, ref, selector), None
    try:  # without a handle, for what is one element of the page's own document
        shown = tab.page.locator(f"{engine} >> {TARGET}={TRACKER}")
        if not _CAPTURES.search(engine) and await shown.count() == 1:
            found = await tab.page.evaluate(_PLACE_SHOWN, options)
    except libraries.PlaywrightError:
        found = None
    if isinstance(found, dict) and not found.get("foreign"):  # pyright: ignore[reportUnknownMemberType]
        return found, None  # pyright: ignore[reportUnknownVariableType]  # JSON
    element = await find_element(tab, ref, selector)
    answer: dict[str, Any] = await element.evaluate(_PLACE, options)
    frame = await element.owner_frame()
    return (await _place_abroad(element, answer) if answer.get("foreign") else answer), frame


async def _place_abroad(element: "ElementHandle", found: dict[str, Any]) -> dict[str, Any]:
    """Return the place of an element in a frame of another site."""
    box = await element.bounding_box()
    if box is None:
        return {**found, "problem": "invisible"}
    return {**found, "x": box["x"] + found["dx"], "y": box["y"] + found["dy"]}


def _engine(tab: Tab, ref: str | None, selector: str | None) -> str:
    """Return the selector for Playwright, with a ref's wrapping removed, such as `[ref=e12]`."""
    if ref is None:
        return selector or ""
    name = ref.strip().strip("[]@ ").removeprefix("ref=").strip()
    if name in tab.links:
        return tab.links[name]
    if tab.refs is not None:
        name = tab.refs.find(name) or "none"
    return f"aria-ref={name}"
