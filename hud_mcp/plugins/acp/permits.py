"""Answers to an agent that asks before it calls a tool."""

import os
import re

import anyio

from hud_mcp.agents.kind import Workplace
from hud_mcp.agents.programs import SERVER
from hud_mcp.base.text import clip
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.acp.connection import Json

__all__ = ["Permits", "Person"]

_NAMED = tuple(
    re.compile(form.replace("SERVER", re.escape(SERVER)))
    for form in (
        r"mcp__SERVER__(\w+)",  # Claude Code
        r"mcp[.:]SERVER[./](\w+)",  # Codex
        r"(\w+) \(SERVER MCP Server\)",  # Gemini CLI
        r"SERVER_(\w+)",  # OpenCode
        r"SERVER[/.:](\w+)",
    )
)
"""The forms of a tool's name of ours: a text that only holds such a name may be a command."""
_OWN_KINDS = frozenset({"edit", "delete", "move"})
"""Kinds of an agent's own tools, whose title may be a path. Codex calls all tools `execute`."""


class Permits:
    """The policy of one run: each call is allowed once, or refused.

    Args:
        policy: `session` allows the session's own tools alone; `all`, `none`, or `ask` a person.
        person: That person.

    Attributes:
        tools: The names of the session's own tools.
    """

    def __init__(self, policy: str, person: "Person | None") -> None:
        self.tools: frozenset[str] = frozenset()
        self._policy = policy
        self._person = person

    async def answer(self, call: Json, options: list[Json]) -> tuple[Json, str]:
        """Return the outcome of a request, and a line about it for the record.

        No option is chosen that holds for later calls: each call is asked for anew.
        """
        title = clip(str(call.get("title")), 300)
        allows = self._policy == "all" or (self._policy == "session" and self._is_own(call))
        if self._person is not None:
            allows = await self._person.allows(title)
        wanted = "allow_once" if allows else "reject_once"
        chosen = next((each for each in options if each.get("kind") == wanted), None)
        said = f"{title} ({call.get('toolCallId')}): {'allowed' if allows else 'refused'}"
        if chosen is None or not isinstance(chosen.get("optionId"), str):
            return {"outcome": "cancelled"}, f"{said}, but {wanted} was not offered"
        return {"outcome": "selected", "optionId": chosen["optionId"]}, f"{said} (--permit)"

    async def allows(self, line: str) -> bool:
        """Whether a change by the session's own shell may be made."""
        return self._person is None or await self._person.allows(line)

    def _is_own(self, call: Json) -> bool:
        """Whether a call is one of a tool of the session."""
        title = call.get("title")
        if call.get("kind") in _OWN_KINDS or not isinstance(title, str):
            return False
        matches = (form.fullmatch(title) for form in _NAMED)
        return any(found is not None and found[1] in self.tools for found in matches)


class Person:
    """A person at the terminal, who is asked one thing at a time.

    Raises:
        HudMcpError: No terminal is there.
    """

    def __init__(self, place: Workplace) -> None:
        if not os.isatty(0):
            raise HudMcpError(
                "--permit ask asks a person, and standard input is no terminal. Give --permit "
                "session, all or none."
            )
        self._note = place.note
        self._turn = anyio.Lock()

    async def allows(self, title: str) -> bool:
        """Ask whether a call may be made; only `y` and `yes` allow it."""
        async with self._turn:
            self._note(f"The agent asks to call {title!r}. Type y to allow it once: ")
            await anyio.wait_readable(0)
            said = os.read(0, 1024).decode(errors="replace")
        return said.strip().lower() in ("y", "yes")
