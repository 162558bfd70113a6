"""One job as one HTML file that opens from disk, with no network and nothing beside it.

This module turns the record into plain data and puts it, with the pictures, into
`report.html`; `report.js` draws what is seen. Nothing of the record becomes markup: the
data is JSON without a single `<`, and the page's policy runs one script, by its hash.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from itertools import chain, zip_longest
from pathlib import Path
from statistics import fmean
from string import Template
from typing import Any

import anyio.to_thread

from hud_mcp import __version__
from hud_mcp.action import ClickAction, Described, DragAction, Point, Targeted, parse_action
from hud_mcp.errors import InvalidAction
from hud_mcp.grade import Outcome, SubScore
from hud_mcp.job import Job
from hud_mcp.store import Store
from hud_mcp.trajectory import Receipt, ScreenshotRecord, Trajectory, TrajectoryStep

__all__ = ["describe_action", "render_report", "report_data", "write_report"]

Json = dict[str, Any]
ReadPicture = Callable[[ScreenshotRecord], bytes | None]

PICTURE_LIMIT_BYTES = 150_000_000
"""Of all pictures together, before base64; a browser reads such a file in a few seconds."""

_UNFINISHED = "unfinished"
_TEXT_LIMIT = 20_000
"""Characters of one JSON value that somebody else chose, such as a grade's `info`."""
_HASH = re.compile(r"[0-9a-f]{64}")
_REF_LINE = re.compile(r"^\s*[-+]?\s*(.+?)(?: \[[^\]]*\])*? \[ref=(\w+)\]", re.MULTILINE)
_MIME = {"png": "image/png", "jpg": "image/jpeg"}
_CLICKS = {1: "click", 2: "double-click", 3: "triple-click"}


async def write_report(
    store: Store, job_id: str, path: Path, *, expected: Mapping[str, float | None] | None = None
) -> Path:
    """Write the report of a job.

    Args:
        store: Where the job is recorded.
        job_id: The job's id.
        path: The file to write; its folder is made. What was there stays until the new
            report is whole.
        expected: The reward that each task should get, by its id; None where any will do.

    Returns:
        The path.

    Raises:
        SourceNotFound: There is no such job.
        StoreFailed: The store cannot be read.
        OSError: The file cannot be written.
    """
    job, trajectories = await store.load_job(job_id)
    picture = partial(_read_picture, store)

    def write() -> None:
        html = render_report(job, trajectories, picture, expected=expected)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial_path = path.with_name(f".{path.name}.partial")
        try:
            partial_path.write_text(html, encoding="utf-8")
            partial_path.replace(path)
        finally:
            partial_path.unlink(missing_ok=True)

    await anyio.to_thread.run_sync(write)
    return path


def render_report(
    job: Job,
    trajectories: Sequence[Trajectory],
    picture: ReadPicture,
    *,
    expected: Mapping[str, float | None] | None = None,
    picture_limit_bytes: int = PICTURE_LIMIT_BYTES,
) -> str:
    """Render the report of a job as one HTML document.

    Args:
        job: What was run.
        trajectories: Its records, in the order to number them in.
        picture: Reads a picture's file; None where there is none. It is asked once per hash.
        expected: The reward that each task should get, by its id; None where any will do.
        picture_limit_bytes: Pictures beyond this sum are left out, and the page says so;
            the first ones of every trajectory come first.
    """
    known, elements = _embed_pictures(trajectories, picture, picture_limit_bytes)
    data = {**report_data(job, trajectories, expected=expected), "pictures": known}
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_csp_hash(style)}'; script-src '{_csp_hash(script)}'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return Template(_asset("report.html")).substitute(
        policy=policy, style=style, script=script, data=_inert(data), pictures="\n".join(elements)
    )


