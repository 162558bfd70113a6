"""The calls on a session's world: each is durable with its effects, even if it failed."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hud_mcp.base import telemetry
from hud_mcp.base.text import clip
from hud_mcp.environment.moves import Moves
from hud_mcp.environment.tool import Exchange, Tool
from hud_mcp.errors import (
    ActionFailed,
    BrokenByAgent,
    EnvironmentFailed,
    HudMcpError,
    InvalidAction,
    LimitReached,
    StoreFailed,
)
from hud_mcp.record.values import REPLY, TrajectoryStep, utc_now
from hud_mcp.session.draft import (
    Draft,
    StepKind,
    Stepped,
    as_shown,
    tool_observation,
    which_failed,
    why,
)
from hud_mcp.session.events import Answered, EndedItself
from hud_mcp.session.history import FINAL_RESPONSE
from hud_mcp.session.life import Life
from hud_mcp.session.turn import within
from hud_mcp.store import Store
from hud_mcp.values.action import Action, ResponseAction
from hud_mcp.values.observation import Look, Observation, Screenshot, TaskResult
from hud_mcp.values.reply import InputNeeded, ToolReply

logger = logging.getLogger(__name__)


_LOOK_S = 5.0
"""The longest look at a world as it is answered; the answer waits no longer."""
_ERROR_CHARS = 500
"""The longest error of another server beside a step; the step's text has it whole."""
_KEEP_S = 20.0
"""The longest snapshot as a world is answered; the grade does not need it."""


def check_answer(life: Life, answer: str, max_bytes: int | None = None) -> None:
    """Raise LimitReached for an answer above `max_bytes`, by default those of arguments."""
    most = life.spec.limits.argument_bytes if max_bytes is None else max_bytes
    if (size := len(answer.encode())) > most:
        raise LimitReached(
            f"The answer has {size} bytes; the limit is {most}. Nothing was submitted."
        )


async def respond(life: Life, answer: str) -> None:
    """Submit an answer, together with a look at the world if it shows itself.

    Raises:
        StoreFailed, SessionTaken: It could not be recorded, and was not submitted.
    """
    look = Look()
    draft = life.begin("response", [{"type": "response", "text": answer}], look)
    if life.world.moves is not None:
        await life.world.moves.before(draft.events)
    died = await look_at_answer(life, draft, look, deliver_image=False)
    await submit(life, answer, draft, died=died)


async def look_at_answer(life: Life, draft: Draft, look: Look, *, deliver_image: bool) -> bool:
    """Look at the world as it is answered; return whether it is dead. Neither may stop the answer.

    Raises:
        EnvironmentFailed: The world died of what this call did before the answer, and undoing the
            call is better than answering.
    """
    world = life.world
    # No world can hang here, so no bound and no snapshot are needed.
    if world.opens_nothing:
        draft.observation = await world.observe(look, deliver_image=deliver_image)
        return False
    step_s = life.spec.limits.step_s
    try:
        observing = world.observe(look, deliver_image=deliver_image)
        draft.observation = await within(min(_LOOK_S, step_s / 4), observing)
    except EnvironmentFailed as exc:
        # The call's own actions killed the world. It is undone, and the agent may answer again.
        if draft.performed and life.can_resume and not world.replays:
            raise
        draft.fail(f"The observation at the answer failed: {exc}", interrupted=False)
        return True
    except Exception as exc:  # noqa: BLE001  # whatever a world raises, the answer stands
        draft.fail(f"The observation at the answer failed: {why(exc)}", interrupted=False)
    if world.replays:  # its record gives its state again
        return False
    try:
        state = world.snapshot(life.journal.count)  # also in the middle of an access
        draft.snapshot = await within(min(_KEEP_S, step_s / 2), state)
    except Exception as exc:  # noqa: BLE001  # the same
        life.journal.log(f"no snapshot of what was answered: {why(exc)}")
    return False


async def take_answer(life: Life, answer: str, draft: Draft, *, died: bool) -> None:
    """Take the answer that ends a step: submit it, or keep it for the operator who grades.

    Raises:
        StoreFailed, SessionTaken: It could not be recorded, and was not submitted.
    """
    # An operator grades by itself, so its agent's answer is only kept.
    if not life.spec.is_operated:
        await submit(life, answer, draft, died=died)
        return
    draft.performed += 1
    draft.info[FINAL_RESPONSE] = answer
    _add_to_history(life, draft)
    life.measuring.final_response = answer
    await life.journal.add(draft)


async def submit(
    life: Life, answer: str, draft: Draft, *, died: bool = False, by_message: bool = False
) -> None:
    """Record the step that answers, and only then hand the answer over."""
    # Before the record, so that nothing of the agent changes the world that is graded.
    await life.world.stop_agent()
    draft.performed += 1
    draft.answers = True
    try:
        await life.journal.add(draft)
    except StoreFailed as exc:
        # An answer that is not recorded must not be graded: a restart would not know of it.
        life.journal.withdraw()
        draft.performed -= 1
        draft.answers = False
        done = ""
        if draft.kind == "response":
            if life.world.moves is not None:
                life.world.moves.keep(draft.events)
        else:
            draft.fail("the answer was not submitted", interrupted=draft.interrupted)
            life.journal.append(draft)
            done = " What came before it in this call was performed: do not repeat it."
        raise StoreFailed(
            f"The answer was not submitted, because it cannot be recorded. {exc.__cause__}{done}"
        ) from None
    _add_to_history(life, draft)
    can_resume = died and life.can_resume
    reason = (life.world.died or "It could not be looked at.") if died else None
    # The grade takes long, and cutting this call off must not undo the answer.
    life.turn.leave_world()
    life.post(Answered(life.number, answer, utc_now(), reason, can_resume, by_message))


