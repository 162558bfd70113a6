"""OpenTelemetry: a trace for each trajectory, by the GenAI semantic conventions.

The conventions are those of open-telemetry/semantic-conventions-genai (2026, in development). The
root span is `invoke_agent`, above a `chat` span for each recorded turn and an `execute_tool` span
for each recorded step. A message to a user, and each turn of the user, is a `message` span. Ids are
made from the record's ids, so that the same record sent again is the same trace. The task's
arguments, its metadata and its grader's words are never sent.
"""

import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio.to_thread

from hud_mcp.base import __version__
from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins.view.export import libraries
from hud_mcp.plugins.view.export.atif import spent_by, tool_call
from hud_mcp.plugins.view.export.exporting import Export, Option, Output
from hud_mcp.plugins.view.export.files import clean_text, to_json
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.transcript import said_steps
from hud_mcp.record.values import TrajectoryStep
from hud_mcp.values.model_turn import RecordedTurn

_BATCH = 256
"""Spans in one request."""

_REASON_CHARS = 100
"""The most characters of a stop reason: a provider's word, and no place for the model's words."""

_PROVIDERS = {
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "openai-compatible": "openai",
    "mistral": "mistral_ai",
    "grok": "x_ai",
    "xai": "x_ai",
}
"""The conventions' names of providers, by our names, if the two differ."""

_SETTINGS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
}


@asynccontextmanager
async def _send(
    output: Output, *, endpoint: str | None = None, exporter: Any = None, content: bool = False
) -> AsyncGenerator[Callable[[Trajectory], None]]:
    """Open a sender of spans, to `exporter` if given. `content` sends messages and texts too.

    Raises:
        NotInstalled: The extra `otel` is needed.
        HudMcpError: The receiver refused spans; it has those of earlier trajectories. The same
            call again sends all with the same ids.
    """
    _need_sdk()
    sender = exporter or libraries.OTLPSpanExporter(endpoint=endpoint)
    where = endpoint or "the endpoint of OpenTelemetry's environment variables"
    output.place = Path(where)

    def send(trajectory: Trajectory) -> None:
        spans = trajectory_spans(trajectory, output.selection.job, content=content)
        for start in range(0, len(spans), _BATCH):
            taken = sender.export(spans[start : start + _BATCH])
            if taken is not libraries.SpanExportResult.SUCCESS:
                raise HudMcpError(
                    f"The spans of {trajectory.id} were refused by {where}. Start a collector "
                    "there, or name another one with --endpoint; then export again."
                )

    try:
        yield send
    finally:
        if exporter is None:
            await anyio.to_thread.run_sync(sender.shutdown)


export_otel = Export(
    "otel",
    "send OpenTelemetry spans.",
    "sent",
    _send,
    {
        "endpoint": Option(
            "--endpoint",
            "the endpoint of OTLP over HTTP. Default: the variable OTEL_EXPORTER_OTLP_ENDPOINT.",
            metavar="URL",
        ),
        "content": Option(
            "--content", "also send messages, reasoning, arguments and observations."
        ),
    },
)


def trajectory_spans(
    trajectory: Trajectory, job: Job | None, *, content: bool = False
) -> list[Any]:
    """Return a trajectory as finished spans of OpenTelemetry's SDK, the root last.

    Raises:
        NotInstalled: The extra `otel` is needed.
    """
    _need_sdk()
    trace = _Trace(trajectory)
    agent = job.agent if job and job.agent else "unknown"
    of_root = _root(trajectory, job, agent)
    root = trace.start("root", f"invoke_agent {agent}", trajectory.started_at, of_root)
    for turn in trajectory.turns:
        of_turn = f"turn {turn.number}"
        name = f"chat {_model(turn)}" if turn.model else "chat"
        attributes = _turn(turn, trajectory, content=content)
        span = trace.start(of_turn, name, turn.started_at, attributes, parent=root)
        trace.end(span, turn.ended_at, turn.error)
    for step, words in said_steps(trajectory.steps):
        if step.kind in ("message", "user"):
            role, attributes = _said(step, content=content)
            named = f"step {step.index}", f"message {role}"
            span = trace.start(*named, step.started_at, attributes, parent=root)
            trace.end(span, step.ended_at, step.error)
            continue
        tool, arguments = tool_call(step)
        attributes = _step(step, tool, arguments, content=content)
        attributes["hud_mcp.words"] = clean_text(words) if content else None
        of_step, name = f"step {step.index}", f"execute_tool {tool}"
        span = trace.start(of_step, name, step.started_at, attributes, parent=root)
        trace.end(span, step.ended_at, step.error)
    trace.end(root, trajectory.ended_at or datetime.now(UTC), trajectory.error and "no grade")
    return trace.spans


