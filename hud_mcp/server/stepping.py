"""One step of a session, as the tools `step` and `act` take it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from hud_mcp.absent import ObjectReader
from hud_mcp.action import Action, CustomAction, ResponseAction
from hud_mcp.environment import Environment
from hud_mcp.errors import SessionEnded
from hud_mcp.grade import Outcome
from hud_mcp.observation import Look
from hud_mcp.record.trajectory import Receipt
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import PLAIN, VALUES, Call, one_of
from hud_mcp.server.results import receipt_text, step_result
from hud_mcp.server.schemas import string_schema
from hud_mcp.session.caller import LOOK
from hud_mcp.session.receipts import ended_text
from hud_mcp.session.requested_step import RequestedStep

__all__ = ["AFTER_STEP", "OBSERVE", "as_taken", "take_step"]

_OBSERVED = ("full", "changes")

OBSERVE = Argument(
    string_schema(
        "full (default), or changes: only what is different in the text since your last look.",
        enum=list(_OBSERVED),
    )
)

AFTER_STEP = Argument(
    {
        "type": "integer",
        "description": "How many steps you have seen, as replies say; 0 at first. A call whose "
        "reply was lost can then be repeated: it is not done twice.",
    }
)


async def take_step(
    call: Call,
    kind: Literal["step", "act"],
    actions: tuple[Action, ...],
    *,
    image: bool,
    tail: str = "",
) -> dict[str, Any]:
    """Perform actions in the session that a call means; an answer among them is graded.

    Args:
        call: The call, with the arguments `OBSERVE` and `AFTER_STEP`.
        kind: What the record calls the step.
        actions: In order.
        image: Whether the reply has a picture, where there is a screen.
        tail: What the reply ends with, unless there was an answer.
    """
    session = await call.find()
    if isinstance(session, Receipt):
        return await _repeat_ended(call, session, kind, actions, image=image)
    environment = session.environment
    actions = as_taken(actions, environment, call.sessions.environments.values())
    look = _look(call, environment, image=image)
    shows, after_step = look.image is not None, call.arguments.get("after_step")
    with call.heartbeat("acting"):
        stepped = await session.step(
            actions, look, kind=kind, deliver_image=shows, after_step=after_step
        )
        if not stepped.answered:
            if after_step is not None:
                tail = f"{tail} Pass after_step={session.steps} with your next call.".strip()
            return step_result(stepped, session, tail=tail, is_plain=bool(call.meta.get(PLAIN)))
        answer = next(a.text for a in actions if isinstance(a, ResponseAction))
        receipt = await session.respond(answer, wait_s=call.sessions.limits.reply_s)
    tail = receipt_text(receipt, session.reward_policy, call.then)
    return step_result(stepped, session, tail=tail)


@dataclass(frozen=True)
class _Ended:
    """A session that ended in another process, as a step's reply names it."""

    id: str
    steps: int
    reward_policy: str


async def _repeat_ended(
    call: Call,
    receipt: Receipt,
    kind: Literal["step", "act"],
    actions: tuple[Action, ...],
    *,
    image: bool,
) -> dict[str, Any]:
    """The recorded reply to the last step of a session that has ended since.

    Raises:
        SessionEnded: This call is not that step.
    """
    after_step: int | None = call.arguments.get("after_step")
    environment = call.sessions.environments.get(receipt.environment)
    if after_step is None or environment is None:
        raise SessionEnded(ended_text(receipt))
    actions = as_taken(actions, environment, call.sessions.environments.values())
    look = _look(call, environment, image=image)
    asked = RequestedStep(kind, actions, look, look.image is not None)
    policy = receipt.reward_policy
    stepped = await asked.recall(
        call.sessions.store, receipt.trajectory, after_step, rewards_shown=policy == "per_step"
    )
    if stepped is None:
        raise SessionEnded(ended_text(receipt))
    graded = receipt.outcome is Outcome.GRADED
    tail = receipt_text(receipt, policy, call.then) if graded else ended_text(receipt)
    session = _Ended(call.arguments["session"], after_step + 1, policy)
    return step_result(stepped, session, tail=tail, is_plain=bool(call.meta.get(PLAIN)))


def as_taken(
    actions: tuple[Action, ...], environment: Environment, served: Iterable[Environment] = ()
) -> tuple[Action, ...]:
    """The actions without the arguments of other ones, which frameworks fill in.

    Args:
        actions: What came.
        environment: Whose world takes them.
        served: All whose custom actions are shown beside its own.
    """
    taken = list(actions)
    for i, action in enumerate(actions):
        if isinstance(action, CustomAction) and action.args:
            reader = _custom_readers(environment, tuple(served)).get(action.action)
            args = action.args if reader is None else reader.read(action.args)
            if args != action.args:
                taken[i] = action.model_copy(update={"args": args})
    return tuple(taken)


@lru_cache(maxsize=256)
def _custom_readers(
    environment: Environment, served: tuple[Environment, ...]
) -> dict[str, ObjectReader]:
    """A reader for each custom action; they are made once, as each step passes them."""
    schemas = [s for e in (environment, *served) for s in e.world.custom_actions.values()]
    every = frozenset[str]().union(*(each.get("properties", {}) for each in schemas))
    known = environment.world.custom_actions
    return {name: ObjectReader(schema, others=every) for name, schema in known.items()}


def _look(call: Call, environment: Environment, *, image: bool) -> Look:
    """What a step observes: text and picture, or what a program asks for in their place.

    Args:
        call: The call.
        environment: Whose world is looked at.
        image: Whether a picture is wanted, where there is a screen.
    """
    given = call.arguments
    changes = "observe" in given and one_of(given, "observe", _OBSERVED, "full") == "changes"
    if call.meta.get(VALUES):
        return call.look(values=True, changes=changes)
    only = call.meta.get(LOOK)
    shows = image and only != "text" and environment.world.has_screen
    text = only != "image" or not shows
    return call.look(text=text, image=call.image if shows else None, changes=changes)
