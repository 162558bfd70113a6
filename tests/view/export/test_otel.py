"""A record as OpenTelemetry spans: named by the GenAI conventions, at the times at which it was."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from recording import KEY, START, Recorded

from hud_mcp.errors import HudMcpError, SourceNotFound
from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.plugins.view.export import export_otel
from hud_mcp.plugins.view.export.otel import trajectory_spans
from hud_mcp.values.grade import Outcome
from hud_mcp.values.model_turn import ModelTurn

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

pytestmark = pytest.mark.anyio

THOUGHT = "THE-MODEL-THOUGHT-THIS"


def turn(second: float, **fields: Any) -> ModelTurn:
    """A reply that took a second and a half."""
    begun = START + timedelta(seconds=second)
    return ModelTurn.model_validate(
        {"started_at": begun, "ended_at": begun + timedelta(seconds=1.5), **fields}
    )


async def recorded(record: Recorded) -> None:
    """One trajectory with two turns and two steps."""
    click = {"type": "click", "point": {"x": 3.0, "y": 4.0}}
    await record.add(
        "price",
        [{"actions": [click], "observation_text": "a cart"}, {"kind": "act", "error": "no"}],
        reward=0.5,
    )
    asked = turn(
        0.25,
        model="google-gla:model-g",
        settings={"temperature": 0.5, "look": "both", "max_tokens": 1000},
        text="I click.",
        reasoning=THOUGHT,
        calls=[{"name": "step", "arguments": {"actions": [click]}, "id": "c1"}],
        usage={"input": 100, "output": 20, "cached": 60, "cache_write": 5, "reasoning": 7},
        cost_usd=0.25,
        stop_reason="tool_use",
    )
    failed = turn(3, model="google-gla:model-g", error="overloaded")
    await record.store.add_turns("traj-0", [asked], before_step=0)
    await record.store.add_turns("traj-0", [failed], before_step=2)


def nanoseconds(at: datetime) -> int:
    """A time as spans have it."""
    return round(at.timestamp() * 1000) * 10**6


async def test_a_trajectory_is_a_trace_of_the_conventions_spans(record: Recorded) -> None:
    """The agent, below it the model's turns and the tools' calls, each from when to when."""
    await recorded(record)
    memory = InMemorySpanExporter()
    summary = await export_otel(record.store, "job-1", exporter=memory)
    assert (summary.format, summary.trajectories, summary.steps) == ("otel", 1, 2)
    spans = {span.name: span for span in memory.get_finished_spans()}
    assert set(spans) == {
        "invoke_agent oracle", "chat model-g", "execute_tool step", "execute_tool act",
    }  # fmt: skip
    root = spans["invoke_agent oracle"]
    assert root.parent is None
    assert root.attributes["gen_ai.conversation.id"] == "traj-0"
    assert root.attributes["gen_ai.usage.input_tokens"] == 100
    own = {name for name in root.attributes if name.startswith("hud_mcp.")}
    names = "cost_usd environment job.id job.name outcome reward task"
    assert own == {f"hud_mcp.{name}" for name in names.split()}
    assert root.attributes["hud_mcp.reward"] == 0.5
    assert root.attributes["hud_mcp.outcome"] == "graded"
    first, second = (s for s in memory.get_finished_spans() if s.name == "chat model-g")
    assert dict(first.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.conversation.id": "traj-0",
        "gen_ai.request.model": "model-g",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 1000,
        "gen_ai.response.finish_reasons": ("tool_use",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_write.input_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 7,
        "hud_mcp.turn": 0,
        "hud_mcp.cost_usd": 0.25,
    }
    assert (first.kind, root.kind) == (SpanKind.CLIENT, SpanKind.INTERNAL)
    assert first.start_time == nanoseconds(START + timedelta(seconds=0.25))
    assert first.end_time == nanoseconds(START + timedelta(seconds=1.75))
    assert (second.status.status_code, second.attributes["error.type"]) == (
        StatusCode.ERROR,
        "_OTHER",
    )
    tool = spans["execute_tool step"]
    assert tool.attributes["gen_ai.tool.name"] == "step"
    assert spans["execute_tool act"].status.status_code is StatusCode.ERROR
    for span in (first, second, tool):
        assert span.parent.span_id == root.context.span_id
        assert span.context.trace_id == root.context.trace_id


async def test_the_same_record_sent_again_is_the_same_trace(record: Recorded) -> None:
    """Ids are made from the record's, so that a backend has each span once."""
    await recorded(record)
    ids: list[list[tuple[int, int]]] = []
    for _ in range(2):
        memory = InMemorySpanExporter()
        await export_otel(record.store, "traj-0", exporter=memory)
        found = memory.get_finished_spans()
        ids.append([(s.context.trace_id, s.context.span_id) for s in found])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 5


