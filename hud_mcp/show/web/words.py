"""What an action does, in words, and what the places in it are called."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hud_mcp.action import ClickAction, DragAction, Targeted, parse_action
from hud_mcp.errors import InvalidAction

__all__ = ["RefNames", "as_text", "describe_action"]

_TEXT_LIMIT = 20_000
"""Characters of one JSON value that somebody else chose, such as a grade's `info`."""
_REF_LINE = re.compile(r"^\s*[-+]?\s*(.+?)(?: \[[^\]]*\])*? \[ref=(\w+)\]", re.MULTILINE)
_CLICKS = {1: "click", 2: "double-click", 3: "triple-click"}


def describe_action(action: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """Say in words what an action does, such as ``type "lamp" into #q, then Enter``.

    Args:
        action: As it is recorded: an action, or a tool's name and arguments.
        names: What refs stand for, such as ``{"e12": 'button "Buy"'}``.
    """
    if isinstance(action.get("tool"), str):
        return f"call {action['tool']} {as_text(action.get('args')) or ''}".strip()
    try:
        parsed = parse_action(action, pointed=False)
    except InvalidAction:
        return as_text(dict(action)) or "nothing"
    words = _WORDS[parsed.type](parsed, {} if names is None else names)
    held = getattr(parsed, "hold_keys", None)
    return f"{words} while holding {'+'.join(held)}" if held else words


class RefNames(Mapping[str, str]):
    """What the refs of the texts that were read so far stand for, such as `button "Buy"`.

    A text is only looked through when a name is wanted: most are never.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._unread: list[str] = []

    def read(self, text: str | None) -> None:
        """Take in a text; one of a whole page replaces what was before it."""
        if text is None or "[ref=" not in text:
            return
        if "Changed since the last text:" not in text:
            self._names.clear()
            self._unread.clear()
        self._unread.append(text)

    def __getitem__(self, ref: str) -> str:
        """The name of what a ref stands for."""
        return self._read_all()[ref]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read_all())

    def __len__(self) -> int:
        return len(self._read_all())

    def _read_all(self) -> dict[str, str]:
        for text in self._unread:
            found = _REF_LINE.findall(text)
            self._names.update({ref: name.removesuffix(":") for name, ref in found})
        self._unread.clear()
        return self._names


def as_text(value: Mapping[str, Any] | Iterable[Any] | None) -> str | None:
    """Somebody's JSON as text, bounded; None where there is nothing in it."""
    if not value:
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        text = "(cannot be written as JSON)"
    if len(text) <= _TEXT_LIMIT:
        return text
    return f"{text[:_TEXT_LIMIT]} … {len(text) - _TEXT_LIMIT} more characters"


def _place(
    action: Targeted, names: Mapping[str, str], *, point: str = "at ", other: str = ""
) -> str:
    if action.point is not None:
        return f" {point}{_number(action.point.x)}, {_number(action.point.y)}"
    if action.ref is not None:
        name = names.get(action.ref)
        return f" {other}ref {action.ref}" + (f" ({name})" if name else "")
    return f" {other}{action.selector}" if action.selector is not None else ""


def _click(action: ClickAction, names: Mapping[str, str]) -> str:
    count = 1 + len(action.pattern or ())
    words = _CLICKS.get(count) or f"click {count} times"
    button = "" if action.button == "left" else f"{action.button} "
    return button + words + _place(action, names)


def _type(action: Any, names: Mapping[str, str]) -> str:
    then = ", then Enter" if action.enter_after else ""
    return f'type "{action.text}"{_place(action, names, other="into ")}{then}'


def _scroll(action: Any, names: Mapping[str, str]) -> str:
    x, y = action.scroll.x, action.scroll.y
    parts = [f"{_number(abs(y))} px {'down' if y > 0 else 'up'}"] if y or not x else []
    parts += [f"{_number(abs(x))} px {'right' if x > 0 else 'left'}"] if x else []
    return f"scroll {' and '.join(parts)}{_place(action, names, other='in ')}"


def _move(action: Any, names: Mapping[str, str]) -> str:
    if action.offset is not None:
        return f"move by {_number(action.offset.x)}, {_number(action.offset.y)}"
    return f"move{_place(action, names, point='to ', other='to ')}"


def _drag(action: DragAction, _names: Mapping[str, str]) -> str:
    first, *between, last = action.path
    through = f" through {len(between)} more" if between else ""
    start, end = (f"{_number(p.x)}, {_number(p.y)}" for p in (first, last))
    return f"drag from {start} to {end}{through}"


_WORDS: dict[str, Callable[[Any, Mapping[str, str]], str]] = {
    "click": _click,
    "press": lambda action, _: f"press {'+'.join(action.keys)}",
    "keydown": lambda action, _: f"hold {'+'.join(action.keys)} down",
    "keyup": lambda action, _: f"let {'+'.join(action.keys)} go",
    "type": _type,
    "scroll": _scroll,
    "move": _move,
    "wait": lambda action, _: f"wait {_number(action.time / 1000)} s",
    "drag": _drag,
    "screenshot": lambda _action, _: "take a screenshot",
    "position": lambda _action, _: "ask where the pointer is",
    "response": lambda action, _: f'answer "{action.text}"',
    "custom": lambda action, _: f"{action.action} {as_text(action.args) or ''}".strip(),
}


def _number(value: float) -> str:
    return f"{round(value, 2):.12g}"
