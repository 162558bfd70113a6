"""The way of a world back to its record, in a server that did not begin the session.

A replayable world repeats the recorded calls; a restorable one takes its last snapshot. A world
that may differ is not resumed: a grade of another state would be worse than none.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import anyio

from hud_mcp.base.text import clip_text
from hud_mcp.environment import Environment
from hud_mcp.environment.calls import prepare
from hud_mcp.environment.function import Function, Situation
from hud_mcp.environment.moves import Moves
from hud_mcp.environment.tool import Exchange, Tool
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, EnvironmentFailed, HudMcpError, InvalidAction, MoveFailed
from hud_mcp.record.values import BEHIND, OVER, REPLY, TrajectoryStep
from hud_mcp.session.draft import Pointer
from hud_mcp.session.history import FINAL_RESPONSE, DiedAgain, standing
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.values.action import Action, ResponseAction, parse_actions, scale_action
from hud_mcp.values.call import FunctionConfig
from hud_mcp.values.observation import Look

logger = logging.getLogger(__name__)

_SETTLE_S = 3.0
"""The longest wait for a replayed world to look as it was recorded."""
_POLL_S = 0.1
_OF_TEMPLATE = ("response", "evaluate", "message", "user")
"""The kinds of steps that do nothing in a world by themselves."""

Repeat: TypeAlias = Callable[[TrajectoryStep], Awaitable[None]]
"""Repeats the part of a recorded step that is the template's."""


class WorldLost(HudMcpError):
    """A world could not be resumed; the text says why."""


def can_resume(
    steps: int, snapshot_step: int | None, *, replayable: bool, tools_replay: bool
) -> bool:
    """Whether a world can be resumed after the last of `steps` that may have changed it."""
    # Such a world can repeat everything.
    if replayable and tools_replay:
        return True
    # A fresh world is the same as one in which nothing was done.
    if not steps:
        return True
    return snapshot_step is not None and snapshot_step >= steps - 1


async def rebuild(
    world: World,
    stored: StoredSession,
    environment: Environment,
    pointer: Pointer,
    *,
    repeat: Repeat,
    moves: Moves | None = None,
) -> Sequence[TrajectoryStep]:
    """Rebuild a freshly opened and set-up world from its record; return the steps that stand.

    Raises:
        WorldLost: The world cannot be rebuilt, or differs from its record.
        EnvironmentFailed: The world broke.
        DiedAgain: The world broke as the last of its changes was repeated.
    """
    if stored.snapshot_step == BEHIND:
        raise WorldLost(
            "its agent used its world directly, and there is no snapshot of what it did there last"
        )
    steps, tools, snapshot = standing(stored.trajectory.steps), environment.tools, stored.snapshot
    replayable = environment.replays(stored.trajectory.task)
    last = max((step.index for step in steps if step.changes_world), default=-1)
    if not steps:
        return steps
    once = [name for s in steps if (name := _tool_name(s)) and not _replays(tools, name)]
    direct = next((str(s.actions[0].get("tool")) for s in steps if s.kind == "direct"), None)
    if replayable and not once and direct is None:
        await _replay(world, steps, environment, pointer, repeat=repeat, moves=moves)
    elif snapshot is None and all(s.kind in _OF_TEMPLATE and not s.events for s in steps):
        for step in steps:  # nothing was done in it, as where there are no steps
            await repeat(step)
    elif snapshot is None or stored.snapshot_step < last:
        raise WorldLost(
            f"the tool {once[0]!r} was called, which must not run twice"
            if replayable and once
            else f"its agent used its world directly, over {direct}"
            if direct is not None
            else "its world supports neither replay nor restore"
        )
    else:
        await _restore(world, steps, snapshot, repeat)
        _follow(steps, pointer)
    return steps


async def _restore(
    world: World, steps: Sequence[TrajectoryStep], snapshot: bytes, repeat: Repeat
) -> None:
    """Restore a world from its snapshot, and its template from the words of its conversation."""
    last_words = steps[-1:] if OVER in steps[-1].info else ()
    # Before: what the template did is in the snapshot, but for a grade of the world as it was.
    for step in steps[: len(steps) - len(last_words)]:
        await repeat(step)
    try:
        await world.restore(snapshot)
    # The world gave this snapshot once, and its present class restores none.
    except NotImplementedError:
        raise WorldLost("its world cannot be restored any more") from None
    for step in last_words:
        await repeat(step)


def submitted_answer(steps: Sequence[TrajectoryStep]) -> str | None:
    """The answer that the last step submitted, or None."""
    if not steps or not steps[-1].performed:
        return None
    last = steps[-1]
    if FINAL_RESPONSE in last.info:  # kept for its operator, who grades
        return None
    if last.kind == "message":
        return str(last.actions[0]["text"]) if OVER in last.info else None
    action = last.actions[last.performed - 1]
    if last.kind == "tool" or action.get("type") != "response":
        return None
    return str(action["text"])


async def _replay(
    world: World,
    steps: Sequence[TrajectoryStep],
    environment: Environment,
    pointer: Pointer,
    *,
    repeat: Repeat,
    moves: Moves | None,
) -> None:
    seen: str | None = None
    checked: TrajectoryStep | None = None
    last = max((step.index for step in steps if step.changes_world), default=-1)
    step = steps[0]
    try:
        for step in steps:
            if step.kind == "evaluate":  # it looked, and changed nothing
                continue
            await _move_again(moves, step, first=True)
            await repeat(step)
            await _do_again(world, step, environment, pointer)
            await _move_again(moves, step, first=False)
            if step.kind in ("tool", "message", "user"):
                continue
            look = Look.model_validate(step.look).model_copy(update={"image": None})
            checked = None
            if look.text and step.observation_text is not None:
                seen = (await world.observe(look)).text  # its refs are used by the next step
                checked = step if look.form == environment.world.text_form else None
        if checked is not None:
            await _check(world, checked, seen)
    except EnvironmentFailed as exc:
        # The last change killed the world again, so the agent's doing is the cause.
        if last >= 0 and step.index >= last:
            raise DiedAgain(str(exc)) from exc
        raise


