"""A record as people read it: plain text for a terminal, HTML for a notebook.

What pages and models have written is made harmless here: no control character reaches a
terminal, and no text becomes markup.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from hud_mcp.grade import SubScore, cause_of
from hud_mcp.outcome import UNFINISHED
from hud_mcp.record.recorded_turn import RecordedTurn
from hud_mcp.record.values import Receipt, Record, TrajectoryStep
from hud_mcp.show.lines import (
    Line,
    block,
    indented,
    json_text,
    labelled,
    seconds_between,
    shortened,
    visible,
    visible_line,
)
from hud_mcp.show.phrases import RefNames, describe_action, note_of
from hud_mcp.show.turns import placed, turn_lines
from hud_mcp.task import Task

__all__ = [
    "PICTURES_LIMIT_BYTES",
    "Line",
    "notebook_html",
    "transcript",
    "transcript_html",
    "transcript_text",
    "visible",
    "visible_line",
]

PICTURES_LIMIT_BYTES = 20_000_000
"""Of all pictures of one record together, before base64; notebooks keep them in their file."""

_FRAME_HEIGHT_PX = 640
_FRAME_HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>A run</title>'
    '<meta name="color-scheme" content="light dark">'
    "<style>body { font: 14px/1.4 system-ui, sans-serif; background: Canvas; color: CanvasText }"
    " pre { white-space: pre-wrap; overflow-wrap: anywhere } th { text-align: left;"
    " white-space: nowrap; vertical-align: top }</style>"
)


def transcript_text(record: Record, *, full: bool = False) -> str:
    """Write a record as text.

    Args:
        record: What to show; it may still go on, and have no steps.
        full: Whether long texts are shown whole.
    """
    return "\n".join(line.text for line in transcript(record, full=full))


def transcript(record: Record, *, full: bool = False) -> Iterator[Line]:
    """Yield a record line by line: the task, the prompt, each step, the log, the receipt.

    Where the model's side was read, each turn stands before the steps that it led to.

    Args:
        record: What to show; it may still go on, and have no steps.
        full: Whether long texts are shown whole.
    """
    yield Line("title", f"{visible(record.id)}  {_end_text(record)}")
    for name, value in _facts(record):
        yield from labelled(name, value)
    if record.prompt is not None:
        yield from block("prompt", record.prompt, full=full)
    if not record.steps:
        yield Line("text", "no steps")
    names, turns = RefNames(), placed(record)
    for step in record.steps:
        for turn in turns.pop(step.index, ()):
            yield from turn_lines(turn, record.started_at, full=full)
        yield Line("text", "")
        yield from _step_lines(step, record.started_at, names, full=full)
        names.read(step.observation_text)
    for turn in (turn for rest in turns.values() for turn in rest):
        yield from turn_lines(turn, record.started_at, full=full)
    if record.logs:
        yield Line("text", "")
        yield from block("log", record.logs, full=full, style="heading")
    if record.receipt is not None:
        yield Line("text", "")
        yield Line("heading", "receipt")
        yield from _receipt_lines(record.receipt, full=full)


def _end_text(record: Record) -> str:
    if record.receipt is None:
        return UNFINISHED.value
    receipt, reward = record.receipt, record.receipt.reward
    parts = [receipt.outcome.value, "" if reward is None else f"{reward:g}", receipt.said_cause]
    return " ".join(part for part in parts if part)


def _facts(record: Record) -> list[tuple[str, str]]:
    """What was run, and when."""
    task = record.task
    version = f" {record.environment_version}" if record.environment_version else ""
    took = f", {seconds_between(record.started_at, record.ended_at)}" if record.ended_at else ""
    facts = [
        ("task", task.id + (f": {task.description}" if task.description else "")),
        ("environment", f"{record.environment}{version}, template {task.template}"),
        *_inputs(task),
        ("context", json_text(record.context) if record.context else ""),
        ("seed", "" if record.seed is None else str(record.seed)),
        ("job", record.job_id or ""),
        ("started", f"{record.started_at:%Y-%m-%d %H:%M:%S} UTC{took}"),
        ("model", "" if record.use is None else str(record.use)),
        ("pruned", "" if record.pruned is None else str(record.pruned).removeprefix("pruned ")),
        ("error", (record.error or "")),
    ]
    return [(name, value) for name, value in facts if value]


def _inputs(task: Task) -> list[tuple[str, str]]:
    if task.prompt is None:
        return [("arguments", json_text(task.args) if task.args else "")]
    return [
        (name, ", ".join(value) if name in ("setup", "evaluate") else json_text(value))
        for name, value in task.inputs.items()
    ]


def _step_lines(
    step: TrajectoryStep, began: datetime, names: Mapping[str, str], *, full: bool
) -> Iterator[Line]:
    yield Line("heading", _step_title(step, began))
    for i, action in enumerate(step.actions):
        yield Line("action", f"  > {_action_line(action, names)}{_state(step, i)}")
        if note := note_of(action):
            yield from labelled("note", note, indent="    ")
    if step.error:
        yield from block("error", step.error, full=full, indent="  ", style="error")
    for name, value in _step_facts(step):
        yield from labelled(name, value, indent="  ")
    if step.observation_text:
        yield from indented(step.observation_text, full=full)
    if step.screenshot is not None:
        size = f"{step.screenshot.width_px} x {step.screenshot.height_px}"
        path = _picture_path(step)
        shown = "its place is not known" if path is None else visible(str(path))
        gone = "" if path is None or path.is_file() else ", which is gone"
        yield Line("label", f"  picture  {shown} ({size}){gone}")


def _step_title(step: TrajectoryStep, began: datetime) -> str:
    after, took = (
        seconds_between(began, step.started_at),
        seconds_between(step.started_at, step.ended_at),
    )
    return f"step {step.index}  {step.kind}  at {after}, took {took}"


def _step_facts(step: TrajectoryStep) -> list[tuple[str, str]]:
    facts = [
        ("reward", "" if step.reward is None else f"{step.reward:g}"),
        ("ended", "terminated" if step.terminated else "truncated" if step.truncated else ""),
        ("interrupted", "an action may have been cut off half-way" if step.interrupted else ""),
        ("undone", "its world died, and was brought back to before it" if step.undone else ""),
        ("info", json_text(step.shown_info) if step.shown_info else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _state(step: TrajectoryStep, number: int) -> str:
    if number < step.performed:
        return ""
    return "  (failed)" if step.error and number == step.performed else "  (not performed)"


def _action_line(action: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What an action does, in one line."""
    return visible(describe_action(action, names)).replace("\n", r"\n").replace("\t", r"\t")


