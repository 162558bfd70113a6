"""Traces of a real server, as a collector of OpenTelemetry receives them."""

import gzip
import json
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import BOARD, MODERN, http_peer, http_server, read_reply
from waiting import PATIENCE_S, until

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Received:
    """One span."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    is_error: bool


@dataclass
class Collector:
    """What takes spans over HTTP, as OpenTelemetry's own collector does."""

    url: str
    spans: list[Received] = field(default_factory=list[Received])
    bodies: bytearray = field(default_factory=bytearray)

    def of(self, trace: str) -> dict[str, Received]:
        """The spans of one trace, by name; of several of one name, the last."""
        return {span.name: span for span in list(self.spans) if span.trace == trace}

    def take(self, body: bytes) -> None:
        """Read one request."""
        self.bodies += body
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for one in scope.spans:
                    values = {
                        each.key: each.value.string_value
                        or [item.string_value for item in each.value.array_value.values]
                        for each in one.attributes
                    }
                    self.spans.append(
                        Received(
                            one.name,
                            one.trace_id.hex(),
                            one.span_id.hex(),
                            one.parent_span_id.hex(),
                            values,
                            one.status.code == 2,
                        )
                    )


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            found.take(body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the library's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def traceparent() -> tuple[str, str]:
    """A trace of a caller's: its id, and how a request says so."""
    trace = secrets.token_hex(16)
    return trace, f"00-{trace}-{secrets.token_hex(8)}-01"


async def test_a_trace_follows_a_call_into_its_world_and_its_record(
    tmp_path: Path, collector: Collector
) -> None:
    """Each span is below the call's, which is a part of its caller's trace."""
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    options = ("--traces", "--log-format", "json", "--token", "ann=secret-of-ann")
    with http_server(tmp_path, (BOARD,), *options, env=env) as server:
        async with http_peer(server, era=MODERN, token="secret-of-ann") as ann:

            async def call(tool: str, **arguments: Any) -> tuple[str, Any]:
                trace, said = traceparent()
                with anyio.fail_after(PATIENCE_S):
                    result = await ann.client.call_tool(tool, arguments, meta={"traceparent": said})
                return trace, read_reply(result)

            given = {"marker": "a", "wanted": ["tea"]}
            begun, reply = await call("start_task", template="collect", arguments=given)
            session = reply.structured["session"]
            typed = {"type": "type", "text": "AN-AGENT-TYPED-THIS"}
            stepped, _ = await call("step", session=session, actions=[typed])
            answered, _ = await call("response", session=session, answer="AN-ANSWER")
            refused, _ = await call("step", session=session, actions=[typed])

        wanted = {
            begun: ("world.open", "store.write"),
            stepped: ("world.act", "world.action", "world.observe", "store.write"),
            answered: ("session.grade", "store.write"),
            refused: (),
        }
        for trace, names in wanted.items():
            await until(lambda t=trace, n=names: set(n) <= collector.of(t).keys())
        await until(lambda: any(n.startswith("tools/call") for n in collector.of(refused)))
        logged = [json.loads(line) for line in server.logged().splitlines()]
    for trace in wanted:
        spans = list(collector.of(trace).values())
        known = {span.id for span in spans}
        root = next(span for span in spans if span.name.startswith("tools/call"))
        assert root.parent, "its caller's span"
        assert root.parent not in known
        assert all(span.parent in known for span in spans if span is not root)
    step = collector.of(stepped)
    assert step["world.action"].parent == step["world.act"].id
    assert step["world.act"].attributes["hud_mcp.environment"] == "board"
    assert step["world.act"].attributes["hud_mcp.actions"] == ["type"]
    assert next(s for s in collector.of(refused).values() if s.name == "tools/call step").is_error
    assert {line["trace_id"] for line in logged if "trace_id" in line} <= set(wanted)
    assert any("trace_id" in line for line in logged)
    for secret in ("secret-of-ann", session, "AN-AGENT-TYPED-THIS", "AN-ANSWER"):
        assert secret.encode() not in collector.bodies


@pytest.mark.long
async def test_a_trace_is_taken_from_the_header_of_a_request(
    tmp_path: Path, collector: Collector
) -> None:
    """As a proxy before the server sends it, to a client that knows nothing of traces."""
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    trace, said = traceparent()
    with http_server(tmp_path, ("letter_count",), "--traces", env=env) as server:
        async with http_peer(server, era=MODERN, headers={"traceparent": said}) as peer:
            await peer.ok("list_tasks")
        assert await until(lambda: collector.of(trace).get("tools/call list_tasks"))