async def _do_again(
    world: World, step: TrajectoryStep, environment: Environment, pointer: Pointer
) -> None:
    if step.kind == "tool":
        await _call_again(world, step, environment.tools)
    elif step.kind == "reset":
        await _set_up_again(world, step, environment.functions)
    elif step.kind not in _OF_TEMPLATE:
        await _act_again(world, step, pointer)


async def _move_again(moves: Moves | None, step: TrajectoryStep, *, first: bool) -> None:
    """Make the moves of a step again, and never by the clock or a condition."""
    if not step.events:
        return
    if moves is None:
        raise WorldLost(f"step {step.index}: its template has no moves any more")
    try:
        await moves.repeat(step.events, first=first)
    except MoveFailed as exc:
        raise WorldLost(f"step {step.index}: {exc}") from exc


async def _act_again(world: World, step: TrajectoryStep, pointer: Pointer) -> None:
    for action in _performed(step):
        if isinstance(action, ResponseAction):
            return
        try:
            await pointer.act(scale_action(action, step.scale), world)
        except ActionFailed as exc:
            raise WorldLost(
                f"step {step.index}: {action.type} worked before, and now it failed: {exc}"
            ) from exc


def _follow(steps: Sequence[TrajectoryStep], pointer: Pointer) -> None:
    """Put the pointer where the last step left it, without performing the steps."""
    for step in steps:
        if step.kind not in ("step", "act"):
            continue
        for i, action in enumerate(_performed(step)):
            place = step.places[i] if i < len(step.places) else None
            pointer.note(scale_action(action, step.scale), place)


def _performed(step: TrajectoryStep) -> Sequence[Action]:
    try:
        return parse_actions(list(step.actions[: step.performed]), pointed=False)
    except InvalidAction as exc:
        raise WorldLost(f"step {step.index} cannot be read: {exc}") from exc


async def _call_again(world: World, step: TrajectoryStep, tools: Mapping[str, Tool]) -> None:
    name = _tool_name(step)
    if name is None or name not in tools:
        raise WorldLost(f"step {step.index}: there is no tool {name!r} any more")
    tool = tools[name]
    try:
        exchange = Exchange(look=Look.model_validate(step.look))
        args = step.actions[0].get("args") or dict[str, object]()
        value = await tool.call_in(args, world.unwrapped, {}, exchange)
    except EnvironmentFailed:
        raise
    except (Exception, SystemExit) as exc:
        # A tool that failed before may fail again in the same way.
        if step.error is None:
            raise WorldLost(
                f"step {step.index}: {name} worked before, and now it failed: "
                f"{type(exc).__name__}: {exc}"
            ) from exc
        logger.debug("%s failed again, as it had before: %s", name, exc)
        return
    if not tool.is_same(value, step.observation_text, step.info.get(REPLY) or {}):
        raise WorldLost(f"step {step.index}: {name} answered otherwise than before")


async def _set_up_again(
    world: World, step: TrajectoryStep, functions: Mapping[str, Function]
) -> None:
    calls = [
        FunctionConfig(function=str(action["tool"]), args=tuple(action.get("args") or ()))
        for action in step.actions
    ]
    try:
        await prepare(calls, functions, Situation(world=world.unwrapped))
    except EnvironmentFailed:
        raise
    except Exception as exc:
        if step.error is None:
            raise WorldLost(
                f"step {step.index}: its setup worked before, and now it failed: "
                f"{type(exc).__name__}: {exc}"
            ) from exc
        logger.debug("a setup failed again, as it had before: %s", exc)


async def _check(world: World, step: TrajectoryStep, seen: str | None) -> None:
    """Compare the present look with the recorded one. A page may need time to settle."""
    look = Look.model_validate(step.look).model_copy(update={"image": None})
    # The rules come with the first look, or with the start: they tell nothing of the state.
    rules = frozenset(world.explain("").splitlines())
    recorded = _without(rules, step.observation_text or "")

    def now() -> str:
        return _without(rules, clip_text(seen or "", look.max_text_chars))

    with anyio.move_on_after(0 if look.changes else _SETTLE_S):
        while now() != recorded:
            await anyio.sleep(_POLL_S)
            seen = (await world.observe(look)).text
    if now() != recorded:
        raise WorldLost(
            f"after {step.index + 1} repeated steps, the observation differs: "
            f"{_difference(recorded, now())}"
        )


def _without(lines: Collection[str], text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line not in lines) if lines else text


def _difference(before: str, now: str) -> str:
    """Return the first line that differs."""
    old, new = before.splitlines(), now.splitlines()
    for i in range(max(len(old), len(new))):
        was = old[i].strip() if i < len(old) else "nothing"
        is_now = new[i].strip() if i < len(new) else "nothing"
        if was != is_now:
            return f"line {i + 1} was {was[:120]!r} and is {is_now[:120]!r}"
    return "the spaces in it differ"


def _tool_name(step: TrajectoryStep) -> str | None:
    return str(step.actions[0].get("tool")) if step.kind == "tool" and step.actions else None


def _replays(tools: Mapping[str, Tool], name: str) -> bool:
    return name not in tools or tools[name].replayable
