"""One reply of a model in a session, as it is reported and as the record has it.

No agent reads it, no grader and no replay either. The record masks keys in it, and cuts it.
"""

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, cast, get_args

from pydantic import Field

from hud_mcp.values.action import Value
from hud_mcp.values.masking import masked

__all__ = ["ModelCall", "ModelTurn", "TokenUsage"]


MODEL = "hud-mcp/model"
"""The key of `ModelTurn`s in a call's `_meta`; in a reply's, of the reason for no record."""


class ModelCall(Value):
    """One tool call as the model made it, before anything was scaled or renamed."""

    name: str
    arguments: dict[str, Any] | str = Field(
        default_factory=dict,
        description="The arguments; text if the model did not write a JSON object.",
    )
    id: str | None = Field(default=None, description="The provider's, or None.")


class TokenUsage(Value):
    """Tokens of one reply; None if the provider does not report them.

    The names and their meanings follow OpenTelemetry's GenAI conventions (`gen_ai.usage.*`). The
    input includes cached tokens, and the output includes reasoning.
    """

    input: int | None = Field(default=None, ge=0)
    output: int | None = Field(default=None, ge=0)
    cached: int | None = Field(default=None, ge=0, description="Input tokens read from a cache.")
    cache_write: int | None = Field(default=None, ge=0, description="Input written to a cache.")
    reasoning: int | None = Field(default=None, ge=0, description="Output tokens of reasoning.")


class TurnTokens(Value):
    """The tokens of one reply and its prompt, where an engine returns them."""

    shared: int = Field(
        default=0, ge=0, description="So many tokens of the turn `after` begin its prompt."
    )
    prompt_ids: tuple[int, ...] = Field(default=(), description="The prompt's later tokens.")
    ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    texts: tuple[str, ...] = ()


class ModelTurn(Value):
    """One reply of a model, and its request."""

    model: str | None = Field(
        default=None, description="The requested model, with its provider: `anthropic:…`."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Temperature, limits, look, the system prompt's digest."
    )
    text: str | None = Field(default=None, description="Its text beside its calls.")
    reasoning: str | None = Field(default=None, description="Its reasoning, if it is returned.")
    calls: tuple[ModelCall, ...] = ()
    usage: TokenUsage = Field(default_factory=TokenUsage)
    cost_usd: float | None = Field(default=None, ge=0, description="In US dollars, if it is known.")
    stop_reason: str | None = Field(default=None, description="In the provider's word.")
    error: str | None = Field(default=None, description="Why there is no whole reply, if not.")
    started_at: datetime
    ended_at: datetime
    dialect: str | None = Field(default=None, description="The wire form that it was asked in.")
    asked_model: str | None = Field(default=None, description="The model that the agent asked for.")
    provider_id: str | None = Field(default=None, description="The provider's id of the reply.")
    messages: tuple[dict[str, Any], ...] = Field(
        default=(), description="Of the request, those that are new since the turn `after`."
    )
    after: int | None = Field(default=None, ge=0, description="The number of the turn before.")
    repeats: int | None = Field(default=None, ge=0, description="The turn that was asked again.")
    tools: str | None = Field(default=None, description="The digest of the request's tools.")
    is_side: bool = Field(default=False, description="A title, a router, a reviewer or its like.")
    is_broken: bool = Field(default=False, description="The reply broke off.")
    first_token_s: float | None = Field(default=None, ge=0, description="To the first byte.")
    last_token_s: float | None = Field(default=None, ge=0, description="To the last byte.")
    tries: tuple[dict[str, Any], ...] = Field(
        default=(), description="Those that failed before: `status`, `error`, `waited_s`."
    )
    tokens: TurnTokens | None = None

    @property
    def latency_s(self) -> float:
        """Seconds from the request to the whole reply, retries included."""
        return (self.ended_at - self.started_at).total_seconds()


TURN_BYTES = 262_144
"""The most bytes of one turn; longer texts are cut."""

_TOKENS_BYTES = 4_194_304
"""The most bytes of a turn's tokens; more are not recorded."""

TURNS = 10_000
"""The most turns of one session; later turns are not recorded."""

TURN_BYTES_IN_ALL = 67_108_864
"""The most bytes of all turns of one session; later turns are not recorded."""

_MOST_TOKENS, _MOST_USD = 10**12, 10**6
"""More tokens than a reply uses. Larger reports are dropped, as they would spoil each sum."""

_CUT = "… [cut: {} more characters]"

RedactedField = Literal["reasoning", "text", "calls", "settings", "error", "messages"]

