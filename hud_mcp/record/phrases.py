"""The steps of a record in words, for all that show a record."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hud_mcp.base.text import clip_json
from hud_mcp.errors import InvalidAction
from hud_mcp.values.action import Action, parse_action

_REF_LINE = re.compile(r"^\s*[-+]?\s*(.+?)(?: \[[^\]]*\])*? \[ref=(\w+)\]", re.MULTILINE)

_LOOKS = ("screenshot", "step")
"""Kinds of steps that only look where they have no action."""


def read_action(recorded: Mapping[str, Any]) -> Action | None:
    """Read a recorded action; None for a tool's call, and for a form that no class reads."""
    try:
        return parse_action(recorded, pointed=False)
    except InvalidAction:
        return None


def describe_action(recorded: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """Say in words what an action does, such as ``type "lamp" into #q, then Enter``.

    `recorded` may also be a tool's name and arguments; anything else is shown unchanged. `names`
    has the elements that refs stand for, such as ``{"e12": 'button "Buy"'}``.
    """
    if isinstance(recorded.get("tool"), str):
        return f"call {recorded['tool']} {clip_json(recorded.get('args')) or ''}".strip()
    action = read_action(recorded)
    if action is None:
        return clip_json(dict(recorded)) or "nothing"
    return action.words({} if names is None else names)


def note_of(recorded: Mapping[str, Any]) -> str | None:
    """Return the agent's note beside an action, or None."""
    action = read_action(recorded)
    return None if action is None else action.note


def describe_step(kind: str, actions: Sequence[str]) -> str:
    """Say in one line what a step did, from its actions in words."""
    nothing = "look" if kind in _LOOKS else f"{kind} without an action"
    return "; ".join(actions) or nothing


class RefNames(Mapping[str, str]):
    """The elements behind the refs of the texts read so far, such as `button "Buy"`.

    A text is only looked through when a name is wanted: most are never.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._unread: list[str] = []

    def read(self, text: str | None) -> None:
        """Add a text; a whole page's text replaces the earlier ones."""
        if text is None or "[ref=" not in text:
            return
        if "Changed since the last text:" not in text:
            self._names.clear()
            self._unread.clear()
        self._unread.append(text)

    def __getitem__(self, ref: str) -> str:
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
