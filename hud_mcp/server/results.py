"""What goes back to a client: text first, one picture second, nothing that gives rewards away.

Results are plain dicts in wire form: a picture is encoded once and validated once, by
the SDK on its way out.
"""

from itertools import groupby
from typing import Any, Protocol, cast

from pydantic_core import to_jsonable_python

from hud_mcp.record.trajectory import Receipt, Trajectory
from hud_mcp.session.receipts import NEXT, ended_text
from hud_mcp.session.session import Session, Stepped
from hud_mcp.values.grade import Outcome, SubScore, cause_of
from hud_mcp.values.observation import ImageFormat, Screenshot

__all__ = [
    "error_result",
    "image_result",
    "receipt_text",
    "receipt_view",
    "step_result",
    "structured_result",
    "trajectory_view",
]

_COMPLETE = {"resultType": "complete"}
"""Required on the 2026-07-28 wire, ignored before."""

_MOST_REWARDS = 50
"""A text lists no more rewards of one call; programs find them all beside it."""


def error_result(
    text: str, *, kind: str | None = None, retry_after_s: float | None = None
) -> dict[str, Any]:
    """A failure that the model reads and can act on.

    Args:
        text: What it reads.
        kind: For programs, its class by name.
        retry_after_s: For them too, when the same call may be let through.
    """
    failed = {**_COMPLETE, "content": [{"type": "text", "text": text}], "isError": True}
    meta: dict[str, Any] = {} if kind is None else {"hud-mcp/error": kind}
    if retry_after_s is not None:
        meta["hud-mcp/retry_after_s"] = retry_after_s
    return {**failed, "_meta": meta} if meta else failed


