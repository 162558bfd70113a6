"""Anthropic's browser use: `browser_toolset_20260801`.

Follows https://platform.claude.com/docs/en/agents-and-tools/tool-use/browser-use-tool and the
schemas of its members' inputs in Anthropic's SDK for Python 2.12 (`BetaBrowser…Input`,
`BetaBrowserStateBlockParam`). Each member is a tool of its own, whose `tool_use` has
`toolset_name: "browser"`. Its refs are those of our text; its tabs are numbered from 1, as ours.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hud_mcp.errors import InvalidAction, did_you_mean
from hud_mcp.plugins.models.computer_use.anthropic import (
    POINTED,
    SHARED,
    clicked,
    looked,
    refusal,
    wheel,
)
from hud_mcp.plugins.models.computer_use.frame import (
    Frame,
    Wanted,
    block_of,
    matching_lines,
    picture,
    press,
    take,
)
from hud_mcp.values.action import (
    Action,
    ClickAction,
    CustomAction,
    DragAction,
    MoveAction,
    ScrollAction,
    TypeAction,
)
from hud_mcp.values.observation import Observation
from hud_mcp.values.refs import Named, named_refs

_MISSING = ("left_mouse_down", "left_mouse_up", "new_tab")
"""The members that no world can do."""
_OFF = ("file_upload", "javascript_exec", "read_console", "read_network")
"""The members that the provider offers only on request, and that no world can do."""
_HISTORY = ("back", "forward", "reload")
_NOTCHES = 3
_DONE = {"left_click": "Clicked.", "type": "Typed.", "hover": "Hovered.", "scroll": "Scrolled."}


@dataclass(frozen=True)
class Tab:
    """An open tab; its page has a title and an address."""

    title: str = ""
    url: str = ""
    active: bool = False


def anthropic_browser_tool() -> dict[str, Any]:
    """Return the entry of `tools` that gives a model the browser, without unsupported members."""
    off = {name: {"enabled": False} for name in _MISSING}
    return {"type": "browser_toolset_20260801", "configs": off}


def read_anthropic_browser(
    block: Mapping[str, Any], frame: Frame, *, text: str = "", active_tab: int = 1
) -> Wanted:
    """Read a `tool_use` block of the toolset, with its `name` and `input`.

    `text` is the latest text of the page, which explains each ref. Tabs have numbers from 1.

    Raises:
        InvalidAction: The member is unknown here, or lacks something. Nothing is to be done.
    """
    name = str(block.get("name"))
    given: Mapping[str, Any] = block.get("input") or {}
    reader = _READERS.get(name)
    if reader is None:
        why = " It is not offered here." if name in (*_MISSING, *_OFF) else ""
        raise InvalidAction(
            f"There is no {name!r}.{why or did_you_mean(name, _READERS)} Nothing was done."
        )
    wanted = reader(name, given, _Place(frame, text))
    tab_id = given.get("tab_id")
    if tab_id is None or name in ("switch_tab", "close_tab") or _tab(tab_id) == active_tab:
        return wanted
    shown = (_switch(tab_id), *wanted.actions)
    return Wanted(shown, wanted.shows, wanted.region, wanted.query)


def anthropic_browser_result(
    block: Mapping[str, Any],
    observation: Observation,
    frame: Frame,
    tabs: Sequence[Tab],
    *,
    error: str | None = None,
) -> dict[str, Any]:
    """Return the `tool_result` of a block: what an action showed, or the reason of a refusal.

    `tabs` are those that are open after the action, in order.
    """
    if error is not None:
        return refusal(block, error)
    wanted = read_anthropic_browser(block, frame, text=observation.text or "")
    content: list[dict[str, Any]] = []
    if wanted.shows == "picture" and (shot := picture(observation, frame, wanted)) is not None:
        content.append(block_of(shot))
    elif wanted.shows == "text":
        seen = observation.text or "(empty)"
        shown = seen if wanted.query is None else matching_lines(seen, wanted.query)
        content.append({"type": "text", "text": shown})
    elif wanted.shows == "done":
        content.append({"type": "text", "text": _DONE.get(str(block["name"]), "Done.")})
    shown = [*content, _state(tabs)]
    return {"type": "tool_result", "tool_use_id": block["id"], "content": shown}


def _state(tabs: Sequence[Tab]) -> dict[str, Any]:
    listed: list[dict[str, Any]] = []
    for number, tab in enumerate(tabs, start=1):
        entry: dict[str, Any] = {"tab_id": str(number), "title": tab.title, "url": tab.url}
        listed.append({**entry, "active": True} if tab.active else entry)
    return {"type": "browser_state", "tabs": listed}


@dataclass(frozen=True)
class _Place:
    """The screen, and what its refs are."""

    frame: Frame
    text: str

    def named(self, ref: str) -> Named:
        found = (each for each in named_refs(self.text) if each.ref == ref)
        return next(found, Named(ref, "", frozenset()))

    def at(self, given: Mapping[str, Any], name: str = "target") -> dict[str, Any]:
        target: Any = take(given, name, Mapping)
        if target.get("type") == "ref" and isinstance(target.get("ref"), str):
            return {"ref": target["ref"]}
        return {"point": self.frame.point(target.get("x"), target.get("y"))}


def _tab(tab_id: Any) -> int:
    if not re.fullmatch(r"[1-9]\d{0,3}", str(tab_id)):
        raise InvalidAction(f"There is no tab {tab_id!r}; list_tabs shows their ids.")
    return int(tab_id)


def _switch(tab_id: Any) -> Action:
    return CustomAction(action="switch_tab", args={"index": _tab(tab_id)})


def _navigate(_name: str, given: Mapping[str, Any], _place: _Place) -> Wanted:
    url: str = take(given, "url", str)
    if url in _HISTORY:
        return Wanted((CustomAction(action=url),))
    return Wanted((CustomAction(action="goto", args={"url": url}),))


def _click(name: str, given: Mapping[str, Any], place: _Place) -> Wanted:
    return clicked(name, place.at(given), given.get("modifiers"))


def _move(_name: str, given: Mapping[str, Any], place: _Place) -> Wanted:
    return Wanted((MoveAction(**place.at(given)),))


def _drag(_name: str, given: Mapping[str, Any], place: _Place) -> Wanted:
    ends = [place.at(given, name).get("point") for name in ("from", "target")]
    if None in ends:
        raise InvalidAction("left_click_drag needs two coordinates.")
    return Wanted((DragAction(path=tuple(end for end in ends if end is not None)),))


def _scroll(_name: str, given: Mapping[str, Any], place: _Place) -> Wanted:
    far = wheel(given, given.get("scroll_amount") or _NOTCHES)
    return Wanted((ScrollAction(**place.at(given), scroll=far),))


def _press(_name: str, given: Mapping[str, Any], _place: _Place) -> Wanted:
    chords = take(given, "text", str).split() or [" "]
    times: Any = given.get("repeat") or 1
    once = tuple(action for chord in chords for action in press(chord))
    if not isinstance(times, int) or not 1 <= times * len(once) <= 50:  # noqa: PLR2004  # a step's
        raise InvalidAction("One step cannot press so many keys.")
    return Wanted(once * times)


def _fill(_name: str, given: Mapping[str, Any], place: _Place) -> Wanted:
    """Set a field: by what the text says that it is, as a select, a checkbox or a text."""
    target: Any = take(given, "target", Mapping)
    ref, value = target.get("ref"), given.get("value")
    if not isinstance(ref, str):
        raise InvalidAction("form_input needs the ref of an element.")
    named = place.named(ref)
    if isinstance(value, bool):
        is_checked = "checked" in named.states
        return Wanted(() if is_checked is value else (ClickAction(ref=ref),))
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if named.name.startswith(("combobox", "listbox")):
        chosen = {"ref": ref, "values": [text]}
        return Wanted((CustomAction(action="select_option", args=chosen),))
    return Wanted((TypeAction(ref=ref, text=text),))


def _close_tab(_name: str, given: Mapping[str, Any], _place: _Place) -> Wanted:
    shown = _switch(given.get("tab_id"))
    return Wanted((shown, CustomAction(action="close_tab")), "tabs")


_READERS: Mapping[str, Callable[[str, Mapping[str, Any], _Place], Wanted]] = {
    **SHARED,
    "navigate": _navigate,
    **dict.fromkeys(POINTED, _click),
    **dict.fromkeys(("hover", "mouse_move", "scroll_to"), _move),
    "left_click_drag": _drag,
    "scroll": _scroll,
    "key": _press,
    "form_input": _fill,
    **dict.fromkeys(
        ("read_page", "get_page_text"), lambda _name, _given, _place: Wanted(shows="text")
    ),
    "find": lambda _name, given, _place: Wanted(shows="text", query=take(given, "query", str)),
    "zoom": lambda _name, given, place: looked(place.frame.box(given.get("region"))),
    "list_tabs": lambda _name, _given, _place: Wanted(shows="tabs"),
    "switch_tab": lambda _name, given, _place: Wanted((_switch(given.get("tab_id")),), "tabs"),
    "close_tab": _close_tab,
}
