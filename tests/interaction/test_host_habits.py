"""Requests of hosts with other habits are taken, or refused with the part that is wrong."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from peers import HttpServer, child_environment, http_server, serve_arguments
from waiting import PATIENCE_S

Json = dict[str, Any]

INITIALIZE: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "a host", "version": "1"},
}
ENVELOPE: Json = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
NONE: Json = {}


def request(method: str, params: Any, number: int = 1) -> Json:
    """A request, whatever its params are."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def post(url: str, body: Any, **headers: str | None) -> httpx.Response:
    """Send a body with these headers; None leaves out one that is sent otherwise."""
    sent: dict[str, str | None] = {
        "content_type": "application/json",
        "accept": "application/json, text/event-stream",
        **headers,
    }
    with httpx.Client(timeout=PATIENCE_S) as web:
        web.headers.clear()
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {k.replace("_", "-"): v for k, v in sent.items() if v is not None}
        return web.post(url, content=content, headers=named)


def message_of(reply: httpx.Response) -> Json:
    """The message of a reply in either form."""
    if reply.headers["content-type"].startswith("text/event-stream"):
        data = [line[5:] for line in reply.text.split("\n") if line.startswith("data:")]
        return json.loads(data[-1])
    return reply.json()


def modern(method: str, **params: Any) -> tuple[Json, dict[str, str]]:
    """A request of the 2026-07-28 era, with the headers that it needs."""
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
    if "name" in params:
        headers["mcp_name"] = params["name"]
    return request(method, {"_meta": dict(ENVELOPE), **params}), headers


def test_an_answer_has_the_form_that_its_client_accepts(server: HttpServer) -> None:
    """JSON alone, events alone, either, any or nothing at all, in both eras."""
    wrong: list[str] = []
    for accept, kinds in (
        ("application/json", ["application/json"]),
        ("text/event-stream", ["text/event-stream"]),
        (None, ["application/json"]),
        ("*/*", ["application/json", "text/event-stream"]),
        ("application/*", ["application/json"]),
        ("text/event-stream, application/json;q=0", ["text/event-stream"]),
        ("application/json;q=0.9, text/html", ["application/json"]),
    ):
        for era, (body, headers) in (
            ("2025", (request("initialize", INITIALIZE), {})),
            ("2026", modern("tools/list")),
            ("2026 call", modern("tools/call", name="list_tasks", arguments={})),
        ):
            reply = post(server.url, body, accept=accept, **headers)
            kind = reply.headers["content-type"].partition(";")[0]
            if reply.status_code != 200 or kind not in kinds or "result" not in message_of(reply):
                wrong.append(f"{era}, {accept}: {reply.status_code} {kind} {reply.text[:200]}")
    assert wrong == []


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_task_is_done_in_one_form_alone(server: HttpServer, accept: str) -> None:
    """A host that takes one form starts a task and is graded, in a connection of its own."""
    opened = post(server.url, request("initialize", INITIALIZE), accept=accept)
    held = {"mcp_session_id": opened.headers["mcp-session-id"], "accept": accept}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(server.url, note, **held).status_code == 202
    start = {"name": "start_task", "arguments": {"template": "reverse"}}
    begun = message_of(post(server.url, request("tools/call", start), **held))
    answer = {"session": begun["result"]["structuredContent"]["session"], "answer": "pmal"}
    call = request("tools/call", {"name": "response", "arguments": answer}, 2)
    graded = message_of(post(server.url, call, **held))
    assert graded["id"] == 2
    assert graded["result"]["structuredContent"]["reward"] == 1


def test_a_form_that_there_is_none_of_is_refused_by_name(server: HttpServer) -> None:
    """The refusal says what was asked for and what there is; a subscription is a stream."""
    refused = post(server.url, request("initialize", INITIALIZE), accept="text/html")
    assert refused.status_code == 406
    for said in ("'text/html'", "application/json", "text/event-stream"):
        assert said in refused.json()["error"]["message"]
    body, headers = modern("subscriptions/listen", notifications={})
    assert post(server.url, body, accept="application/json", **headers).status_code == 406


