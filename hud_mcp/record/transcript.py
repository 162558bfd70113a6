"""A record in words: its actions, its steps, and all of it as plain text for a terminal.

No control character of pages and models reaches the terminal.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from hud_mcp.base.text import clip_json
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidAction
from hud_mcp.record.values import Receipt, Record, TrajectoryStep
from hud_mcp.values.action import Action, parse_action
from hud_mcp.values.grade import SubScore, cause_of
from hud_mcp.values.model_turn import ModelCall, RecordedTurn
from hud_mcp.values.outcome import UNFINISHED
from hud_mcp.values.refs import CHANGES, Named, named_refs, said_apart

_IDLE = {"screenshot": "look", "step": "look", "user": "the user speaks"}
"""Kinds of steps that have no action, and yet do something."""


def read_action(recorded: Mapping[str, Any]) -> Action | None:
    """Read a recorded action; None for a tool's call, and for a form that no class reads."""
    try:
        return parse_action(recorded, pointed=False)
    except InvalidAction:
        return None


def describe_action(recorded: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """Say in words what an action does, such as `type “lamp” into the field “Search”`.

    `recorded` may also be a tool's name and arguments; anything else is shown unchanged. `names`
    has the elements that refs stand for, such as `{"e12": "the button “Buy”"}`.
    """
    if isinstance(recorded.get("tool"), str):
        return f"call {recorded['tool']} {clip_json(recorded.get('args')) or ''}".strip()
    if recorded.get("type") == "message_user":
        return f"say “{recorded.get('text')}”"
    action = read_action(recorded)
    if action is None:
        return clip_json(dict(recorded)) or "nothing"
    return action.words({} if names is None else names)


def note_of(recorded: Mapping[str, Any]) -> str | None:
    """Return the agent's note beside an action, or None."""
    action = read_action(recorded)
    return None if action is None else action.note


def describe_step(kind: str, actions: Sequence[str]) -> str:
    """Say in one line what a step did, from its actions in words."""
    return "; ".join(actions) or _IDLE.get(kind, f"{kind} without an action")


class RefNames(Mapping[str, str]):
    """The elements behind the refs of the texts read so far, such as `the button “Buy”`.

    The ref stands behind a name that several elements have. A text is only looked through when a
    name is wanted: most are never.
    """

    def __init__(self) -> None:
        self._named: dict[str, Named] = {}
        self._names: dict[str, str] = {}
        self._unread: list[str] = []

    def read(self, text: str | None) -> None:
        """Add a text; a whole page's text replaces the earlier ones."""
        if text is None or "[" not in text:
            return
        if CHANGES not in text:
            self._named.clear()
            self._names.clear()
            self._unread.clear()
        self._unread.append(text)

    def __getitem__(self, ref: str) -> str:
        return self._read_all()[ref]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read_all())

    def __len__(self) -> int:
        return len(self._read_all())

    def _read_all(self) -> dict[str, str]:
        for text in self._unread:
            self._named.update({each.ref: each for each in named_refs(text)})
        if self._unread:
            self._unread.clear()
            self._names = said_apart(self._named.values())
        return self._names


def said_steps(steps: Iterable[TrajectoryStep]) -> Iterator[tuple[TrajectoryStep, str]]:
    """Yield each step with its actions in words, by the texts before it."""
    names = RefNames()
    for step in steps:
        said = [describe_action(each, names) for each in step.actions]
        yield step, describe_step(step.kind, said)
        names.read(step.observation_text)


_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that change the direction of text, so that it reads as another one."""

_SHORT_LINES = 12
_SHORT_CHARS = 1_000

Style = Literal["title", "heading", "label", "text", "action", "error", "cut", "model"]


class Line(NamedTuple):
    """One line of a transcript, without control characters."""

    style: Style
    text: str


def visible(text: str) -> str:
    r"""Replace characters that a terminal obeys or reorders by their escapes, such as ``\x1b``.

    Line feeds and tabs stay; a carriage return before a line feed goes.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return "".join(c if c in "\n\t" or not _is_unsafe(c) else ascii(c)[1:-1] for c in text)