def _need_sdk() -> None:
    try:
        _ = libraries.TracerProvider, libraries.OTLPSpanExporter
    except ImportError as exc:
        raise NotInstalled(
            "Spans need OpenTelemetry's SDK, which is not installed; pip install 'hud-mcp[otel]'."
        ) from exc


class _Trace:
    """The spans of one trajectory, under ids that are made from its own."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._id = trajectory.id
        self.spans: list[Any] = []
        self._next = ""
        about = {"service.name": "hud-mcp", "service.version": __version__}
        provider = libraries.TracerProvider(
            resource=libraries.Resource.create(about),
            id_generator=self,
            sampler=libraries.ALWAYS_ON,
            shutdown_on_exit=False,
        )
        provider.add_span_processor(_collector(self.spans))
        self._tracer = provider.get_tracer("hud-mcp", __version__)

    def generate_trace_id(self) -> int:
        """Return the trace's id."""
        return _number(self._id, 16)

    def generate_span_id(self) -> int:
        """Return the id of the span that is started."""
        return _number(f"{self._id} {self._next}", 8)

    def is_trace_id_random(self) -> bool:
        """Whether ids are drawn: they are digests."""
        return False

    def start(
        self, key: str, name: str, at: datetime, attributes: dict[str, Any], *, parent: Any = None
    ) -> Any:
        """Start a span at a time; its key tells it from the others of the trace."""
        self._next = key
        empty = libraries.Context()
        return self._tracer.start_span(
            clean_text(name) or name,
            context=empty if parent is None else libraries.set_span_in_context(parent, empty),
            kind=libraries.SpanKind["CLIENT" if name.startswith("chat") else "INTERNAL"],
            attributes={k: v for k, v in attributes.items() if v is not None},
            start_time=_nanoseconds(at),
        )

    def end(self, span: Any, at: datetime, error: str | None) -> None:
        """End a span at a time; what was wrong is its class alone."""
        if error:
            span.set_attribute("error.type", "_OTHER")
            span.set_status(libraries.StatusCode.ERROR)
        span.end(end_time=max(_nanoseconds(at), span.start_time))


def _collector(spans: list[Any]) -> Any:
    class Collector(libraries.SpanProcessor):
        def on_end(self, span: Any) -> None:
            spans.append(span)

    return Collector()


def _root(trajectory: Trajectory, job: Job | None, agent: str) -> dict[str, Any]:
    use = trajectory.use
    model = next((turn for turn in trajectory.turns if turn.model), None)
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": clean_text(agent),
        "gen_ai.conversation.id": trajectory.id,
        "gen_ai.provider.name": None if model is None else _provider(model),
        "gen_ai.request.model": None if model is None else _model(model),
        "gen_ai.usage.input_tokens": use.input if use else None,
        "gen_ai.usage.output_tokens": use.output if use else None,
        "gen_ai.usage.cache_read.input_tokens": use.cached if use else None,
        "hud_mcp.job.id": trajectory.job_id,
        "hud_mcp.job.name": clean_text(job.name) if job else None,
        "hud_mcp.environment": trajectory.environment,
        "hud_mcp.task": clean_text(trajectory.task.id),
        "hud_mcp.outcome": trajectory.outcome.value if trajectory.outcome else None,
        "hud_mcp.reward": trajectory.reward,
        "hud_mcp.cost_usd": use.cost_usd if use else None,
    }


