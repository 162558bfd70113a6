"""The calls on a session's world: each is durable with its effects, even if it failed."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hud_mcp.base import telemetry
from hud_mcp.environment.tool import Tool
from hud_mcp.errors import (
    ActionFailed,
    BrokenByAgent,
    HudMcpError,
    InvalidAction,
    LimitReached,
)
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.session.answers import check_answer, look_at_answer, take_answer
from hud_mcp.session.draft import (
    Draft,
    StepKind,
    Stepped,
    as_shown,
    tool_observation,
    which_failed,
)
from hud_mcp.session.life import Life
from hud_mcp.store import Store
from hud_mcp.values.action import Action, ResponseAction
from hud_mcp.values.observation import Look, Observation, Screenshot, TaskResult


@dataclass(frozen=True, slots=True)
class RequestedStep:
    """A requested step.

    A reply may be lost. Its caller says after how many steps the call was to happen. If the record
    has exactly one more, and that was this very call, nothing is done again.
    """

    kind: StepKind
    actions: Sequence[Action]
    look: Look
    delivers_image: bool

    def as_json(self) -> list[dict[str, Any]]:
        """The actions in the form of the record."""
        return [a.model_dump(mode="json", exclude_none=True) for a in self.actions]

    async def recall(
        self, store: Store, trajectory_id: str, after_step: int, *, rewards_shown: bool
    ) -> Stepped | None:
        """Return the result of the last step, if that is this call's; StoreFailed if unread."""
        if after_step < 0:
            return None
        steps = await store.load_steps(trajectory_id, after_step, after_step + 2)
        # Exactly one more step, and this very call: anything else is another caller's.
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
        """Whether a recorded step is of this call. Numbers beside a text are not recorded."""
        asked = self.as_json()
        look = self.look.model_dump(mode="json", exclude_defaults=True)
        return (
            (step.kind, step.actions, step.look) == (self.kind, asked, look)
            and step.delivered_image == self.delivers_image
            # A look for numbers is not recorded, so its reply cannot be repeated.
            and not self.look.values
        )


def out_of_step(after_step: int, count: int) -> str:
    """The text for a caller that has seen another number of steps than there are."""
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
    """Whether the last performed action submitted an answer."""
    return bool(step.performed) and step.actions[step.performed - 1].get("type") == "response"


logger = logging.getLogger(__name__)


def check_actions(life: Life, actions: Sequence[Action]) -> None:
    """Refuse actions that cannot be performed here.

    Raises:
        InvalidAction: An action does not belong to this environment.
        LimitReached: The actions are too many, or an answer among them is too long.
    """
    environment, limit = life.spec.environment, life.spec.limits.actions_per_step
    if len(actions) > limit:
        raise LimitReached(
            f"{len(actions)} actions in one step; the limit is {limit}. Nothing was done; "
            "send them in several steps."
        )
    for i, action in enumerate(actions):
        if isinstance(action, ResponseAction):
            check_answer(life, action.text)
        elif action.type not in environment.world.actions:
            allowed = sorted(environment.world.actions | {"response"})
            where = f"actions[{i}]: " if len(actions) > 1 else ""
            raise InvalidAction(
                f"{where}{action.type!r} is not an action of environment "
                f"{environment.name!r}; it takes {', '.join(allowed)}. None was performed."
            )
    life.world.pointer.check(actions, follows=life.spec.is_operated)


