"""A step as a call asks for it, and how one that is asked for again is told from the record.

A reply may be lost. Its caller says after how many steps it was to happen. Where the record has
exactly one more, and that was this very call, nothing is done again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hud_mcp.record.trajectory import TrajectoryStep
from hud_mcp.session.draft import StepKind, Stepped
from hud_mcp.store import Store
from hud_mcp.values.action import Action
from hud_mcp.values.observation import Look, Observation, Screenshot, TaskResult

__all__ = ["RequestedStep", "out_of_step"]


@dataclass(frozen=True, slots=True)
class RequestedStep:
    """A step as a call asks for it.

    Attributes:
        kind: How the record names the call.
        actions: What is to be performed.
        look: What is to be observed.
        delivers_image: Whether the agent is to be shown the picture.
    """

    kind: StepKind
    actions: Sequence[Action]
    look: Look
    delivers_image: bool

    def as_json(self) -> list[dict[str, Any]]:
        """The actions, as the record has them."""
        return [a.model_dump(mode="json", exclude_none=True) for a in self.actions]

    async def recall(
        self, store: Store, trajectory_id: str, after_step: int, *, rewards_shown: bool
    ) -> Stepped | None:
        """What the last step of a record gave, if it is this call's; None where it is not.

        Args:
            store: Where the record is.
            trajectory_id: Its id.
            after_step: How many steps its caller had seen.
            rewards_shown: Whether the agent is told the reward of a step.

        Raises:
            StoreFailed: The record cannot be read.
        """
        if after_step < 0:
            return None
        steps = await store.load_steps(trajectory_id, after_step, after_step + 2)
        if len(steps) != 1 or not self._is_of(steps[0]):
            return None
        (step,) = steps
        return Stepped(
            result=TaskResult(
                observation=Observation(
                    text=step.observation_text, image=await _picture(store, step)
                ),
                terminated=step.terminated,
                truncated=step.truncated,
                info=step.shown_info,
            ),
            performed=step.performed,
            error=step.error,
            notes=step.notes,
            answered=_answers(step),
            is_repeat=True,
            reward=step.reward if rewards_shown else None,
        )

    def _is_of(self, step: TrajectoryStep) -> bool:
        """Whether a recorded step is of this call; numbers beside a text are not recorded."""
        asked = self.as_json()
        look = self.look.model_dump(mode="json", exclude_defaults=True)
        return (
            (step.kind, step.actions, step.look) == (self.kind, asked, look)
            and step.delivered_image == self.delivers_image
            and not self.look.values
        )


def out_of_step(after_step: int, count: int) -> str:
    """What a caller is told who has seen another number of steps than there are."""
    steps = "1 step" if count == 1 else f"{count} steps"
    return (
        f"after_step is {after_step}, and the session has {steps}: others happened than you "
        f"have seen, or another call. Nothing was done. Look with step, without actions and with "
        f"after_step={count}, then go on."
    )


async def _picture(store: Store, step: TrajectoryStep) -> Screenshot | None:
    if not step.delivered_image or step.screenshot is None:
        return None
    data = await store.read_screenshot(step.screenshot)
    return None if data is None else Screenshot.from_bytes(data, scale=step.screenshot.scale)


def _answers(step: TrajectoryStep) -> bool:
    """Whether the last action that it performed submitted an answer."""
    return bool(step.performed) and step.actions[step.performed - 1].get("type") == "response"