def _turn(turn: RecordedTurn, trajectory: Trajectory, *, content: bool) -> dict[str, Any]:
    usage = turn.usage
    asked = {
        attribute: value
        for name, attribute in _SETTINGS.items()
        if (value := _number_of(turn.settings.get(name))) is not None
    }
    stopped = clean_text(turn.stop_reason and turn.stop_reason[:_REASON_CHARS])
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _provider(turn),
        "gen_ai.conversation.id": trajectory.id,
        "gen_ai.request.model": _model(turn),
        **asked,
        "gen_ai.response.finish_reasons": [stopped] if stopped else None,
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
        "gen_ai.output.messages": to_json([_message(turn)]) if content else None,
        "gen_ai.input.messages": to_json(turn.messages) if content and turn.messages else None,
        "gen_ai.response.id": clean_text(turn.provider_id),
        "gen_ai.response.time_to_first_chunk": turn.first_token_s,
        "hud_mcp.turn": turn.number,
        "hud_mcp.cost_usd": turn.cost_usd,
        "hud_mcp.redacted": [name for name, _ in turn.removed] or None,
    }


def _number_of(value: Any) -> int | float | None:
    """Return a number that a span can hold; what agents report may be any."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 2**63 else None


def _message(turn: RecordedTurn) -> dict[str, Any]:
    said = [("reasoning", turn.reasoning), ("text", turn.text)]
    parts: list[dict[str, Any]] = [
        {"type": kind, "content": text} for kind, text in said if text is not None
    ]
    parts += [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in turn.calls
    ]
    return {"role": "assistant", "parts": parts, "finish_reason": turn.stop_reason or "stop"}


def _step(
    step: TrajectoryStep, tool: str, arguments: dict[str, Any], *, content: bool
) -> dict[str, Any]:
    seen = "\n".join(step.texts)
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": clean_text(tool),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": f"call-{step.index}",
        "gen_ai.tool.call.arguments": to_json(arguments) if content else None,
        "gen_ai.tool.call.result": clean_text(seen) if content else None,
        "hud_mcp.step": step.index,
        "hud_mcp.performed": step.performed,
        "hud_mcp.reward": step.reward,
        "hud_mcp.events": [clean_text(str(event)) for event in step.events] or None,
    }


def _said(step: TrajectoryStep, *, content: bool) -> tuple[str, dict[str, Any]]:
    words = [("assistant", str(each.get("text", ""))) for each in step.actions]
    if step.observation_text:
        words.append(("user", step.observation_text))
    messages = [
        {"role": role, "parts": [{"type": "text", "content": text}]} for role, text in words
    ]
    spent = spent_by([step]).get("extra", {})
    return "user" if step.kind == "user" else "assistant", {
        "gen_ai.operation.name": "message",
        "gen_ai.input.messages": to_json(messages) if content else None,
        "hud_mcp.step": step.index,
        "hud_mcp.user.tokens": spent.get("user_tokens"),
        "hud_mcp.user.cost_usd": spent.get("user_cost_usd"),
        "hud_mcp.events": [clean_text(str(event)) for event in step.events] or None,
    }


def _provider(turn: RecordedTurn) -> str:
    named, has, _ = (turn.model or "").partition(":")
    return (clean_text(_PROVIDERS.get(named, named)) if has else None) or "unknown"


def _model(turn: RecordedTurn) -> str | None:
    return clean_text((turn.model or "").rpartition(":")[2] or None)


def _nanoseconds(at: datetime) -> int:
    since: Any = at - datetime(1970, 1, 1, tzinfo=UTC)
    return max(0, (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000)


def _number(text: str, size: int) -> int:
    """Derive an id of `size` bytes from a text. It is never 0, which OpenTelemetry forbids."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size]) or 1