def _receipt_lines(receipt: Receipt, *, full: bool) -> Iterator[Line]:
    facts = [
        ("outcome", receipt.outcome.value),
        ("cause", cause_of(receipt.outcome, receipt.cause).value),
        ("reward", "none" if receipt.reward is None else f"{receipt.reward:g}"),
        ("ended", f"{receipt.ended_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("policy", f"reward {receipt.reward_policy}"),
        ("answer", f"SHA-256 {receipt.answer_digest}" if receipt.answer_digest else "none"),
        ("written by", f"hud-mcp {receipt.package_version}"),
        ("info", json_text(receipt.info) if receipt.info else ""),
    ]
    for name, value in facts:
        if value:
            yield from labelled(name, value, indent="  ")
    for line in _subscore_lines(receipt.subscores):
        yield Line("text", visible(line))
    if receipt.content:
        yield from block("content", receipt.content, full=full, indent="  ")
    if receipt.notes:
        yield from block("notes", "\n".join(receipt.notes), full=full, indent="  ")
    if receipt.error:
        yield from block("error", receipt.error, full=full, indent="  ", style="error")


def _subscore_lines(scores: Sequence[SubScore], depth: int = 1) -> Iterator[str]:
    for score in scores:
        info = f"  {json_text(score.info)}" if score.info else ""
        yield f"{'  ' * depth}{score.name}: {score.value:g}, weight {score.weight:g}{info}"
        yield from _subscore_lines(score.children, depth + 1)


def _picture_path(step: TrajectoryStep) -> Path | None:
    """Where the store has put a step's picture; None where the step was not loaded from one."""
    parts = urlsplit(step.observation_url or "")
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


# HTML, for notebooks.


def transcript_html(
    record: Record, *, full: bool = False, limit_bytes: int = PICTURES_LIMIT_BYTES
) -> str:
    """Write a record as a piece of HTML, with its pictures inside and without any script.

    Args:
        record: What to show; it may still go on, and have no steps.
        full: Whether long texts are shown whole.
        limit_bytes: Pictures beyond this sum are named and left out; the first ones stay.
    """
    rows = "".join(_html_row(name, value) for name, value in _facts(record))
    parts = [
        '<div class="hud-mcp-trajectory" style="max-width: 60em; line-height: 1.4">',
        f"<h3>{_html(record.id)} · {_html(_end_text(record))}</h3>",
        f"<table>{rows}</table>",
    ]
    if record.prompt is not None:
        parts.append(_html_block("Prompt", record.prompt, full=full))
    if not record.steps:
        parts.append("<p>No steps.</p>")
    pictures = _Pictures(limit_bytes)
    names, turns = RefNames(), placed(record)
    for step in record.steps:
        parts += [_html_turn(turn, record, full=full) for turn in turns.pop(step.index, ())]
        parts.append(_html_step(step, record.started_at, names, pictures, full=full))
        names.read(step.observation_text)
    rest = (turn for each in turns.values() for turn in each)
    parts += [_html_turn(turn, record, full=full) for turn in rest]
    if pictures.left_out:
        text = f"{pictures.left_out} pictures were left out, so that this does not grow too large."
        parts.append(f"<p>{text}</p>")
    if record.logs:
        parts.append(_html_block("Log", record.logs, full=full))
    if record.receipt is not None:
        lines = "\n".join(line.text for line in _receipt_lines(record.receipt, full=full))
        parts.append(f"<h4>Receipt</h4>{_html_pre(lines)}")
    return "\n".join([*parts, "</div>"])


def notebook_html(record: Record, *, full: bool = False) -> str:
    """Write a record for a notebook: a summary line, and the transcript in a frame that scrolls.

    The frame runs no script and cannot lead the notebook elsewhere. Where a notebook removes
    frames, the summary stays.

    Args:
        record: What to show; it may still go on, and have no steps.
        full: Whether long texts are shown whole.
    """
    count = len(record.steps)
    steps = "1 step" if count == 1 else f"{count:,} steps"
    said = f"{_html(record.task.id)} · {_html(_end_text(record))} · {steps} · {_html(record.id)}"
    page = f"{_FRAME_HEAD}{transcript_html(record, full=full)}"
    return (
        f'<div class="hud-mcp-trajectory"><p>{said}</p>'
        f'<iframe sandbox title="The steps of the run" srcdoc="{escape(page)}" '
        f'style="width: 100%; height: {_FRAME_HEIGHT_PX}px; border: 1px solid #8888">'
        "</iframe></div>"
    )


class _Pictures:
    """Reads pictures until their sum is reached.

    Args:
        limit_bytes: The sum.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._left_bytes = limit_bytes
        self.left_out = 0

    def element(self, step: TrajectoryStep) -> str:
        """A step's picture as an element, or why it is not there; nothing where it has none."""
        record = step.screenshot
        if record is None:
            return ""
        path = _picture_path(step)
        data = path.read_bytes() if path is not None and path.is_file() else None
        if data is None:
            return "<p>The picture is gone.</p>"
        if hashlib.sha256(data).hexdigest() != record.sha256:
            return "<p>The picture is damaged: its file is not what was recorded.</p>"
        if len(data) > self._left_bytes:
            self._left_bytes = 0  # the later ones too: a gap would look like a step without one
            self.left_out += 1
            return "<p>The picture was left out.</p>"
        self._left_bytes -= len(data)
        kind = "png" if record.extension == "png" else "jpeg"
        encoded = base64.b64encode(data).decode("ascii")
        return (
            f'<img src="data:image/{kind};base64,{encoded}" alt="The screen after step '
            f'{step.index}" style="max-width: 100%; border: 1px solid">'
        )


def _html_step(
    step: TrajectoryStep,
    began: datetime,
    names: Mapping[str, str],
    pictures: _Pictures,
    *,
    full: bool,
) -> str:
    actions = "".join(_html_action(step, i, names) for i in range(len(step.actions)))
    rows = "".join(_html_row(name, value) for name, value in _step_facts(step))
    return "".join(
        [
            f"<h4>{_html(_step_title(step, began))}</h4>",
            f"<ol>{actions}</ol>" if actions else "",
            _html_block("Error", step.error, full=full) if step.error else "",
            f"<table>{rows}</table>" if rows else "",
            pictures.element(step),
            _html_block("Text", step.observation_text, full=full) if step.observation_text else "",
        ]
    )


def _html_turn(turn: RecordedTurn, record: Record, *, full: bool) -> str:
    _, title, *lines = turn_lines(turn, record.started_at, full=full)
    said = "\n".join(line.text for line in lines)
    return f"<h4>{_html(title.text)}</h4>{_html_pre(said)}"


def _html_action(step: TrajectoryStep, number: int, names: Mapping[str, str]) -> str:
    action = step.actions[number]
    note = note_of(action)
    said = f"<br>{_html(note)}" if note else ""
    line = f"<code>{_html(_action_line(action, names))}</code>"
    return f"<li>{line}{_html(_state(step, number))}{said}</li>"


def _html_row(name: str, value: str) -> str:
    style = 'style="text-align: left; vertical-align: top"'
    return f"<tr><th {style}>{_html(name)}</th><td {style}>{_html(value)}</td></tr>"


def _html_block(name: str, text: str, *, full: bool) -> str:
    shown, left = (text, 0) if full else shortened(text)
    more = f"\n… {left:,} more characters" if left else ""
    return f"<details open><summary>{name}</summary>{_html_pre(shown + more)}</details>"


def _html_pre(text: str) -> str:
    style = "white-space: pre-wrap; overflow-wrap: anywhere; max-height: 24em; overflow: auto"
    return f'<pre style="{style}">{_html(text)}</pre>'


def _html(text: str) -> str:
    return escape(visible(text))
