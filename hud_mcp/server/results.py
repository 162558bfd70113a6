"""Results for clients: text first, one picture second, and no hidden reward.

Results are plain dicts in wire form: a picture is encoded once and validated once, by
the SDK on its way out.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Protocol, cast

from pydantic_core import to_jsonable_python

from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt
from hud_mcp.session.draft import Stepped
from hud_mcp.session.receipts import NEXT, ended_text
from hud_mcp.session.session import Session
from hud_mcp.values.grade import Outcome, SubScore, cause_of
from hud_mcp.values.observation import ImageFormat, Screenshot
from hud_mcp.values.reply import ToolReply

__all__ = [
    "error_result",
    "image_result",
    "passed_result",
    "receipt_text",
    "receipt_view",
    "step_result",
    "structured_result",
    "trajectory_view",
]

_COMPLETE = {"resultType": "complete"}
"""A part of every result: required on the 2026-07-28 wire, ignored before."""

_OURS = ("hud-mcp/", "io.modelcontextprotocol/")
"""The beginnings of keys that another server may not set for us."""

_MOST_REWARDS = 50
"""The most rewards of one call in a text; programs find all of them beside it."""


def error_result(
    text: str, *, kind: str | None = None, retry_after_s: float | None = None
) -> dict[str, Any]:
    """Return a failure that the model reads and can act on.

    Args:
        text: The text for the model.
        kind: The name of its class, for programs.
        retry_after_s: The time after which the same call may pass, for programs.
    """
    failed = {**_COMPLETE, "content": [{"type": "text", "text": text}], "isError": True}
    meta: dict[str, Any] = {} if kind is None else {"hud-mcp/error": kind}
    if retry_after_s is not None:
        meta["hud-mcp/retry_after_s"] = retry_after_s
    return {**failed, "_meta": meta} if meta else failed


def structured_result(
    value: dict[str, Any], text: str, meta: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return data with a readable form of it; hosts show a model one of the two."""
    result: dict[str, Any] = {
        **_COMPLETE,
        "content": [{"type": "text", "text": text}],
        "structuredContent": value,
    }
    return {**result, "_meta": meta} if meta else result


def image_result(
    shot: Screenshot, session: Session, *, asked: ImageFormat, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a picture and its size, without structured content: hosts would hide the picture.

    Args:
        shot: The picture.
        session: The session.
        asked: The requested format; a picture that is too large in it has another.
        notes: The notes of the world's moves.
    """
    size = f"{shot.width_px} x {shot.height_px} px"
    other = ""
    if shot.mime_type != f"image/{asked}":
        why = ": as PNG it would be too large" if asked == "png" else ""
        other = f", as {shot.mime_type.removeprefix('image/').upper()}{why}"
    return {
        **_COMPLETE,
        "content": [
            {"type": "text", "text": "\n".join((f"Screenshot, {size}{other}.", *notes))},
            _image(shot),
        ],
        "_meta": {
            "hud-mcp/screenshot": {"session": session.id, "steps": session.steps, **_size(shot)}
        },
    }


class Seen(Protocol):
    """The parts of a session in a step's reply."""

    @property
    def id(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def reward_policy(self) -> str: ...


def passed_result(stepped: Stepped, session: Seen) -> dict[str, Any]:
    """Return the reply of another server, unchanged but for metadata that would pass for ours."""
    reply = stepped.reply or ToolReply()
    theirs = {k: v for k, v in reply.meta.items() if not k.startswith(_OURS)}
    step = {"session": session.id, "steps": session.steps}
    result: dict[str, Any] = {
        **_COMPLETE,
        "content": [*reply.content, *({"type": "text", "text": note} for note in stepped.notes)],
        "_meta": {**theirs, "hud-mcp/step": step},
    }
    if reply.structured is not None:
        result["structuredContent"] = reply.structured
    return {**result, "isError": True} if reply.is_error else result


def step_result(
    stepped: Stepped, session: Seen, *, tail: str = "", is_plain: bool = False
) -> dict[str, Any]:
    """Return the result of a step, text first.

    Args:
        stepped: The step.
        session: The session.
        tail: The end of the text.
        is_plain: Whether the text is the observation alone; the rest stands in `_meta`.
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
    rewards = result.info.get("rewards") if session.reward_policy == "per_step" else None
    several = isinstance(rewards, list) and len(cast("list[Any]", rewards)) > 1
    each = _each_reward(cast("list[float]", rewards)) if several else ""
    stands = [] if stepped.reward is None else [f"reward={stepped.reward:g}{each}"]
    stands += ["terminated=true"] if result.terminated else []
    stands += ["truncated=true"] if result.truncated else []
    if stands:
        lines.append(" ".join(stands))
    if tail:
        lines.append(tail)
    return "\n".join(lines) or "Done."


def _each_reward(rewards: list[float]) -> str:
    """Return the rewards of several steps, with equal neighbours once."""
    runs = [(f"{value:g}", len(list(run))) for value, run in groupby(rewards)]
    shown = [f"{value} x {count}" if count > 1 else value for value, count in runs[:_MOST_REWARDS]]
    more = f", … {len(runs) - len(shown)} more" if len(runs) > len(shown) else ""
    return f" ({', '.join(shown)}{more})"


def receipt_view(receipt: Receipt, policy: str) -> dict[str, Any]:
    """Return a receipt for an agent.

    The author's `info` and the reason of a failed grading never leave, because they may name the
    expected answer. Under `hidden`, no trace of the reward leaves.
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
    """Return a receipt in a sentence or two, with the caller's next step.

    Args:
        receipt: None while the answer is being graded.
        policy: The policy on rewards.
        then: The caller's next step after the end.
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
    """Return a record for its agent, without metadata, log and validation."""
    hidden_fields = {"reward", "info", "events"} if policy != "per_step" else {"info", "events"}
    steps = [
        step.model_dump(mode="json", exclude=hidden_fields | {"observation_url"})
        for step in trajectory.steps
        # the operator's steps, which have the expected answers; a message has its user's words
        if step.kind not in ("evaluate", "reset", "user")
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