def visible_line(text: str) -> str:
    """Return the same in one line, for a cell of a table."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def labelled(name: str, value: str, *, indent: str = "") -> Iterator[Line]:
    """Yield a name and its value."""
    first, *rest = visible(value).split("\n")
    yield Line("error" if name == "error" else "label", f"{indent}{name.ljust(11)}  {first}")
    for line in rest:
        yield Line("text", f"{indent}{' ' * 13}{line}")


def block(
    name: str, text: str, *, full: bool, indent: str = "", style: Style = "label"
) -> Iterator[Line]:
    """Yield a heading, and a text below it."""
    yield Line(style, f"{indent}{name}")
    yield from indented(text, full=full, indent=f"{indent}  ")


def indented(text: str, *, full: bool, indent: str = "    ") -> Iterator[Line]:
    """Yield a text line by line; only its beginning unless `full`."""
    shown, left = (text, 0) if full else shortened(text)
    for line in visible(shown).rstrip("\n").split("\n"):
        yield Line("text", f"{indent}{line}".rstrip())
    if left:
        yield Line("cut", f"{indent}… {left:,} more characters")


def shortened(text: str) -> tuple[str, int]:
    """Return the first lines of a text, and how many characters are left out."""
    kept = "\n".join(text[: _SHORT_CHARS + 1].split("\n")[:_SHORT_LINES])
    if len(kept) > _SHORT_CHARS:
        kept = kept[:_SHORT_CHARS]
    left = len(text) - len(kept)
    return (text, 0) if not text[len(kept) :].strip() else (kept, left)


def json_text(value: Any) -> str:
    """Return a value as JSON that people read."""
    return json.dumps(value, ensure_ascii=False, default=str)


def seconds_between(start: datetime, end: datetime) -> str:
    """Return the time between two moments, in words."""
    return f"{(end - start).total_seconds():.1f} s"


def _is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS


def transcript_text(record: Record, *, full: bool = False) -> str:
    """Write a record as text, with long texts whole if `full`."""
    return "\n".join(line.text for line in transcript(record, full=full))


def transcript(record: Record, *, full: bool = False) -> Iterator[Line]:
    """Yield a record line by line: the task, the prompt, each step, the log, the receipt.

    Each recorded turn of the model stands before the steps that it led to.
    """
    yield Line("title", f"{visible(record.id)}  {end_text(record)}")
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


def end_text(record: Record) -> str:
    """Return the end of a record in a few words, such as `graded 1`."""
    if record.receipt is None:
        return UNFINISHED.value
    receipt, reward = record.receipt, record.receipt.reward
    parts = [receipt.outcome.value, "" if reward is None else f"{reward:g}", receipt.said_cause]
    return " ".join(part for part in parts if part)


def _facts(record: Record) -> list[tuple[str, str]]:
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
        ("user", "" if record.user is None else str(record.user)),
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
    for event in step.events:
        yield from labelled("world", str(event), indent="  ")
    if step.observation_text:
        yield from indented(step.observation_text, full=full)
    if step.screenshot is not None:
        size = f"{step.screenshot.width_px} x {step.screenshot.height_px}"
        path = picture_path(step)
        shown = "its place is not known" if path is None else visible(str(path))
        gone = "" if path is None or path.is_file() else ", which is gone"
        yield Line("label", f"  picture  {shown} ({size}){gone}")


def _step_title(step: TrajectoryStep, began: datetime) -> str:
    after, took = (
        seconds_between(began, step.started_at),
        seconds_between(step.started_at, step.ended_at),
    )
    return f"step {step.index + 1}  {step.kind}  at {after}, took {took}"


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


def picture_path(step: TrajectoryStep) -> Path | None:
    """Return the path of a step's picture; None if the step was not loaded from a store."""
    parts = urlsplit(step.observation_url or "")
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def placed(record: Record) -> dict[int, list[RecordedTurn]]:
    """Return a record's turns by the step that each one stands before; that of its call is last."""
    found: dict[int, list[RecordedTurn]] = {}
    for turn in sorted(record.turns, key=lambda turn: bool(turn.call_steps)):
        found.setdefault(turn.before_step, []).append(turn)
    return found