def report_data(
    job: Job,
    trajectories: Sequence[Trajectory],
    *,
    expected: Mapping[str, float | None] | None = None,
) -> Json:
    """Return what the page shows, without the pictures, as JSON values.

    Args:
        job: What was run.
        trajectories: Its records, in the order to number them in.
        expected: The reward that each task should get, by its id; None where any will do.
    """
    rows = [_trajectory(t, expected) for t in trajectories]
    rewards = [row["reward"] for row in rows if row["reward"] is not None]
    versions = sorted({t.receipt.package_version for t in trajectories if t.receipt})
    names = [*(outcome.value for outcome in Outcome), _UNFINISHED]
    counts = {name: sum(row["outcome"] == name for row in rows) for name in names}
    return {
        "job": {
            "id": job.id,
            "name": job.name,
            "taskset": job.taskset,
            "agent": job.agent,
            "created_at": _iso(job.created_at),
            "metadata": _as_text(job.metadata),
        },
        "versions": versions or [__version__],
        "mean": fmean(rewards) if rewards else None,
        "rewarded": len(rewards),
        "outcomes": counts,
        "expects": expected is not None,
        "trajectories": rows,
    }


def describe_action(action: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """Say in words what an action does, such as ``type "lamp" into #q, then Enter``.

    Args:
        action: As it is recorded: an action, or a tool's name and arguments.
        names: What refs stand for, such as ``{"e12": 'button "Buy"'}``.
    """
    if isinstance(action.get("tool"), str):
        return f"call {action['tool']} {_as_text(action.get('args')) or ''}".strip()
    try:
        parsed = parse_action(action)
    except InvalidAction:
        return _as_text(dict(action)) or "nothing"
    words = _WORDS[parsed.type](parsed, names or {})
    held = getattr(parsed, "hold_keys", None)
    return f"{words} while holding {'+'.join(held)}" if held else words


def _read_picture(store: Store, record: ScreenshotRecord) -> bytes | None:
    try:
        return store.screenshot_path(record).read_bytes()
    except OSError:
        return None


def _asset(name: str) -> str:
    return files("hud_mcp.web").joinpath(name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _inert(data: Json) -> str:
    """JSON in ASCII that no HTML parser sees a tag, a comment or an entity in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _embed_pictures(
    trajectories: Sequence[Trajectory], picture: ReadPicture, limit_bytes: int
) -> tuple[dict[str, Json], list[str]]:
    """Read each picture once; return what is known of each, and the elements that hold them."""
    shots = [[s.screenshot for s in t.steps if s.screenshot] for t in trajectories]
    records = {r.sha256: r for r in chain.from_iterable(zip_longest(*shots)) if r is not None}
    known: dict[str, Json] = {}
    elements: list[str] = []
    left_bytes = limit_bytes
    for sha256, record in records.items():
        data, problem = _checked(record, picture)
        if data is not None and len(data) > left_bytes:
            data, problem = None, "was left out, so that this file does not grow too large"
        if data is not None:
            left_bytes -= len(data)
            encoded = base64.b64encode(data).decode("ascii")
            # Its hash was computed from the data, so it is hexadecimal and safe as an id.
            elements.append(f'<script type="text/plain" id="picture-{sha256}">{encoded}</script>')
        size = {"width": record.width_px, "height": record.height_px}
        known[sha256] = {"mime": _MIME[record.extension], "problem": problem, **size}
    return known, elements


def _checked(record: ScreenshotRecord, picture: ReadPicture) -> tuple[bytes | None, str | None]:
    """A picture's bytes, or what is wrong with its file."""
    data = picture(record) if _HASH.fullmatch(record.sha256) else None
    if data is None:
        return None, "is missing"
    if hashlib.sha256(data).hexdigest() != record.sha256:
        return None, "is damaged: it is not what was recorded"
    return data, None


def _trajectory(trajectory: Trajectory, expected: Mapping[str, float | None] | None) -> Json:
    receipt, task = trajectory.receipt, trajectory.task
    reward = _finite(trajectory.reward)
    wanted = _finite((expected or {}).get(task.id))
    met = reward is not None and wanted is not None and math.isclose(reward, wanted, abs_tol=1e-9)
    ended = trajectory.ended_at
    return {
        "id": trajectory.id,
        "task": task.id,
        "description": task.description,
        "environment": trajectory.environment,
        "environment_version": trajectory.environment_version,
        "template": task.template,
        "seed": trajectory.seed if trajectory.seed is None else str(trajectory.seed),
        "args": _as_text(task.args),
        "context": _as_text(trajectory.context),
        "prompt": trajectory.prompt,
        "outcome": trajectory.outcome.value if trajectory.outcome else _UNFINISHED,
        "reward": reward,
        "expected": wanted,
        "surprise": wanted is not None and not met,
        "started_at": _iso(trajectory.started_at),
        "seconds": _seconds(trajectory.started_at, ended) if ended else None,
        "steps": _steps(trajectory),
        "logs": trajectory.logs,
        "receipt": _receipt(receipt) if receipt else None,
    }


def _receipt(receipt: Receipt) -> Json:
    facts = {
        "reward policy": receipt.reward_policy,
        "answer": receipt.answer_digest,
        "task": receipt.task_digest,
        "environment": receipt.environment_digest,
        "hud-mcp": receipt.package_version,
    }
    return {
        "subscores": [_subscore(s) for s in receipt.subscores],
        "content": receipt.content,
        "info": _as_text(receipt.info),
        "error": receipt.error,
        "facts": facts,
    }


def _subscore(score: SubScore) -> Json:
    return {
        "name": score.name,
        "value": score.value,
        "weight": score.weight,
        "info": _as_text(score.info),
        "children": [_subscore(child) for child in score.children],
    }


def _steps(trajectory: Trajectory) -> list[Json]:
    """The steps, each with the picture that it acted on and the names of its targets."""
    rows: list[Json] = []
    names: dict[str, str] = {}
    before: Json | None = None
    # CSS pixels per pixel of the picture that the agent's places are on. A picture that was
    # only taken for the record may be of another size.
    scale = next((s.screenshot.scale for s in trajectory.steps if s.screenshot), 1.0)
    for step in trajectory.steps:
        shot = step.screenshot
        after = {"sha256": shot.sha256, "scale": shot.scale, "step": step.index} if shot else None
        rows.append({**_step(step, names, scale, trajectory), "before": before, "after": after})
        before = after or before
        if shot is not None and step.kind in ("step", "screenshot"):
            scale = shot.scale
        _learn_names(step.observation_text or "", names)
    return rows


def _step(
    step: TrajectoryStep, names: Mapping[str, str], scale: float, trajectory: Trajectory
) -> Json:
    return {
        "kind": step.kind,
        "actions": [
            {**_action(raw, names, scale), "state": _state(step, i)}
            for i, raw in enumerate(step.actions)
        ],
        "text": step.observation_text,
        "reward": _finite(step.reward),
        "terminated": step.terminated,
        "truncated": step.truncated,
        "info": _as_text(step.info),
        "error": step.error,
        "after_s": _seconds(trajectory.started_at, step.started_at),
        "took_s": _seconds(step.started_at, step.ended_at),
    }


def _state(step: TrajectoryStep, number: int) -> str:
    if number < step.performed:
        return "performed"
    return "failed" if step.error and number == step.performed else "not performed"


def _action(raw: Mapping[str, Any], names: Mapping[str, str], scale: float) -> Json:
    """What is drawn of an action, in CSS pixels, and what is said of it."""
    drawn: Json = {"words": describe_action(raw, names)}
    try:
        action = parse_action(raw)
    except InvalidAction:
        return drawn
    drawn |= {"type": action.type, "note": _note(action)}
    if isinstance(action, Targeted):
        drawn["named"] = action.ref is not None or action.selector is not None
        if action.point is not None:
            drawn["point"] = _scaled(action.point, scale)
    if isinstance(action, DragAction):
        drawn["path"] = [_scaled(point, scale) for point in action.path]
    if action.type == "scroll" and action.scroll is not None:
        drawn["scroll"] = _scaled(action.scroll, 1)
    if action.type == "type":
        drawn["typed"] = action.text
    return drawn


def _note(action: Described) -> str | None:
    logs = action.logs if isinstance(action.logs, str) else _as_text(action.logs)
    return "\n".join(part for part in (action.reasoning, logs) if part) or None


def _learn_names(text: str, names: dict[str, str]) -> None:
    """Keep what each ref of a text stands for; a text of a whole page replaces the others."""
    found = {ref: name.removesuffix(":") for name, ref in _REF_LINE.findall(text)}
    if found and "Changed since the last text:" not in text:
        names.clear()
    names.update(found)


def _scaled(point: Point, scale: float) -> list[float]:
    return [point.x * scale, point.y * scale]


def _place(
    action: Targeted, names: Mapping[str, str], *, point: str = "at ", other: str = ""
) -> str:
    if action.point is not None:
        return f" {point}{_number(action.point.x)}, {_number(action.point.y)}"
    if action.ref is not None:
        name = names.get(action.ref)
        return f" {other}ref {action.ref}" + (f" ({name})" if name else "")
    return f" {other}{action.selector}" if action.selector is not None else ""


def _click(action: ClickAction, names: Mapping[str, str]) -> str:
    count = 1 + len(action.pattern or ())
    words = _CLICKS.get(count) or f"click {count} times"
    button = "" if action.button == "left" else f"{action.button} "
    return button + words + _place(action, names)


def _type(action: Any, names: Mapping[str, str]) -> str:
    then = ", then Enter" if action.enter_after else ""
    return f'type "{action.text}"{_place(action, names, other="into ")}{then}'


def _scroll(action: Any, names: Mapping[str, str]) -> str:
    x, y = action.scroll.x, action.scroll.y
    parts = [f"{_number(abs(y))} px {'down' if y > 0 else 'up'}"] if y or not x else []
    parts += [f"{_number(abs(x))} px {'right' if x > 0 else 'left'}"] if x else []
    return f"scroll {' and '.join(parts)}{_place(action, names, other='in ')}"


def _move(action: Any, names: Mapping[str, str]) -> str:
    if action.offset is not None:
        return f"move by {_number(action.offset.x)}, {_number(action.offset.y)}"
    return f"move{_place(action, names, point='to ', other='to ')}"


def _drag(action: DragAction, _names: Mapping[str, str]) -> str:
    first, *between, last = action.path
    through = f" through {len(between)} more" if between else ""
    start, end = (f"{_number(p.x)}, {_number(p.y)}" for p in (first, last))
    return f"drag from {start} to {end}{through}"


_WORDS: dict[str, Callable[[Any, Mapping[str, str]], str]] = {
    "click": _click,
    "press": lambda action, _: f"press {'+'.join(action.keys)}",
    "keydown": lambda action, _: f"hold {'+'.join(action.keys)} down",
    "keyup": lambda action, _: f"let {'+'.join(action.keys)} go",
    "type": _type,
    "scroll": _scroll,
    "move": _move,
    "wait": lambda action, _: f"wait {_number(action.time / 1000)} s",
    "drag": _drag,
    "screenshot": lambda _action, _: "take a screenshot",
    "position": lambda _action, _: "ask where the pointer is",
    "response": lambda action, _: f'answer "{action.text}"',
    "custom": lambda action, _: f"{action.action} {_as_text(action.args) or ''}".strip(),
}


def _number(value: float) -> str:
    return f"{round(value, 2):.12g}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _seconds(start: datetime, end: datetime) -> float:
    return round((end - start).total_seconds(), 3)


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


def _as_text(value: Mapping[str, Any] | Iterable[Any] | None) -> str | None:
    """Somebody's JSON as text, bounded; None where there is nothing in it."""
    if not value:
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        text = "(cannot be written as JSON)"
    if len(text) <= _TEXT_LIMIT:
        return text
    return f"{text[:_TEXT_LIMIT]} … {len(text) - _TEXT_LIMIT} more characters"
