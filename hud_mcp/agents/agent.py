"""An agent's handle on the one task that it works on. It knows tools by name.

An oracle, a script and a model drive a task through it, as any client does.
"""

import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import orjson

from hud_mcp.base.contention import Pauses
from hud_mcp.errors import ActionFailed, HudMcpError
from hud_mcp.values.action import Action
from hud_mcp.values.call import (
    ACT,
    MESSAGE_USER,
    OWN_SESSION,
    RESPONSE,
    SCREENSHOT,
    STEP,
    TASK_STATUS,
)
from hud_mcp.values.model_turn import MODEL, ModelTurn
from hud_mcp.values.refs import find_ref

__all__ = ["Agent"]


class BoundReached(HudMcpError):
    """The agent has reached a bound, which the text names: ``at $0.50 (--max-cost)``.

    This is its result. An answer that it has given counts.
    """


class OperatorFailed(HudMcpError):
    """Something that the agent works with was refused. Its operator has to mend that.

    The run says nothing of the agent, and `--resume` runs it again.
    """


class JobHalted(OperatorFailed):
    """Every other run of the job would fail in the same way, so no other one begins."""


class MachineFailed(HudMcpError):
    """This program failed while it let a model work. The run says nothing of the model."""


_MOST_TURNS = 100
"""The most model turns that go with one call."""


@dataclass(frozen=True)
class Reply:
    """The result of a tool, as an agent sees it.

    Attributes:
        text: All its text.
        image: Its picture, encoded, or None.
        is_error: Whether the text says what went wrong.
        meta: The metadata beside the content.
        structured: The content for programs; empty if there is nothing.
    """

    text: str
    image: bytes | None = None
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    structured: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of_wire(cls, result: Mapping[str, Any]) -> Self:
        """Read a tool's result in its wire form."""
        texts: list[str] = []
        image: bytes | None = None
        for part in result.get("content", ()):
            if part["type"] == "text":
                texts.append(part["text"])
            elif part["type"] == "image" and image is None:
                image = base64.b64decode(part["data"])
        return cls(
            text="\n".join(texts),
            image=image,
            is_error=bool(result.get("isError")),
            meta=result.get("_meta") or {},
            structured=result.get("structuredContent") or {},
        )

    @classmethod
    def of(cls, result: Any) -> Self:
        """Read a tool's result of the MCP SDK."""
        return cls.of_wire(result.model_dump(by_alias=True))

    @property
    def error_kind(self) -> str | None:
        """The name of the error that the server raised; None if it names none."""
        return self.meta.get("hud-mcp/error")


class ToolCaller(Protocol):
    """A function that calls a tool by name."""

    def __call__(
        self, name: str, arguments: dict[str, Any], *, meta: Mapping[str, Any] | None = None
    ) -> Awaitable[Reply]:
        """Call the tool; `meta` is given only if something goes with the call."""
        ...


async def _forget(_turn: ModelTurn) -> None:
    """Record nothing: the agent works without a store."""


Recorder = Callable[[ModelTurn], Awaitable[int | None]]
"""Records a turn in the task's session; it returns the turn's number once this is durable."""