def structured_result(
    value: dict[str, Any], text: str, meta: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Data with a readable form of it; hosts show a model the one or the other."""
    result: dict[str, Any] = {
        **_COMPLETE,
        "content": [{"type": "text", "text": text}],
        "structuredContent": value,
    }
    return {**result, "_meta": meta} if meta else result


def image_result(shot: Screenshot, session: Session, *, asked: ImageFormat) -> dict[str, Any]:
    """A picture and its size. No structured content: hosts then hide the picture.

    Args:
        shot: The picture.
        session: Whose it is.
        asked: The format that was asked for, which one that would be too large does not have.
    """
    size = f"{shot.width_px} x {shot.height_px} px"
    other = ""
    if shot.mime_type != f"image/{asked}":
        why = ": as PNG it would be too large" if asked == "png" else ""
        other = f", as {shot.mime_type.removeprefix('image/').upper()}{why}"
    return {
        **_COMPLETE,
        "content": [{"type": "text", "text": f"Screenshot, {size}{other}."}, _image(shot)],
        "_meta": {
            "hud-mcp/screenshot": {"session": session.id, "steps": session.steps, **_size(shot)}
        },
    }


class Seen(Protocol):
    """What a step's reply says of its session."""

    @property
    def id(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def reward_policy(self) -> str: ...


def step_result(
    stepped: Stepped, session: Seen, *, tail: str = "", is_plain: bool = False
) -> dict[str, Any]:
    """What a step showed, in words first.

    Args:
        stepped: The step.
        session: Whose it is.
        tail: What the text ends with.
        is_plain: Whether the text is the observation's alone; the rest stands in `_meta`.
    """
    result = stepped.result
    seen = result.observation
    text = (seen.text or "") if is_plain else _step_text(stepped, session, tail)
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    meta: dict[str, Any] = {
        "session": session.id,
        "steps": session.steps,
        "performed": stepped.performed,
        "terminated": result.terminated,
        "truncated": result.truncated,
    }
    if stepped.is_repeat:
        meta["repeat"] = True
    if is_plain:
        said = {"error": stepped.error, "notes": list(stepped.notes)}
        meta |= {name: value for name, value in said.items() if value}
    if stepped.reward is not None:
        meta["reward"] = stepped.reward
    if result.info and session.reward_policy == "per_step":
        meta["info"] = to_jsonable_python(result.info, fallback=str)
    if seen.values is not None:
        meta["values"] = seen.values
    if seen.image is not None:
        content.append(_image(seen.image))
        meta["screenshot"] = _size(seen.image)
    reply: dict[str, Any] = {**_COMPLETE, "content": content, "_meta": {"hud-mcp/step": meta}}
    return {**reply, "isError": True} if stepped.error else reply


def _step_text(stepped: Stepped, session: Seen, tail: str) -> str:
    result = stepped.result
    seen = result.observation
    lines = [stepped.error] if stepped.error else []
    lines.extend(stepped.notes)
    if seen.text:
        lines.append(seen.text)
    elif not (stepped.error or stepped.notes or tail or seen.image or seen.values is not None):
        lines.append("Done. This environment has nothing to look at; answer with response.")
    if stepped.reward is not None or result.terminated or result.truncated:
        reward = "" if stepped.reward is None else f"reward={stepped.reward:g} "
        ends = f"terminated={result.terminated} truncated={result.truncated}".lower()
        lines.append(f"{reward}{ends}")
        rewards = result.info.get("rewards") if session.reward_policy == "per_step" else None
        if isinstance(rewards, list) and len(cast("list[Any]", rewards)) > 1:
            lines.append(_each_reward(cast("list[float]", rewards)))
    if tail:
        lines.append(tail)
    return "\n".join(lines) or "Done."


def _each_reward(rewards: list[float]) -> str:
    """The reward of each step of several; equal ones that follow each other are told once."""
    runs = [(f"{value:g}", len(list(run))) for value, run in groupby(rewards)]
    shown = [f"{value} x {count}" if count > 1 else value for value, count in runs[:_MOST_REWARDS]]
    more = f", … {len(runs) - len(shown)} more" if len(runs) > len(shown) else ""
    return f"rewards: {', '.join(shown)}{more}"


def receipt_view(receipt: Receipt, policy: str) -> dict[str, Any]:
    """What an agent may know of a receipt.

    The author's `info` and the reason of a failed grading never leave: they may name
    the expected answer. Under `hidden`, nothing of the reward does.
    """
    shown: dict[str, Any] = {
        "outcome": receipt.outcome.value,
        "task": receipt.task,
        "environment": receipt.environment,
        "trajectory": receipt.trajectory,
        "attempt": receipt.attempt,
        "started_at": receipt.started_at.isoformat(timespec="seconds"),
        "ended_at": receipt.ended_at.isoformat(timespec="seconds"),
    }
    if receipt.attempt is None:
        del shown["attempt"]
    if receipt.notes:
        shown["notes"] = list(receipt.notes)
    graded = receipt.outcome is Outcome.GRADED
    if not graded or (policy != "hidden" and receipt.is_by_agent):
        shown["cause"] = cause_of(receipt.outcome, receipt.cause).value
    if policy == "hidden" or not graded:
        return shown
    shown["reward"] = receipt.reward
    if receipt.subscores:
        shown["subscores"] = [_subscore(s) for s in receipt.subscores]
    if receipt.content:
        shown["content"] = receipt.content
    return shown


def receipt_text(receipt: Receipt | None, policy: str, then: str) -> str:
    """A receipt in a sentence or two, and what its caller can do then.

    Args:
        receipt: None while the answer is being graded.
        policy: Who sees the reward.
        then: What the caller can do after the end.
    """
    if receipt is None:
        return "Your answer is being graded, which takes a while; call task_status for the result."
    if policy == "hidden" or receipt.outcome is not Outcome.GRADED:
        if receipt.told:
            return ended_text(receipt).replace(NEXT, then)
        return f"Your answer was received and graded; the task is over. {then}"
    cause = receipt.said_cause
    said = f", {cause}" if cause else ""
    parts = [f"Graded: reward {receipt.reward:g}{said}."]
    if receipt.content:
        parts.append(receipt.content)
    parts += [f"- {s.name}: {s.value:g}" for s in receipt.subscores]
    if receipt.attempt is not None and receipt.attempt > 1:
        parts.append(f"This was try {receipt.attempt} of the task.")
    parts.append(f"The task is over. {then}")
    return "\n".join(parts)


def trajectory_view(trajectory: Trajectory, policy: str) -> dict[str, Any]:
    """What an agent may read of its own record: no metadata, no log, no validation."""
    hidden_fields = {"reward", "info"} if policy != "per_step" else {"info"}
    steps = [
        step.model_dump(mode="json", exclude=hidden_fields | {"observation_url"})
        for step in trajectory.steps
        if step.kind not in ("evaluate", "reset")  # the operator's, with what answers are held to
    ]
    return {
        "id": trajectory.id,
        "environment": trajectory.environment,
        "task": trajectory.task.id,
        "template": trajectory.task.template,
        "prompt": trajectory.prompt,
        "steps": steps,
        "receipt": receipt_view(trajectory.receipt, policy) if trajectory.receipt else None,
    }


def _subscore(score: SubScore) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": score.name, "value": score.value, "weight": score.weight}
    if score.shown_children:
        shown["children"] = [_subscore(child) for child in score.shown_children]
    return shown


def _image(shot: Screenshot) -> dict[str, Any]:
    return {"type": "image", "data": shot.as_base64(), "mimeType": shot.mime_type}


def _size(shot: Screenshot) -> dict[str, Any]:
    return {"width": shot.width_px, "height": shot.height_px, "scale": shot.scale}