def turn_lines(turn: RecordedTurn, began: datetime, *, full: bool) -> Iterator[Line]:
    """Yield a turn line by line: what it used, thought, said and called."""
    yield Line("text", "")
    after = seconds_between(began, turn.started_at)
    took = seconds_between(turn.started_at, turn.ended_at)
    yield Line("model", f"turn {turn.number + 1}  model  at {after}, took {took}")
    for name, value in turn_facts(turn):
        yield from labelled(name, value, indent="  ")
    if turn.reasoning:
        yield from block("thought", turn.reasoning, full=full, indent="  ")
    if turn.text:
        yield from block("said", turn.text, full=full, indent="  ")
    for call in turn.calls:
        yield from block("called", call_text(call), full=full, indent="  ")
    if turn.error:
        yield from block("error", turn.error, full=full, indent="  ", style="error")
    for name, value in removed_text(turn):
        yield from labelled(name, value, indent="  ")


def turn_facts(turn: RecordedTurn) -> list[tuple[str, str]]:
    """Return the model, its settings and its usage."""
    facts = [
        ("model", turn.model or ""),
        ("settings", json_text(_short(turn.settings)) if turn.settings else ""),
        ("tokens", _tokens_text(turn)),
        ("cost", "" if turn.cost_usd is None else f"${turn.cost_usd:.6f}"),
        ("stopped", turn.stop_reason or ""),
        *_seen_facts(turn),
    ]
    return [(name, value) for name, value in facts if value]


def _short(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the lengths of a system prompt and of tools in place of these."""
    long = {"system": "characters", "tools": "tools"}
    return {n: f"{len(v)} {long[n]}" if n in long else v for n, v in settings.items()}


def _seen_facts(turn: RecordedTurn) -> Iterator[tuple[str, str]]:
    if turn.source is None:
        return
    yield "api", turn.dialect or ""
    steps = ["none" if index is None else f"step {index + 1}" for index in turn.call_steps]
    yield "its calls", ", ".join(steps)
    is_other = not (turn.model or "").endswith(f":{turn.asked_model}")
    yield "asked for", (turn.asked_model or "") * is_other
    yield "first byte", "" if turn.first_token_s is None else f"{turn.first_token_s:.2f} s"
    yield "tries before", "; ".join(f"{t.get('status')} {t.get('error')}" for t in turn.tries)
    yield "repeats", "" if turn.repeats is None else f"turn {turn.repeats}"
    yield "beside the dialogue", "yes" if turn.is_side else ""
    for message in turn.messages:
        for part in cast("list[Mapping[str, Any]]", message.get("parts", [])):
            yield str(message.get("role", "")), visible(_part_text(part))


def _part_text(part: Mapping[str, Any]) -> str:
    for name in ("text", "reasoning", "result"):
        if name in part:
            return str(part[name])
    return json_text(part)


def removed_text(turn: RecordedTurn) -> list[tuple[str, str]]:
    """Return the removals from a turn, with their times."""
    return [
        ("removed", f"{', '.join(each.fields)}, on {each.at:%Y-%m-%d %H:%M:%S} UTC")
        for each in turn.redactions
    ]


def call_text(call: ModelCall) -> str:
    """Return a call as the model made it."""
    arguments = call.arguments if isinstance(call.arguments, str) else json_text(call.arguments)
    return visible(f"{call.name} {arguments}")


def _tokens_text(turn: RecordedTurn) -> str:
    usage = turn.usage
    parts = [
        ("in", usage.input),
        ("cached", usage.cached or None),
        ("written to the cache", usage.cache_write or None),
        ("out", usage.output),
        ("of reasoning", usage.reasoning or None),
    ]
    return ", ".join(f"{count:,} {name}" for name, count in parts if count is not None)