REDACTABLE: tuple[RedactedField, ...] = get_args(RedactedField)
"""The removable fields of a turn; its tokens, cost and times stay."""


class Redaction(Value):
    """A removal from a turn: its fields and its time."""

    fields: tuple[RedactedField, ...]
    at: datetime


TurnSource = Literal["gateway"]
"""The teller of a turn that is neither the agent nor the client: no call of a tool can set it."""


class RecordedTurn(ModelTurn):
    """A turn, and where in its session it was."""

    number: int = Field(default=0, ge=0, description="From 0, in the order of their reports.")
    before_step: int = Field(
        default=0, ge=0, description="How many steps there were when it was reported."
    )
    until_step: int = Field(
        default=0,
        ge=0,
        description="How many there were at the next turn: it led to the steps from "
        "`before_step` up to but not including this one.",
    )
    source: TurnSource | None = Field(
        default=None, description="`gateway` if it was seen on its way; None if it was reported."
    )
    call_steps: tuple[int | None, ...] = Field(
        default=(), description="For each call, its step or None; empty if the order alone tells."
    )
    redactions: tuple[Redaction, ...] = ()

    @property
    def steps(self) -> Sequence[int]:
        """The steps that it led to."""
        own = sorted(index for index in self.call_steps if index is not None)
        return own or range(self.before_step, max(self.before_step, self.until_step))

    def told_calls(self) -> list[dict[str, Any]]:
        """Return its calls as JSON values, with their steps."""
        told = [call.model_dump(mode="json") for call in self.calls]
        return [{**c, "step": at} for c, at in zip(told, self.call_steps, strict=False)] or told

    @property
    def removed(self) -> tuple[tuple[str, datetime], ...]:
        """Each removed field, with its time."""
        return tuple((name, each.at) for each in self.redactions for name in each.fields)

    def redacted(self, fields: Sequence[RedactedField], at: datetime) -> "RecordedTurn":
        """Return the same turn without some fields, and with a marker for those that it had."""
        had: tuple[RedactedField, ...] = ()
        for name in fields:
            had = (*had, name) if getattr(self, name) else had
        if not had:
            return self
        empty: dict[str, Any] = {"calls": (), "settings": {}, "messages": ()}
        changes: dict[str, Any] = {name: empty.get(name) for name in (*had, "tokens")}
        marker = Redaction(fields=had, at=at)
        return self.model_copy(update={**changes, "redactions": (*self.redactions, marker)})


def counted(turns: Sequence[RecordedTurn]) -> Sequence[RecordedTurn]:
    """Return the turns that count: reports of an agent do not, beside those of a gateway."""
    return [turn for turn in turns if turn.source is not None] or turns


def bounded(turn: ModelTurn, *, most_bytes: int = TURN_BYTES) -> ModelTurn:
    """Return a turn for the record: keys masked, impossible numbers dropped, long texts cut.

    `most_bytes` is its largest size as JSON, in ASCII.
    """
    told: dict[str, Any] = masked(turn.model_dump(mode="json", exclude={"tokens"}))
    for name in ("started_at", "ended_at"):
        told[name] = _aware(getattr(turn, name))
    if not (math.isfinite(turn.cost_usd or 0) and (turn.cost_usd or 0) <= _MOST_USD):
        told["cost_usd"] = None
    told["usage"] = {k: v for k, v in told["usage"].items() if v is None or v <= _MOST_TOKENS}
    if _size(told) > most_bytes:
        told = _fitted(told, most_bytes)
    return ModelTurn.model_validate({**told, "tokens": _kept(turn.tokens)})


def _kept(tokens: TurnTokens | None) -> TurnTokens | None:
    if tokens is None or _size(tokens.model_dump()) > _TOKENS_BYTES:
        return None
    text = "".join(tokens.texts)  # one token has a piece of a key
    return tokens if masked(text) == text else tokens.model_copy(update={"texts": ()})


def _fitted(told: dict[str, Any], most_bytes: int) -> dict[str, Any]:
    room, kept = most_bytes, told
    while room and _size(kept) > most_bytes:
        room //= 2
        kept = {name: _cut(v, room) if isinstance(v, str) else v for name, v in told.items()}
        kept["calls"] = _cut_calls(told["calls"], room)
        kept |= {n: _cut_json(told[n], room) for n in ("settings", "messages", "tries")}
    return kept


def _size(told: Any) -> int:
    return len(json.dumps(told, default=str))


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _cut(text: str | None, most_chars: int) -> str | None:
    if text is None or len(text) <= most_chars:
        return text
    return text[:most_chars] + _CUT.format(len(text) - most_chars)


