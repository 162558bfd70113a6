"""A step while it is made."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic_core import to_jsonable_python

from hud_mcp.action import ActionEffect, Point
from hud_mcp.observation import Look, Observation
from hud_mcp.record.trajectory import ScreenshotRecord, TrajectoryStep, utc_now
from hud_mcp.record.values import SNAPSHOT, TARGETS, UNDONE
from hud_mcp.session.measuring import FINAL_RESPONSE

__all__ = ["Draft", "StepKind"]

StepKind = Literal["step", "act", "screenshot", "tool", "direct", "response", "evaluate", "reset"]
"""How the record names a call."""


class Draft:
    """A step while it is made.

    Args:
        kind: How the record names the call.
        actions: What the agent sent.
        scale: How many of the world's pixels are one of the picture that the agent was shown.
        look: What is observed then.
    """

    def __init__(
        self,
        kind: StepKind,
        actions: list[dict[str, Any]],
        *,
        scale: float = 1.0,
        look: Look | None = None,
    ) -> None:
        self.kind: StepKind = kind
        self.actions = actions
        self.started_at = utc_now()
        self.performed = 0
        self.observation: Observation | None = None
        self.error: str | None = None
        self.rewards: list[float] = []
        self.notes: list[str] = []
        self.places: list[Point | None] = []
        self.targets: list[str | None] = []
        self.info: dict[str, Any] = {}
        self.terminated = False
        self.truncated = False
        self.scale = scale
        self.look = _told(look)
        self.delivered_image = False
        self.interrupted = False
        self.answers = False
        self.snapshot: bytes | None = None

    def see(self, observation: Observation) -> None:
        """Note what was seen then."""
        self.observation = observation

    def deliver(self, *, image: bool) -> None:
        """Note whether the agent is shown the picture."""
        self.delivered_image = image

    def keep(self, snapshot: bytes | None) -> None:
        """Keep the state of the world then, where one could be had."""
        self.snapshot = snapshot

    def tell(self, **info: Any) -> None:
        """Add what else the record says of it."""
        self.info |= info

    def do(self, count: int) -> None:
        """Note how many of its actions were done."""
        self.performed = count

    def fail(self, error: str, *, interrupted: bool) -> None:
        """Note why the call did not come to its end.

        Args:
            error: The reason.
            interrupted: Whether something else than the call's own failure ended it.
        """
        self.error = error
        self.interrupted = interrupted

    def interrupt(self) -> None:
        """Note that something else than the call's own failure ended it."""
        self.interrupted = True

    def answer(self) -> None:
        """Note that its next action is the answer, and is submitted."""
        self.performed += 1
        self.answers = True

    def unanswer(self) -> None:
        """Note that the answer was not submitted."""
        self.performed -= 1
        self.answers = False

    def keep_answer(self, answer: str) -> None:
        """Note that its next action is an answer, which an operator will grade."""
        self.performed += 1
        self.info[FINAL_RESPONSE] = answer

    def undo(self, *, was_dead: bool) -> None:
        """Note that the world died, and is resumed: nothing of the call stands.

        Args:
            was_dead: Whether it had died before the call began.
        """
        self.performed, self.rewards, self.places, self.targets = 0, [], [], []
        self.terminated = self.truncated = self.interrupted = False
        self.snapshot = self.observation = None
        self.info = {UNDONE: "before" if was_dead else "during"}

    @property
    def reward(self) -> float | None:
        """The sum of the rewards that the world gave, or None."""
        return sum(self.rewards) if self.rewards else None

    def add(self, effect: ActionEffect) -> None:
        """Add what one action did.

        Of its info, a list is put after that of the actions before it, as each one's rewards
        are; anything else is the last one's, but for the number of the first step.
        """
        self.performed += 1
        self.places.append(effect.place)
        self.targets.append(effect.target)
        if effect.text:
            self.notes.append(effect.text)
        if effect.reward is not None:
            self.rewards.append(effect.reward)
        self.terminated |= effect.terminated
        self.truncated |= effect.truncated
        for name, value in effect.info.items():
            before = self.info.get(name)
            if isinstance(value, list) and isinstance(before, list):
                self.info[name] = [*cast("list[Any]", before), *cast("list[Any]", value)]
            elif name != "first_step" or before is None:
                self.info[name] = value

    def step(self, index: int, of_snapshot: Mapping[str, Any] | None = None) -> TrajectoryStep:
        """The step as the record keeps it.

        Args:
            index: Its index.
            of_snapshot: What is to be said of the snapshot after it, if anything.
        """
        seen = self.observation or Observation()
        info = {**self.info, TARGETS: self.targets} if any(self.targets) else self.info
        if of_snapshot:
            info = {**info, SNAPSHOT: dict(of_snapshot)}
        return TrajectoryStep(
            index=index,
            kind=self.kind,
            actions=list(self.actions),
            performed=self.performed,
            scale=self.scale,
            places=tuple(self.places) if any(self.places) else (),
            look=self.look,
            delivered_image=self.delivered_image,
            interrupted=self.interrupted,
            observation_text=seen.text,
            screenshot=ScreenshotRecord.of(seen.image) if seen.image else None,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            info=to_jsonable_python(info, fallback=str) if info else {},
            error=self.error,
            notes=tuple(self.notes),
            started_at=self.started_at,
            ended_at=utc_now(),
        )


_PLAIN = Look()


def _told(look: Look | None) -> dict[str, Any]:
    """What of a look is not as by default."""
    if look is None or look == _PLAIN:
        return {}
    return look.model_dump(mode="json", exclude_defaults=True)