class Agent:
    """The handle with which an agent works on one task.

    Args:
        call_tool: A function that calls a tool of the server.
        session: The id of the task's session.
        prompt: The prompt of the task.

    Attributes:
        text: The text that the last call on the world showed.
        steps: The number of calls on the world.
        answered: Whether an answer was submitted.
        lines: The agent's log lines, for the task's record.
        turns: Reported model turns that no call has carried yet.
        meta: Metadata for each call of a tool.
        record: Records a turn that was seen on its way, before anybody reads it.
        started: The reply of start_task: the prompt, the answer's schema, the screen's size.
        pauses: The time that the agent waited for somebody else. It does not count as the agent's
            time.
    """

    def __init__(
        self,
        call_tool: ToolCaller,
        *,
        session: str,
        prompt: str,
        started: Mapping[str, Any] | None = None,
    ) -> None:
        self._call_tool = call_tool
        self.session = session
        self.prompt = prompt
        self.text = ""
        self.steps = 0
        self.answered = False
        self.lines: list[str] = []
        self.started: Mapping[str, Any] = started or {}
        self.pauses = Pauses()
        self.turns: list[ModelTurn] = []
        self.meta: dict[str, Any] = {}
        self.record: Recorder = _forget
        self._asked_s: float | None = None
        self._heard = False

    def report(self, turn: ModelTurn) -> None:
        """Report a model's reply, before the calls that it asks for; no agent reads it.

        The next call of a tool carries it, and its step then owns it. Turns that no call carries
        are recorded at the end of the agent's work.
        """
        self.turns.append(turn)

    def asks(self) -> None:
        """Mark that a request to the model's provider begins now."""
        if self._asked_s is None:
            self._asked_s = time.monotonic()

    def heard(self) -> None:
        """Mark that the provider has replied."""
        self._heard = True

    @property
    def silence_s(self) -> float:
        """The time since the model's provider was first asked; 0 once it has replied.

        A provider that has replied once works: later time is the model's own.
        """
        return 0.0 if self._heard or self._asked_s is None else time.monotonic() - self._asked_s

    def note_answered(self, *, answered: bool = True) -> None:
        """Note that an answer was submitted, if one was."""
        self.answered = self.answered or answered

    def take_turns(self) -> list[ModelTurn]:
        """Return and forget the reported model turns that no call has carried."""
        turns, self.turns = self.turns, []
        return turns

    def log(self, line: str) -> None:
        """Add a line to the task's record; no agent reads it."""
        self.lines.append(line)

    async def step(self, *actions: Action | Mapping[str, Any]) -> Reply:
        """Perform actions in order, and return the observation; without actions, only look.

        Raises:
            ActionFailed: The world refused an action; the text says which, and describes the
                present state.
        """
        reply = await self._call(STEP, {"actions": [_dump(a) for a in actions]})
        self.steps += 1
        self.text = reply.text
        return reply

    async def is_open(self) -> bool:
        """Return whether the session waits for an answer; its status is no step."""
        return (await self.ask(TASK_STATUS, {})).structured.get("state") in ("open", "starting")

    async def look(self) -> str:
        """Return the current observation's text."""
        return (await self.step()).text

    async def act(self, action: Action | Mapping[str, Any]) -> str:
        """Perform one action, and return the text of the observation, without a picture.

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
        """Call one of the environment's own tools, and return its text.

        Raises:
            ActionFailed: It is unknown or failed.
        """
        return (await self._call(name, arguments)).text

    async def call(self, name: str, /, **arguments: Any) -> Reply:
        """Call one of the environment's own tools, and return its reply. An error raises nothing.

        Args:
            name: The tool's name.
            arguments: All its arguments; one may be named `session`.
        """
        return await self._send(name, {**arguments, OWN_SESSION: self.session})

    async def respond(self, answer: Any) -> str:
        """Submit the final answer, and return the server's reply.

        Args:
            answer: Text is sent unchanged, anything else as JSON.
        """
        reply = await self._call(RESPONSE, {"answer": answer_text(answer)})
        self.answered = True
        return reply.text

    async def say(self, text: str) -> Reply:
        """Say something to the task's user; the reply has their words.

        `answered` is True once the conversation has ended with the task's grade.
        """
        reply = await self._call(MESSAGE_USER, {"text": text})
        self.note_answered(answered=reply.structured.get("state") != "open")
        return reply

    async def click(self, selector: str | None = None, **target: Any) -> Reply:
        """Click a selector, or `ref=`, or `x=` and `y=`."""
        return await self.step({"type": "click", "selector": selector, **target})

    async def type(
        self, text: str, selector: str | None = None, *, enter: bool = False, **target: Any
    ) -> Reply:
        """Type into a selector or `ref=`, or where the focus is; `enter` presses Enter after."""
        action = {"type": "type", "text": text, "enter_after": enter, "selector": selector}
        return await self.step({**action, **target})

    async def press(self, *keys: str) -> Reply:
        """Press a key, or several at once."""
        return await self.step({"type": "press", "keys": list(keys)})

    async def custom(self, action: str, **args: Any) -> Reply:
        """Perform one of the world's own actions, such as `goto` or `select_option`."""
        return await self.step({"type": "custom", "action": action, "args": args})

    def ref(self, wanted: str, *, nth: int = 0) -> str:
        """Return the ref of a line in the last text, such as ``button "Add to cart"``.

        Args:
            wanted: Part of its line, as the text writes it. The ref is that behind these words.
            nth: Which one, if several elements match.

        Raises:
            ActionFailed: No such element has a ref.
        """
        ref = find_ref(self.text, wanted, nth)
        if ref is None:
            raise ActionFailed(
                f"The observation has no element with {wanted!r} and a ref:\n{self.text[:2000]}"
            )
        return ref

    async def ask(self, name: str, arguments: Mapping[str, Any]) -> Reply:
        """Call a tool, and return its reply unchanged. A refusal raises nothing.

        Args:
            name: Any tool's.
            arguments: Sent unchanged; a missing `session` is added.
        """
        # A tool with a `session` of its own is told ours by the other name.
        named = {} if OWN_SESSION in arguments else {"session": self.session}
        return await self._send(name, {**named, **arguments})

    async def _call(self, name: str, arguments: dict[str, Any]) -> Reply:
        reply = await self._send(name, {**arguments, "session": self.session})
        if reply.is_error:
            raise ActionFailed(reply.text)
        return reply

    async def _send(self, name: str, arguments: dict[str, Any]) -> Reply:
        """Call a tool, with the model turns that were reported since the last call."""
        if not self.turns and not self.meta:
            return await self._call_tool(name, arguments)
        turns, self.turns = self.turns[:_MOST_TURNS], self.turns[_MOST_TURNS:]
        meta = {**self.meta, **(turns_meta(turns) if turns else {})}
        return await self._call_tool(name, arguments, meta=meta)


def turns_meta(turns: Sequence[ModelTurn]) -> dict[str, Any]:
    """Return the `_meta` of a call that reports the model turns before it."""
    dumped = [turn.model_dump(mode="json", exclude_defaults=True) for turn in turns]
    return {MODEL: dumped[0] if len(dumped) == 1 else dumped}


def answer_text(answer: Any) -> str:
    """Return an answer as the `response` tool takes it."""
    if isinstance(answer, str):
        return answer
    try:
        return orjson.dumps(answer).decode()
    except TypeError as exc:
        raise HudMcpError(f"An answer must be text or JSON: {exc}.") from None


def _dump(action: Action | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(action, Mapping):
        return {k: v for k, v in action.items() if v is not None}
    return action.model_dump(mode="json", exclude_none=True)
