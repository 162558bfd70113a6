"""An agent's handle on the one task that it works on.

It knows tools by name and nothing of how they are reached, so that an oracle, a script
and a model drive a task through exactly what any client has.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import orjson

from hud_mcp.action import Action
from hud_mcp.core_tools import ACT, RESPONSE, SCREENSHOT, STEP
from hud_mcp.errors import ActionFailed, HudMcpError

__all__ = ["Agent", "ToolCaller", "ToolReply", "View"]


class ToolReply(Protocol):
    """What a tool gave back."""

    @property
    def text(self) -> str:
        """All its text."""
        ...

    @property
    def image(self) -> bytes | None:
        """Its picture, encoded, or None."""
        ...

    @property
    def is_error(self) -> bool:
        """Whether the text says what went wrong."""
        ...

    @property
    def meta(self) -> Mapping[str, Any]:
        """What came beside the content."""
        ...


class View(Protocol):
    """What a step showed: its text and its picture."""

    @property
    def text(self) -> str:
        """The observation in words."""
        ...

    @property
    def image(self) -> bytes | None:
        """The picture, encoded, or None."""
        ...


ToolCaller = Callable[[str, dict[str, Any]], Awaitable[ToolReply]]
"""Calls a tool by name."""


class Agent:
    """Works on one task.

    Args:
        call_tool: Calls a tool of the server.
        session: The id of the task's session.
        prompt: What the task asks.

    Attributes:
        text: What the last call on the world showed.
        steps: How many calls on the world there were.
        answered: Whether an answer was submitted.
        lines: What the agent has said of its work, for the task's record.
    """

    def __init__(self, call_tool: ToolCaller, *, session: str, prompt: str) -> None:
        self._call_tool = call_tool
        self.session = session
        self.prompt = prompt
        self.text = ""
        self.steps = 0
        self.answered = False
        self.lines: list[str] = []

    def log(self, line: str) -> None:
        """Add a line to the task's record; no agent reads it."""
        self.lines.append(line)

    async def step(self, *actions: Action | Mapping[str, Any]) -> View:
        """Perform actions in order, and return what the agent sees then; none only looks.

        Raises:
            ActionFailed: One was refused; the text says which, and what is true now.
        """
        reply = await self._call(STEP, {"actions": [_dump(a) for a in actions]})
        self.steps += 1
        self.text = reply.text
        return reply

    async def look(self) -> str:
        """Return the current observation's text."""
        return (await self.step()).text

    async def act(self, action: Action | Mapping[str, Any]) -> str:
        """Perform one action and return the text that follows, without a picture.

        Raises:
            ActionFailed: It was refused.
        """
        reply = await self._call(ACT, _dump(action))
        self.steps += 1
        self.text = reply.text
        return reply.text

    async def screenshot(self) -> bytes:
        """Return the picture of the screen, encoded.

        Raises:
            ActionFailed: The world has no screen.
        """
        reply = await self._call(SCREENSHOT, {})
        return reply.image or b""

    async def tool(self, name: str, **arguments: Any) -> str:
        """Call a tool of the environment's own and return its text.

        Raises:
            ActionFailed: It is unknown or failed.
        """
        return (await self._call(name, arguments)).text

    async def respond(self, answer: Any) -> str:
        """Submit the final answer, and return what the server says of it.

        Args:
            answer: Text as it is; anything else as JSON.
        """
        reply = await self._call(RESPONSE, {"answer": answer_text(answer)})
        self.answered = True
        return reply.text

    async def click(self, selector: str | None = None, **target: Any) -> View:
        """Click a selector, or `ref=`, or `x=` and `y=`."""
        return await self.step({"type": "click", "selector": selector, **target})

    async def type(
        self, text: str, selector: str | None = None, *, enter: bool = False, **target: Any
    ) -> View:
        """Type into a selector or `ref=`, or where the focus is; `enter` presses Enter after."""
        action = {"type": "type", "text": text, "enter_after": enter, "selector": selector}
        return await self.step({**action, **target})

    async def press(self, *keys: str) -> View:
        """Press a key, or several at once."""
        return await self.step({"type": "press", "keys": list(keys)})

    async def custom(self, action: str, **args: Any) -> View:
        """Perform an action of the world's own, such as `goto` or `select_option`."""
        return await self.step({"type": "custom", "action": action, "args": args})

    def ref(self, wanted: str, *, nth: int = 0) -> str:
        """Return the ref of a line in the last text, such as ``button "Add to cart"``.

        Args:
            wanted: Part of the line, as the accessibility text writes it.
            nth: Which one, where several lines have it.

        Raises:
            ActionFailed: No such line has a ref.
        """
        lines = [line for line in self.text.splitlines() if wanted in line]
        refs = [m[1] for line in lines if (m := re.search(r"\[ref=(\w+)\]", line))]
        if nth >= len(refs):
            raise ActionFailed(f"Nothing with {wanted!r} and a ref is in view:\n{self.text[:2000]}")
        return refs[nth]

    async def ask(self, name: str, arguments: Mapping[str, Any]) -> ToolReply:
        """Call a tool, and return its reply as it is: a refusal too, which raises nothing.

        Args:
            name: Any tool's.
            arguments: As they are; `session` is added where it is missing.
        """
        return await self._call_tool(name, {"session": self.session, **arguments})

    async def _call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        reply = await self._call_tool(name, {**arguments, "session": self.session})
        if reply.is_error:
            raise ActionFailed(reply.text)
        return reply


def answer_text(answer: Any) -> str:
    """An answer as the `response` tool takes it."""
    if isinstance(answer, str):
        return answer
    try:
        return orjson.dumps(answer).decode()
    except TypeError as exc:
        raise HudMcpError(f"An answer is text or JSON: {exc}.") from None


def _dump(action: Action | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(action, Mapping):
        return {k: v for k, v in action.items() if v is not None}
    return action.model_dump(mode="json", exclude_none=True)
