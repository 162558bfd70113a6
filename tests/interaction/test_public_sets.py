"""Rows of public sets over MCP: what grades them reaches no agent, and files only their session."""

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from peers import Peer, http_peer, http_server

from hud_mcp.loading.public import Choice, import_set
from hud_mcp.plugins.sets.inspect_sets import InspectChoice, read_inspect
from hud_mcp.taskset import Taskset

pytestmark = [pytest.mark.anyio]

SECRET = "zanzibar"
PICTURE = b"\x89PNG\r\n\x1a\n\0"


@pytest.fixture
def shop() -> Iterator[str]:
    """A site of one page."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", "14")
            self.end_headers()
            self.wfile.write(b"<h1>Lamps</h1>")

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def sets(folder: Path, shop: str) -> Path:
    """Rows of three sets, in each of which the answer stands wherever a set has it."""
    gaia = folder / "sets" / "gaia" / "2023" / "validation"
    gaia.mkdir(parents=True)
    (gaia / "lamp list.txt").write_text("lamp")
    (gaia / "dot.png").write_bytes(PICTURE)
    rows = [
        {"task_id": name, "Question": "Which island?", "Level": 1, "Final answer": SECRET,
         "file_name": file, "Annotator Metadata": {"Steps": f"It is {SECRET}."}}
        for name, file in (("a", "lamp list.txt"), ("b", "dot.png"), ("c", ""))
    ]  # fmt: skip
    (gaia / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = import_set("GAIA-validation", Choice(gym="qa"), place=folder / "sets")
    assert found is not None
    tasks = list(found.tasks)
    quiz = {"input": "Which island?", "target": SECRET, "metadata": {"solution": SECRET}}
    (folder / "quiz.jsonl").write_text(json.dumps(quiz))
    tasks += read_inspect(folder / "quiz.jsonl", InspectChoice(scorer="includes"))
    arena = folder / "sets" / "webarena" / "config_files"
    arena.mkdir(parents=True)
    row = {
        "sites": ["shopping"], "task_id": 0, "storage_state": None, "start_url": "__SHOPPING__/",
        "intent": "Which island?", "intent_template_id": 1,
        "eval": {
            "eval_types": ["string_match", "url_match", "program_html"],
            "reference_answers": {"must_include": [SECRET]}, "string_note": SECRET,
            "reference_answer_raw_annotation": SECRET, "reference_url": f"__SHOPPING__/{SECRET}",
            "program_html": [{"url": f"__SHOPPING__/{SECRET}", "locator": "",
                              "required_contents": {"must_include": [SECRET]}}],
        },
    }  # fmt: skip
    (arena / "test.raw.json").write_text(json.dumps([row]))
    found = import_set("WebArena", Choice(hosts={"shopping": shop}), place=folder / "sets")
    assert found is not None
    path = folder / "rows.jsonl"
    Taskset([*tasks, *found.tasks]).to_file(path)
    return path


async def seen_of(peer: Peer, task: str) -> tuple[str, str]:
    """Everything that a client gets of a task, wrongly answered; and its session."""
    begun = await peer.ok("start_task", task=task)
    session = str(begun.structured["session"])
    shown = [repr(begun), repr(await peer.ok("task_status", session=session))]
    trajectory = f"hud://sessions/{session}/trajectory"
    shown.append(repr(await peer.client.read_resource(trajectory, cache_mode="bypass")))
    shown.append(repr(await peer.ok("response", session=session, answer="an island")))
    shown.append(repr(await peer.ok("task_status", session=session)))
    shown.append(repr(await peer.client.read_resource(trajectory, cache_mode="bypass")))
    return "\n".join(shown), session


@pytest.mark.long
@pytest.mark.browser
async def test_no_answer_of_a_public_set_reaches_a_client(
    tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in lists, schemas, prompts, resources, replies or grades, whatever the set says it in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = sets(tmp_path, shop)
    kept = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    options = ("--taskset", str(rows))
    with http_server(tmp_path, ("qa", "webarena"), *options, env=kept) as server:
        with anyio.fail_after(180):
            async with http_peer(server) as peer:
                client = peer.client
                shown = [
                    repr(await client.list_tools()), repr(await client.list_prompts()),
                    repr(await client.list_resources()),
                    repr(await client.list_resource_templates()),
                    repr(await peer.ok("list_tasks")),
                ]  # fmt: skip
                for name in ("qa", "webarena"):
                    uri = f"hud://environments/{name}"
                    shown.append(repr(await client.read_resource(uri, cache_mode="bypass")))
                for task in ("gaia-a", "gaia-c", "quiz-1", "webarena-0"):
                    assert task in shown[4]
                    told, _ = await seen_of(peer, task)
                    assert "graded" in told
                    shown.append(told)
                text = "\n".join(shown)
                assert "Which island?" in text
                assert SECRET not in text
                assert SECRET not in base64.b64encode(text.encode()).decode()


@pytest.mark.long
async def test_a_file_is_a_resource_of_its_own_session_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt names it; another session and another name have none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = sets(tmp_path, "http://127.0.0.1:9")
    tasks = Taskset.from_file(rows).filter("gaia-*")
    tasks.to_file(tmp_path / "gaia.jsonl")
    kept = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    options = ("--taskset", str(tmp_path / "gaia.jsonl"))
    with http_server(tmp_path, ("qa",), *options, env=kept) as server, anyio.fail_after(120):
        async with http_peer(server) as peer:
            begun = await peer.ok("start_task", task="gaia-a")
            session = begun.structured["session"]
            assert "hud://sessions/SESSION/files/lamp%20list.txt" in begun.text
            address = f"hud://sessions/{session}/files/lamp%20list.txt"
            (content,) = (await peer.client.read_resource(address)).contents
            assert (content.text, content.mime_type) == ("lamp", "text/plain")
            picture = (await peer.ok("start_task", task="gaia-b")).structured["session"]
            (content,) = (
                await peer.client.read_resource(f"hud://sessions/{picture}/files/dot.png")
            ).contents
            assert (base64.b64decode(content.blob), content.mime_type) == (PICTURE, "image/png")
            graded = await peer.ok("response", session=session, answer=SECRET)
            assert graded.structured["reward"] == 1.0
            for uri in (
                f"hud://sessions/{picture}/files/lamp%20list.txt",
                f"hud://sessions/{picture}/files/..%2Fdot.png",
                "hud://sessions/sess-0123456789abcdef0123456789abcdef/files/dot.png",
            ):
                with pytest.raises(MCPError) as caught:
                    await peer.client.read_resource(uri, cache_mode="bypass")
                assert caught.value.error.code == -32602