TAKEN: tuple[tuple[str, Any], ...] = (
    ("tools/call", {"name": "list_tasks", "arguments": []}),
    ("tools/call", {"name": "list_tasks", "arguments": None}),
    ("tools/call", {"name": "list_tasks", "_meta": []}),
    ("tools/call", {"name": "list_tasks", "_meta": {"progressToken": None}}),
    ("tools/list", []),
    ("tools/list", None),
    ("tools/list", {"cursor": None}),
    ("initialize", {**INITIALIZE, "capabilities": []}),
    ("initialize", {**INITIALIZE, "capabilities": {"roots": [], "experimental": []}}),
)
REFUSED: tuple[tuple[str, Any, list[str]], ...] = (
    ("initialize", {k: v for k, v in INITIALIZE.items() if k != "capabilities"}, ["capabilities"]),
    ("initialize", {**INITIALIZE, "clientInfo": {"name": "x"}}, ["clientInfo.version"]),
    ("initialize", {**INITIALIZE, "clientInfo": "x"}, ["clientInfo", "an object", "'x'"]),
    ("initialize", {**INITIALIZE, "protocolVersion": 5}, ["protocolVersion", "string", "5"]),
    ("initialize", NONE, ["params.protocolVersion", "params.capabilities"]),
    ("tools/call", {"arguments": {}}, ["params.name"]),
    ("tools/call", {"name": "list_tasks", "arguments": "x"}, ["arguments", "an object", "'x'"]),
    ("tools/call", {"name": "list_tasks", "arguments": [1]}, ["arguments", "an object", "[1]"]),
    ("tools/call", {"name": "x", "_meta": {"progressToken": [1]}}, ["progressToken", "[1]"]),
    ("prompts/get", {"name": "count_letters", "arguments": {"word": 5}}, ["arguments.word", "5"]),
    ("resources/read", {"uri": 5}, ["params.uri", "5"]),
    ("completion/complete", {"ref": {"type": "x"}, "argument": {}}, ["argument.name"]),
)
BARE: tuple[tuple[bytes, str], ...] = (
    (json.dumps([request("ping", {})]).encode(), "a batch"),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 5}', "params is not an object"),
    (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', "jsonrpc is not '2.0'"),
    (b'{"jsonrpc": "2.0", "id": 1}', "it has no method"),
    (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', "id is neither"),
    (b"{]", "not valid JSON"),
)
LIBRARY = ("Input should", "valid dictionary", "pydantic", "JSONRPC", "Invalid request parameters")


def on_stdio(folder: Path, *sent: Json | bytes) -> list[Json]:
    """What a server on stdio answers to these, in order."""
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in sent]
    done = subprocess.run(
        [sys.executable, *serve_arguments(["letter_count"], folder / "s.db")],
        input=b"".join(line + b"\n" for line in lines),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        env=child_environment(),
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def faults(method: str, answer: Mapping[str, Any], parts: list[str] | None) -> list[str]:
    """Say what is wrong with an answer: one that is taken, or refused by its parts."""
    if parts is None:
        return [] if "result" in answer else [f"{method} was refused: {answer}"]
    said = str(answer.get("error", {}).get("message", ""))
    missing = [part for part in parts if part not in said]
    words = [word for word in LIBRARY if word in said]
    return [f"{method}: {said!r} lacks {missing}, has {words}"] if missing or words else []


@pytest.mark.long
def test_an_envelope_is_taken_or_its_part_is_named_on_stdio(tmp_path: Path) -> None:
    """`[]` is none and `null` is left out; what is wrong is named without a library's words.

    A wrong `initialize` takes a server of its own, so one stands for those that go over HTTP.
    """
    cases = [(m, p, None) for m, p in TAKEN] + [(m, p, parts) for m, p, parts in REFUSED]
    begins = [case for case in cases if case[0] == "initialize"]
    cases = [case for case in cases if case not in begins[1:]]
    opening = [request("initialize", INITIALIZE, 999), {**NONE, "jsonrpc": "2.0",
               "method": "notifications/initialized"}]  # fmt: skip
    sent = [request(m, p, i) for i, (m, p, _) in enumerate(cases) if m != "initialize"]
    answers = {each["id"]: each for each in on_stdio(tmp_path, *opening, *sent)}
    wrong: list[str] = []
    for i, (method, params, parts) in enumerate(cases):
        if method == "initialize":
            (answers[i],) = on_stdio(tmp_path / str(i), request(method, params))
        wrong += faults(f"{method} {params}", answers[i], parts)
    before = on_stdio(tmp_path / "before", request("tools/list", {}))
    wrong += faults("before initialize", before[0], ["Send `initialize` first"])
    bare = on_stdio(tmp_path / "bare", *[line for line, _ in BARE])
    for (line, part), answer in zip(BARE, bare, strict=True):
        wrong += faults(str(line), answer, [part])
    assert wrong == []


def test_an_envelope_is_taken_or_its_part_is_named_over_http(server: HttpServer) -> None:
    """In the same words, in both eras."""
    wrong: list[str] = []
    opened = post(server.url, request("initialize", INITIALIZE))
    held = {"mcp_session_id": opened.headers["mcp-session-id"]}
    cases = [(m, p, None) for m, p in TAKEN] + [(m, p, parts) for m, p, parts in REFUSED]
    for method, params, parts in cases:
        headers = {} if method == "initialize" else held
        answer = message_of(post(server.url, request(method, params), **headers))
        wrong += faults(f"{method} {params}", answer, parts)
        if method in ("initialize", "resources/read"):  # the latter's header is refused first
            continue
        meta = params.get("_meta", {}) if isinstance(params, dict) else {}
        given = params if isinstance(params, dict) else {}
        body, named = modern(method, **{k: v for k, v in given.items() if k != "_meta"})
        body["params"]["_meta"] |= meta or {}
        answer = message_of(post(server.url, body, **named))
        wrong += faults(f"2026 {method} {params}", answer, parts)
    for line, part in BARE:
        wrong += faults(str(line), post(server.url, line, **held).json(), [part])
        wrong += faults(str(line), post(server.url, line).json(), [part])
    before = post(server.url, request("tools/list", {}))
    wrong += faults("before initialize", before.json(), ["Send `initialize` first"])
    assert before.json()["id"] == 1
    assert wrong == []


@pytest.mark.long
def test_nothing_that_is_sent_has_a_character_at_which_a_reader_ends_a_line(
    server: HttpServer, tmp_path: Path
) -> None:
    """Prompts, errors and results have the separators of every script, escaped."""
    odd = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"
    start = request("prompts/get", {"name": odd})
    unknown = request("tools/call", {"name": odd}, 2)
    opened = post(server.url, request("initialize", INITIALIZE))
    held = {"mcp_session_id": opened.headers["mcp-session-id"]}
    replies = [post(server.url, body, accept=accept, **held)
               for body in (start, unknown) for accept in ("application/json", "*/*")]  # fmt: skip
    texts = [reply.content for reply in replies]
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    lines = [json.dumps(e).encode() for e in (request("initialize", INITIALIZE, 0), note)]
    done = subprocess.run(
        [sys.executable, *serve_arguments(["letter_count"], tmp_path / "s.db")],
        input=b"\n".join([*lines, json.dumps(start).encode(), json.dumps(unknown).encode(), b""]),
        capture_output=True,
        timeout=PATIENCE_S,
        env=child_environment(),
        check=False,
    )
    texts.append(done.stdout)
    for each in texts:
        decoded = each.decode().replace("\r\n", "\n")
        assert decoded.splitlines() == decoded.removesuffix("\n").split("\n"), decoded[:300]
        assert "a\\u2028b\\u2029c\\u0085d" in decoded


REGIONS = """
from typing import Annotated

from pydantic import Field

from hud_mcp import Environment

env = Environment("regions")


@env.template
async def ask():
    yield "Where?"
    yield 1.0


@env.tool
async def near(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    return region
"""


@pytest.mark.long
def test_an_argument_that_comes_as_a_header_too_is_the_same_in_both(tmp_path: Path) -> None:
    """A proxy may have gone by the header; other tools take no notice of one."""
    (tmp_path / "regions.py").write_text(REGIONS)
    with http_server(tmp_path, [f"{tmp_path / 'regions.py'}"]) as server:

        def call(name: str, arguments: Json, **more: str) -> httpx.Response:
            body, headers = modern("tools/call", name=name, arguments=arguments)
            return post(server.url, body, **headers, **more)

        begun = message_of(call("start_task", {"template": "ask"}, mcp_param_region="north"))
        assert "result" in begun, begun
        asked = {"region": "north", "session": begun["result"]["structuredContent"]["session"]}
        same = message_of(call("near", asked, mcp_param_region="north"))
        assert same["result"]["content"][0]["text"] == "north"
        for other in ({"mcp_param_region": "south"}, {}):
            refused = call("near", asked, **other)
            assert refused.status_code == 400, refused.text
            assert "Mcp-Param-Region" in refused.json()["error"]["message"]
