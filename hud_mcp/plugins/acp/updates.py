"""The news of an agent of the protocol, as turns and log lines of the record."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import anyio

from hud_mcp.agents.agent import Agent
from hud_mcp.base.text import clip
from hud_mcp.plugins.acp.connection import Json
from hud_mcp.record.values import utc_now
from hud_mcp.values.model_turn import TURN_BYTES, ModelCall, ModelTurn, TokenUsage

if TYPE_CHECKING:
    from acp.schema import Usage

__all__ = ["Updates"]

_LINES = 1_000
"""The log lines of one run that come from updates."""
_LINE_CHARS = 500
_RECORD_S = 10.0
_CALLS, _SEEN = 200, 20_000
"""The calls of one turn that are kept, and those of one run."""


@dataclass
class _Open:
    """A reply that is still being told."""

    began_at: datetime
    text: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    calls: dict[str, ModelCall] = field(default_factory=dict[str, ModelCall])
    chars: int = 0


class Updates:
    """The reader of an agent's updates.

    Text and thoughts until the next call of a tool begins are one turn, which the agent reports of
    itself. With a gateway the turns are seen on their way, and the updates are log lines alone.

    Args:
        agent: The handle that reports turns and keeps lines.
        reports: Whether turns are reported.

    Attributes:
        model: The model's name, if it is known.
        words: The text of the reply that ended last; empty after a call that ended its turn.
        is_replay: Whether the updates repeat what was told before.
    """

    def __init__(self, agent: Agent, *, reports: bool) -> None:
        self.model: str | None = None
        self.words = ""
        self.is_replay = False
        self._agent = agent
        self._reports = reports
        self._turn: _Open | None = None
        self._since_at = utc_now()
        self._lines = 0
        self._cost_usd = self._counted_usd = 0.0
        self._plan: Any = None
        self._kinds: dict[str, Any] = {}
        self._takers: dict[str, Callable[[Json], None]] = {
            "agent_message_chunk": lambda told: self._add(told, thought=False),
            "agent_thought_chunk": lambda told: self._add(told, thought=True),
            "tool_call": self._call,
            "tool_call_update": self._call,
            "plan": self._plans,
            "usage_update": self._uses,
        }

    def take(self, told: Any) -> None:
        """Take the update of a notification. What it does not know, it leaves out."""
        if self.is_replay or not isinstance(told, dict):
            return
        update = cast("Json", told)
        if (taker := self._takers.get(str(update.get("sessionUpdate")))) is not None:
            taker(update)

    def log(self, line: str) -> None:
        """Add a line to the record, up to a bound."""
        self._lines += 1
        if self._lines < _LINES:
            self._agent.log(f"acp: {clip(' '.join(line.split()), _LINE_CHARS)}")
        elif self._lines == _LINES:
            self._agent.log("acp: … later lines are left out")

    def close(self, stop_reason: str | None = None, usage: "Usage | None" = None) -> None:
        """End the reply that is being told, and report it.

        At the end of its work, the agent gives a reason, and the tokens of all of it.
        """
        self.words = "" if self._turn is None else self.words
        tokens = _usage(usage)
        cost_usd = self._cost_usd - self._counted_usd
        rest = stop_reason is not None and (cost_usd > 0 or tokens != TokenUsage())
        if self._turn is None and not rest:
            return
        turn, self._turn = self._turn or _Open(self._since_at), None
        self._counted_usd = self._cost_usd
        self.words = "".join(turn.text)
        now = utc_now()
        self._since_at = now
        if self._reports:
            self._agent.report(
                ModelTurn(
                    model=self.model,
                    text="".join(turn.text) or None,
                    reasoning="".join(turn.reasoning) or None,
                    calls=tuple(turn.calls.values()),
                    usage=tokens,
                    cost_usd=cost_usd if cost_usd > 0 else None,
                    stop_reason=stop_reason,
                    started_at=turn.began_at,
                    ended_at=now,
                )
            )

    def asked(self, call: Json) -> Json:
        """Note a call that waits for a permission; return it with the kind that it began with."""
        self.take({**call, "sessionUpdate": "tool_call_update", "status": "in_progress"})
        began_as = self._kinds.get(clip(str(call.get("toolCallId")), 200))
        return {**call, "kind": call.get("kind") or began_as}

    async def record(self) -> None:
        """Record the reported turns, so that they stand before the steps that they led to."""
        if self._agent.turns:
            # A turn that is sent is not sent again.
            with anyio.move_on_after(_RECORD_S, shield=True):
                await self._agent.is_open()

    def _open(self) -> _Open:
        self._turn = self._turn or _Open(self._since_at)
        return self._turn

    def _add(self, told: Json, *, thought: bool) -> None:
        content = told.get("content")
        block = cast("Json", content) if isinstance(content, dict) else {}
        text = block.get("text")
        if not isinstance(text, str):
            text = f"[{clip(str(block.get('type')), 40)}]"
        if self._turn is not None and self._turn.calls:
            self.close()
        turn = self._open()
        turn.chars += len(text)
        if turn.chars <= TURN_BYTES:
            (turn.reasoning if thought else turn.text).append(text)

    def _call(self, told: Json) -> None:
        """Note a call or news of it. The reply is over once a call of it begins to run."""
        number, status = clip(str(told.get("toolCallId")), 200), told.get("status")
        known = None if self._turn is None else self._turn.calls.get(number)
        # Some agents tell of a call first as they ask for it, or as it fails.
        if number not in self._kinds and len(self._kinds) < _SEEN:
            kind = self._kinds[number] = told.get("kind")
            known = ModelCall(name=clip(str(told.get("title") or number), 200), id=number)
            self.log(f"calls {known.name} ({kind or 'other'}, {number})")
        if known is not None and len(self._open().calls) < _CALLS:
            given = told.get("rawInput")
            if given is not None:
                is_short = len(text := str(given)) <= TURN_BYTES
                arguments = cast("Json", given) if isinstance(given, dict) and is_short else text
                known = known.model_copy(update={"arguments": arguments})
            self._open().calls[number] = known
        if status == "failed":
            self.log(f"call {number} failed")
        if known is not None and status in ("in_progress", "completed", "failed"):
            self.close()

    def _plans(self, told: Json) -> None:
        if (plan := told.get("entries")) == self._plan or not isinstance(plan, list):
            return
        self._plan = cast("list[Any]", plan)
        entries = [cast("Json", each) for each in self._plan if isinstance(each, dict)]
        shown = "; ".join(f"[{each.get('status')}] {each.get('content')}" for each in entries[:50])
        self.log(f"plans {shown}")

    def _uses(self, told: Json) -> None:
        """Note the cost of all work until now, which the agent tells as a sum."""
        given = told.get("cost")
        cost = cast("Json", given) if isinstance(given, dict) else {}
        amount = cost.get("amount") if cost.get("currency") == "USD" else None
        if isinstance(amount, int | float) and math.isfinite(amount):
            self._cost_usd = max(self._cost_usd, float(amount))


def _usage(told: "Usage | None") -> TokenUsage:
    """Read the tokens of a prompt. Their sum tells whether cached ones and thoughts are apart."""
    if told is None:
        return TokenUsage()
    read, written, thought = (
        n or 0 for n in (told.cached_read_tokens, told.cached_write_tokens, told.thought_tokens)
    )
    apart, cached = told.total_tokens - told.input_tokens - told.output_tokens, read + written
    return TokenUsage(
        input=told.input_tokens + (cached if apart in (cached, cached + thought) else 0),
        output=told.output_tokens + (thought if apart in (thought, cached + thought) else 0),
        cached=told.cached_read_tokens,
        cache_write=told.cached_write_tokens,
        reasoning=told.thought_tokens,
    )