@pytest.mark.parametrize("content", [False, True])
async def test_what_was_said_and_seen_goes_along_only_where_it_is_asked_for(
    record: Recorded,
    content: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """In the conventions' form; an answer key never does, nor what was removed."""
    await recorded(record)
    memory = InMemorySpanExporter()
    await export_otel(record.store, "job-1", exporter=memory, content=content)
    told = str([dict(span.attributes) for span in memory.get_finished_spans()])
    assert (THOUGHT in told) is ("a cart" in told) is ("hud_mcp.words" in told) is content
    assert KEY not in told
    if content:
        chat = next(s for s in memory.get_finished_spans() if "hud_mcp.turn" in s.attributes)
        (message,) = json.loads(chat.attributes["gen_ai.output.messages"])
        assert [part["type"] for part in message["parts"]] == ["reasoning", "text", "tool_call"]
        await Upkeep(record.store).redact(["traj-0"], ["reasoning"])
        memory.clear()
        await export_otel(record.store, "job-1", exporter=memory, content=True)
        (after, *_) = (s for s in memory.get_finished_spans() if "hud_mcp.turn" in s.attributes)
        assert after.attributes["hud_mcp.redacted"] == ("reasoning",)
        assert THOUGHT not in str(after.attributes)


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A server that takes OTLP over HTTP, and what it was sent."""
    taken: list[ExportTraceServiceRequest] = []

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the library's name
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces"
            taken.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing is to be logged."""

    server = HTTPServer(("127.0.0.1", 0), Taker)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_collector_takes_the_spans_over_http(record: Recorded) -> None:
    """OTLP as protobuf: the service, the spans, and the parent of each."""
    await recorded(record)
    await record.add("broken", [], outcome=Outcome.LOST, reward=None)
    with collector() as (endpoint, taken):
        summary = await export_otel(record.store, "job-1", endpoint=endpoint)
    assert str(summary.path).endswith("/v1/traces")
    spans = [
        span
        for request in taken
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    names = sorted(span.name for span in spans)
    assert names == [
        "chat model-g", "chat model-g", "execute_tool act", "execute_tool step",
        "invoke_agent oracle", "invoke_agent oracle",
    ]  # fmt: skip
    services = {
        attribute.value.string_value
        for request in taken
        for resource in request.resource_spans
        for attribute in resource.resource.attributes
        if attribute.key == "service.name"
    }
    assert services == {"hud-mcp"}


async def test_a_collector_that_refuses_is_told(record: Recorded) -> None:
    """Nothing is lost in silence; what to do stands there."""
    await recorded(record)
    with (
        collector(status=400) as (endpoint, _),
        pytest.raises(HudMcpError, match=r"spans of traj-0 were refused by http.*--endpoint"),
    ):
        await export_otel(record.store, "job-1", endpoint=endpoint)
    with pytest.raises(SourceNotFound):
        await export_otel(record.store, "job-9", exporter=InMemorySpanExporter())


async def test_what_no_span_can_hold_is_left_out(
    record: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever an agent has reported: numbers that are too large, no characters, a long word."""
    await record.add("price", [], reward=0.5)
    settings = {"temperature": 2**70, "seed": True, "top_p": 0.5}
    for second, reason in enumerate(("half \ud83d", "x" * 5000)):
        odd = turn(second, stop_reason=reason, settings=settings)
        await record.store.add_turns("traj-0", [odd], before_step=0)
    trajectory = await record.store.load_trajectory("traj-0", turns=True)
    spans = trajectory_spans(trajectory, None)
    encode_spans(spans)
    assert caplog.text == ""
    asked = [dict(span.attributes) for span in spans if span.name == "chat"]
    assert [each["gen_ai.request.top_p"] for each in asked] == [0.5, 0.5]
    assert not {"gen_ai.request.temperature", "gen_ai.request.seed"} & asked[0].keys()
    assert [len(each["gen_ai.response.finish_reasons"][0]) for each in asked] == [6, 100]
