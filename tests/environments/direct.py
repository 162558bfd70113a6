"""An agent's tools straight on a world, without a server between."""

from dataclasses import dataclass, field
from typing import Any

import anyio
from waiting import PATIENCE_S

from hud_mcp import Look
from hud_mcp.action import parse_action, parse_actions
from hud_mcp.errors import ActionFailed, NoScreen

__all__ = ["Reply", "Tools"]


@dataclass(frozen=True)
class Reply:
    """What a tool gives back."""

    text: str = ""
    is_error: bool = False
    image: bytes | None = None
    meta: dict[str, Any] = field(default_factory=dict)


class Tools:
    """What an agent calls.

    Attributes:
        world: What is acted on.
        answer: What was submitted; None until then.
        waits: How many steps did nothing but wait.
    """

    def __init__(self, world: Any) -> None:
        self.world = world
        self.answer: str | None = None
        self.waits = 0

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Reply:
        """Call a tool as a server would: a refusal is a reply and no exception."""
        given = {k: v for k, v in arguments.items() if k != "session"}
        try:
            with anyio.fail_after(PATIENCE_S):
                return await self._do(name, given)
        except ActionFailed as exc:
            return Reply(text=str(exc), is_error=True)

    async def _do(self, name: str, given: dict[str, Any]) -> Reply:
        if name == "response":
            self.answer = given["answer"]
            return Reply()
        if name == "screenshot":
            raise NoScreen("These tests look at the text alone.")
        actions = parse_actions(given["actions"]) if name == "step" else (parse_action(given),)
        self.waits += [action.type for action in actions] == ["wait"]
        effects = [await self.world.act(action) for action in actions]
        notes = [effect.text for effect in effects if effect and effect.text]
        observation = await self.world.observe(Look())
        return Reply(text="\n".join([*notes, observation.text or ""]))