async def perform(life: Life, asked: RequestedStep) -> Stepped:
    """Perform checked actions in order, then observe; raises as `Session.step`."""
    actions, look, deliver_image = asked.actions, asked.look, asked.delivers_image
    draft = life.begin(asked.kind, asked.as_json(), look)
    draft.delivered_image = deliver_image
    answer, died = None, False
    try:
        answer = await _act(life, actions, draft)
        if answer is not None:
            died = await look_at_answer(life, draft, look, deliver_image=deliver_image)
        else:
            await _look(life, draft, look, deliver_image=deliver_image)
            draft.snapshot = await life.direct.take_snapshot()
    except BaseException as exc:
        where = f"after {draft.performed} of {len(actions)} actions"
        interrupted = not isinstance(exc, HudMcpError)
        life.fail(draft, exc, where, interrupted=interrupted)
        # `keep`, and not `add`: an unwritten step must not hide the call's own failure.
        await life.journal.keep(draft)
        raise
    finally:  # actions before the stop were performed, so the record has them
        life.measuring.note_actions(draft.actions[: draft.performed], draft.targets)
    if answer is None:
        await life.journal.add(draft)
    else:
        await take_answer(life, answer, draft, died=died)
    return as_shown(
        draft,
        deliver_image=deliver_image,
        rewards_shown=life.spec.rewards_shown,
        answered=answer is not None,
    )


async def run_tool(life: Life, tool: Tool, arguments: dict[str, Any], look: Look) -> Stepped:
    """Call a tool with checked arguments, and record the look of the world afterwards.

    Raises:
        ActionFailed: The tool raised.
        EnvironmentFailed, StoreFailed, SessionTaken: As for `perform`.
    """
    world = life.world
    draft = life.begin("tool", [{"tool": tool.name, "args": arguments}], look)
    try:
        with telemetry.span("act", environment=life.spec.environment.name, actions=[tool.name]):
            value = await tool.call_in(arguments, world.live, world.services)
        # After the call, because some tools must not be called again in a replay.
        world.note_tool(tool)
        seen = await world.observe(look.model_copy(update={"text": False}), deliver_image=False)
        shown = tool_observation(value, look)
        draft.snapshot = await life.direct.take_snapshot()
    except BaseException as exc:
        interrupted = isinstance(exc, asyncio.CancelledError)
        life.fail(draft, exc, f"while {tool.name} ran", interrupted=interrupted)
        world.note_tool(tool)
        # A tool that raises SystemExit must not end the server.
        theirs = isinstance(exc, Exception | SystemExit)
        ours = isinstance(exc, HudMcpError) or not theirs
        if not ours:
            draft.fail(f"{tool.name} failed: {draft.error}", interrupted=interrupted)
            logger.exception("tool %s raised", tool.name)
        await life.journal.keep(draft)
        if ours:
            raise
        raise ActionFailed(draft.error or "") from None
    draft.performed = 1
    draft.observation = Observation(text=shown.text or "", image=seen.image)
    await life.journal.add(draft)
    return Stepped(result=TaskResult(observation=shown), performed=1)


async def _look(life: Life, draft: Draft, look: Look, *, deliver_image: bool) -> None:
    """Look at the world after a call. If the agent's doing prevents the look, say so."""
    try:
        with telemetry.span("observe", environment=life.spec.environment.name):
            draft.observation = await life.world.observe(look, deliver_image=deliver_image)
    # Only what the agent has done can have prevented the look.
    except BrokenByAgent as exc:
        if draft.error is None and not draft.performed:
            raise
        said = f"{draft.error} " if draft.error else ""
        text = f"{said}What was done stands, but it cannot be looked at: {exc}"
        draft.fail(text, interrupted=draft.interrupted)


async def _act(life: Life, actions: Sequence[Action], draft: Draft) -> str | None:
    """Perform actions until one is refused or the episode ends; return the answer, if any."""
    end = len(actions)
    for i, each in enumerate(actions):
        if isinstance(each, ResponseAction):
            end = i
            break
    given = actions[:end]
    try:
        with telemetry.span("act", environment=life.spec.environment.name) as span:
            if span is not None:
                span.say(actions=[each.type for each in given])
            await life.world.act(given, draft.add)
    except ActionFailed as exc:
        draft.fail(which_failed(actions, draft.performed, exc), interrupted=False)
        return None
    over = draft.terminated or draft.truncated
    last = actions[end] if end < len(actions) and not over else None
    return last.text if isinstance(last, ResponseAction) else None
