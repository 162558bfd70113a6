"""An agent's tools straight on a world, without a server between."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from waiting import PATIENCE_S

from hud_mcp import Look
from hud_mcp.environment.moves import Moves, WorldEvent
from hud_mcp.environment.tool import Tool
from hud_mcp.errors import ActionFailed, HudMcpError, NoScreen
from hud_mcp.session.draft import tool_observation
from hud_mcp.values.action import parse_action, parse_actions

__all__ = ["Reply", "Tools"]


@dataclass(frozen=True)
class Reply:
    """What a tool gives back."""

    text: str = ""
    is_error: bool = False
    image: bytes | None = None
    structured: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)


class Tools:
    """What an agent calls.

    Attributes:
        world: What is acted on.
        answer: What was submitted; None until then.
        steps: How many calls were done: looks and calls of tools too, and no answer.
        waits: How many steps did nothing but wait.
        replies: What the agent has read, in order.
        events: The moves of the task's world that happened.
        hear: Hands a message to the task's user, and returns the reply; None without a user.
    """

    def __init__(
        self, world: Any, own: Mapping[str, Tool] | None = None, moves: Moves | None = None
    ) -> None:
        self.world = world
        self.answer: str | None = None
        self.steps = 0
        self.waits = 0
        self.replies: list[str] = []
        self._own = own or {}
        self._moves = moves
        self.events: list[WorldEvent] = []
        self.hear: Callable[[str], Awaitable[str]] | None = None

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Reply:
        """Call a tool as a server would: a refusal is a reply and no exception."""
        given = {k: v for k, v in arguments.items() if k != "session"}
        try:
            with anyio.fail_after(PATIENCE_S):
                reply = await self._do(name, given)
        except ActionFailed as exc:
            reply = Reply(text=str(exc), is_error=True)
        self.replies.append(reply.text)
        return reply

    async def _do(self, name: str, given: dict[str, Any]) -> Reply:
        if name == "response":
            self.answer = given["answer"]
            return Reply()
        if name == "message_user":
            if self.hear is None:
                raise ActionFailed("This task has no user.")
            said = await self.hear(given["text"])
            self.steps += 1
            notes = await self._move()
            return Reply(text="\n".join([*notes, said]), structured={"state": "open"})
        if name == "screenshot":
            raise NoScreen("These tests look at the text alone.")
        if name in self._own:
            return await self._call_own(self._own[name], given)
        actions = parse_actions(given["actions"]) if name == "step" else (parse_action(given),)
        self.waits += [action.type for action in actions] == ["wait"]
        effects = [await self.world.act(action) for action in actions]
        self.steps += 1
        notes = [effect.text for effect in effects if effect and effect.text]
        notes += await self._move()
        observation = await self.world.observe(Look())
        return Reply(text="\n".join([*notes, observation.text or ""]))

    async def _call_own(self, tool: Tool, given: dict[str, Any]) -> Reply:
        """Call a tool of the environment's own; one that raises has failed, as in a session."""
        try:
            value = await tool.call(given, self.world)
        except HudMcpError:
            raise
        except Exception as exc:
            raise ActionFailed(f"{tool.name} failed: {type(exc).__name__}: {exc}") from exc
        self.steps += 1
        notes = await self._move()
        return Reply(text="\n".join([*notes, tool_observation(value, Look()).text or ""]))

    async def _move(self) -> list[str]:
        """Let the world move after a step, and return what the agent is told of it."""
        if self._moves is None:
            return []
        await self._moves.after(self.events, self.steps)
        told, self._moves.untold = self._moves.untold, []
        return told