def _cut_json(value: Any, most_chars: int) -> Any:
    """Return an object or a list with its long texts cut, or a mark if that does not do."""
    kept, longest = value, most_chars
    while longest and _size(kept) > most_chars:
        longest //= 2
        kept = _cut_texts(value, longest)
    mark = {"cut": f"{_size(value)} characters"}
    return kept if _size(kept) <= most_chars else mark if isinstance(value, dict) else [mark]


def _cut_texts(value: Any, most_chars: int) -> Any:
    if isinstance(value, dict):
        return {k: _cut_texts(v, most_chars) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_cut_texts(each, most_chars) for each in cast("list[Any]", value)]
    return _cut(value, most_chars) if isinstance(value, str) else value


def _cut_calls(calls: Sequence[dict[str, Any]], most_chars: int) -> list[dict[str, Any]]:
    """Return the first calls that fit; arguments that are too long become cut text."""
    kept: list[dict[str, Any]] = []
    for call in calls:
        given = call["arguments"]
        text = given if isinstance(given, str) else json.dumps(given)
        small = len(text) <= most_chars
        arguments = given if small else _cut(text, most_chars)
        made = {"name": _cut(call["name"], 200), "id": _cut(call["id"], 200)}
        kept.append({**made, "arguments": arguments})
        most_chars -= min(len(text), most_chars) + 100
        if most_chars <= 0 and len(kept) < len(calls):
            more = ModelCall(name="…", arguments=f"[cut: {len(calls) - len(kept)} more calls]")
            return [*kept, more.model_dump(mode="json")]
    return kept


NumberT = TypeVar("NumberT", int, float)


_SUMS = ["turns", "input", "output", "cached", "cost_usd", "priced", "model_s", "environment_s"]


class ModelUse(Value):
    """The sum over turns; a figure that no turn tells is None, and never 0."""

    turns: int = Field(default=0, description="How many replies of the model are recorded.")
    input: int | None = Field(default=None, description="Tokens in, those from a cache included.")
    output: int | None = Field(default=None, description="Tokens out, reasoning included.")
    cached: int | None = Field(default=None, description="Of those in, read from a cache.")
    cost_usd: float | None = Field(
        default=None, description="In US dollars, of the turns whose cost is known."
    )
    priced: int = Field(default=0, description="How many turns those are.")
    model_s: float = Field(default=0.0, description="Seconds from requests to whole replies.")
    environment_s: float = Field(default=0.0, description="Seconds of all steps.")
    source: TurnSource | None = Field(
        default=None, description="`gateway` if these turns alone were seen on their way."
    )

    @classmethod
    def sum_of(cls, uses: "Iterable[ModelUse | None]") -> "ModelUse | None":
        """Return the sum of several, or None for no usage at all."""
        told = [use for use in uses if use is not None]
        if not told:
            return None
        return cls.model_validate({n: sum_told(getattr(use, n) for use in told) for n in _SUMS})

    def per(self, tasks: int) -> str:
        """Return the means over so many tasks in one line."""
        parts = [f"{self.turns / tasks:.1f} turns"]
        if self.input is not None or self.output is not None:
            means = [None if n is None else round(n / tasks) for n in (self.input, self.output)]
            parts.append(f"{_told(means[0])} tokens in, {_told(means[1])} out")
        if self.cost_usd is not None:
            parts.append(f"${self.cost_usd / tasks:.4f}")
        model_s, world_s = self.model_s / tasks, self.environment_s / tasks
        return "; ".join([*parts, f"model {model_s:.1f} s, environment {world_s:.1f} s"])

    def __str__(self) -> str:
        """Return the figures in one line."""
        parts = [f"{self.turns} turn{'s' * (self.turns != 1)}"]
        if self.input is not None or self.output is not None:
            cached = f" ({self.cached:,} cached)" if self.cached else ""
            parts.append(f"{_told(self.input)} tokens in{cached}, {_told(self.output)} out")
        times = f"model {self.model_s:.1f} s, environment {self.environment_s:.1f} s"
        return "; ".join([*parts, self.cost_text, times])

    @property
    def cost_text(self) -> str:
        """The cost, and the number of turns without a known one."""
        if self.cost_usd is None:
            return "cost not known"
        unknown = self.turns - self.priced
        of = f" without {unknown} turns of unknown cost" if unknown else ""
        return f"${self.cost_usd:.4f}{of}"


def sum_told(values: "Iterable[NumberT | None]") -> NumberT | None:
    """Return the sum of the known values; None if none is known."""
    told = [value for value in values if value is not None]
    return sum(told[1:], told[0]) if told else None


def _told(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"