def _add_to_history(life: Life, draft: Draft) -> None:
    life.measuring.note_actions(draft.actions[draft.performed - 1 : draft.performed])


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
            if life.driver.talk is not None:
                raise InvalidAction("Nothing was done: end a conversation with the tool response.")
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
    answer, died, moves = None, False, life.world.moves
    try:
        if moves is not None:
            await moves.before(draft.events)
        answer = await _act(life, actions, draft)
        if answer is not None:
            died = await look_at_answer(life, draft, look, deliver_image=deliver_image)
        else:
            if moves is not None:
                await moves.after(draft.events, life.journal.count - life.journal.users + 1)
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
        plain = moves is None and life.driver.talk is None
        await (life.journal.add(draft) if plain else _tell(life, moves, draft))
    else:
        await take_answer(life, answer, draft, died=died)
    return as_shown(
        draft,
        deliver_image=deliver_image,
        rewards_shown=life.spec.rewards_shown,
        answered=answer is not None,
    )


async def _tell(life: Life, moves: Moves | None, draft: Draft) -> None:
    """Record a step whose reply has notes of the world's moves, or that a conversation counts."""
    if moves is not None:
        draft.notes += moves.untold
    talk = life.driver.talk
    if talk is not None:
        talk.steps += 1
        if talk.is_spent:
            draft.notes.append("These were the steps for a reply: the conversation is over.")
    await life.journal.add(draft)
    if moves is not None:
        moves.untold.clear()
    if talk is not None and talk.is_spent:
        life.turn.leave_world()  # this call has its reply
        life.post(EndedItself(life.number))


async def run_tool(
    life: Life,
    tool: Tool,
    arguments: dict[str, Any],
    look: Look,
    exchange: Exchange | None = None,
) -> Stepped:
    """Call a tool with checked arguments, and record the look of the world afterwards.

    Raises:
        ActionFailed: The tool raised.
        EnvironmentFailed, StoreFailed, SessionTaken: As for `perform`.
    """
    world, moves = life.world, life.world.moves
    recorded = dict(tool.recorded(arguments))
    draft = life.begin("tool", [{"tool": tool.name, "args": recorded}], look)
    try:
        if moves is not None:
            await moves.before(draft.events)
        with telemetry.span("act", environment=life.spec.environment.name, actions=[tool.name]):
            value = await tool.call_in(arguments, world.live, world.services, exchange)
        if isinstance(value, InputNeeded):
            if moves is not None:
                moves.keep(draft.events)
            return Stepped(TaskResult(observation=Observation()), performed=0, needed=value)
        # After the call, because some tools must not be called again in a replay.
        world.note_tool(tool)
        if moves is not None:
            await moves.after(draft.events, life.journal.count - life.journal.users + 1)
        shown = tool_observation(value, look)
        image = shown.image if isinstance(value, ToolReply) else None
        if not tool.passes_through:  # else its reply is everything that there is to see
            pictures = look.model_copy(update={"text": False})
            image = (await world.observe(pictures, deliver_image=False)).image or image
        draft.snapshot = await life.direct.take_snapshot()
    except BaseException as exc:
        if await _fail(life, draft, tool, exc):
            raise
        raise ActionFailed(draft.error or "") from None
    draft.performed = 1
    draft.observation = Observation(text=shown.text or "", image=image)
    reply = value if isinstance(value, ToolReply) else None
    if reply is not None:
        _keep(draft, tool, reply)
    await _tell(life, moves, draft)
    notes = tuple(draft.notes)
    return Stepped(TaskResult(observation=shown), performed=1, notes=notes, reply=reply)


async def _fail(life: Life, draft: Draft, tool: Tool, exc: BaseException) -> bool:
    """Record the step of a tool that raised; return whether the exception is ours."""
    interrupted = isinstance(exc, asyncio.CancelledError)
    life.fail(draft, exc, f"while {tool.name} ran", interrupted=interrupted)
    life.world.note_tool(tool)
    # A tool that raises SystemExit must not end the server.
    theirs = isinstance(exc, Exception | SystemExit)
    ours = isinstance(exc, HudMcpError) or not theirs
    if not ours:
        draft.fail(f"{tool.name} failed: {draft.error}", interrupted=interrupted)
        logger.error("tool %s raised", tool.name, exc_info=exc)
    await life.journal.keep(draft)
    return ours


def _keep(draft: Draft, tool: Tool, reply: ToolReply) -> None:
    """Put a server's reply, with its time and its error, into the step of its call."""
    shown = None if draft.observation is None else draft.observation.text
    draft.info[REPLY] = tool.kept(reply)
    draft.started_at = reply.began_at or draft.started_at
    draft.error = clip(shown or "It failed.", _ERROR_CHARS) if reply.is_error else None


async def ask(life: Life, method: str, params: dict[str, Any]) -> Any:
    """Ask the world for something of its own. Only a death of it is recorded, as a step."""
    look = Look(max_text_chars=life.spec.limits.observation_chars)
    draft = life.begin("tool", [{"tool": method, "args": params}], look)
    try:
        return await life.world.live.ask(method, params, look)
    except EnvironmentFailed as exc:
        life.fail(draft, exc, f"in {method}", interrupted=False)
        await life.journal.keep(draft)
        raise


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
