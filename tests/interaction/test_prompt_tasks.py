"""A task with a prompt and its own calls lives as one of a template does, for every client."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from asked_tasks import ASKED, BOUND_S, LIST, ROWS, SECRET, write
from peers import (
    BOARD,
    WAYS,
    HttpServer,
    Peer,
    Way,
    child_environment,
    http_peer,
    http_server,
    load,
    load_all,
    stdio_peer,
)

from hud_mcp.channel.client import ChannelClient
from hud_mcp.plugins.hud.wire.streams import ChannelRefused

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, taskset: str) -> Iterator[HttpServer]:
    """A server of them over HTTP."""
    folder = tmp_path_factory.mktemp("web")
    with http_server(folder, (ASKED, BOARD), "--taskset", taskset) as running:
        yield running


@pytest.fixture(params=WAYS, ids=str)
async def client(
    request: pytest.FixtureRequest, web: HttpServer, taskset: str, tmp_path: Path
) -> AsyncIterator[Peer]:
    """A client of such a server, in each transport and era."""
    way: Way = request.param
    if way.transport == "http":
        async with http_peer(web, era=way.era) as peer:
            yield peer
    else:
        options = ("--taskset", taskset)
        async with stdio_peer(tmp_path, (ASKED, BOARD), *options, era=way.era) as peer:
            yield peer


async def work(peer: Peer, session: str) -> None:
    """Do what the first row asks for."""
    await peer.ok("act", session=session, type="type", text="mi")
    await peer.ok("step", session=session, actions=[
        {"type": "type", "text": "lk", "enter_after": True}
    ])  # fmt: skip


@pytest.mark.long
async def test_a_client_gets_such_a_task_as_any_other(client: Peer) -> None:
    """Listed, offered as a prompt, started, acted on, answered, graded and recorded."""
    listed = await client.ok("list_tasks")
    (row,) = [t for t in listed.structured["tasks"] if t["id"] == "list"]
    assert row == {
        "id": "list",
        "environment": "asked",
        "template": "prompt",
        "description": "Write milk below the notes, and say which fruit is there.",
    }
    prompts = [p.name for p in (await client.client.list_prompts()).prompts]
    assert "task" in prompts
    asked = await client.client.get_prompt("task", {"id": "list"})
    assert asked.messages[0].content.text == LIST["prompt"]  # type: ignore[union-attr]

    started = await client.ok("start_task", task="list")
    session = started.structured["session"]
    assert started.structured["prompt"] == LIST["prompt"]
    seen = await client.ok("step", session=session)
    assert "tea" in seen.text
    assert "right" in seen.text
    other = await client.ok("start_task", task="list")
    await work(client, other.structured["session"])
    graded = await client.ok(
        "response", session=other.structured["session"], answer="It is a PLUM."
    )
    assert graded.structured["reward"] == 1.0
    parts = [s["name"] for s in graded.structured["subscores"]]
    assert parts == ["part 1", "part 2", "part 3"], "functions are what answers are held to"
    wrong = await client.ok("response", session=session, answer="plum")
    assert wrong.structured["reward"] == 0.0

    record = await load(client.store, other.meta["hud-mcp/start"]["trajectory"])
    assert (record.outcome, record.reward, record.environment) == ("graded", 1.0, "asked")
    assert [str(call) for call in record.task.setup] == [
        "board.mark('right')",
        "pin('tea', 'plum')",
    ]
    assert record.receipt is not None
    assert record.receipt.task_digest == record.task.digest
    functions = [s.info["function"] for s in record.receipt.subscores if s.info]
    assert functions == ["pinned", "response_includes", "acted"]


@pytest.mark.long
async def test_nothing_of_what_answers_are_held_to_reaches_the_client(client: Peer) -> None:
    """In no list, prompt, reply, error or resource, whatever becomes of the task."""
    said: list[str] = []

    async def call(tool: str, **arguments: Any) -> Any:
        reply = await client.call(tool, **arguments)
        said.append(reply.raw.model_dump_json())
        return reply

    await call("list_tasks")
    for row in ROWS:
        started = await call("start_task", task=row["id"])
        if started.is_error:
            assert row["id"] == "not-set-up"
            continue
        session = started.structured["session"]
        await call("step", session=session)
        await call("response", session=session, answer="plum")
        await call("task_status", session=session)
    resources = (await client.client.list_resources()).resources
    said += [(await client.client.read_resource(r.uri)).model_dump_json() for r in resources]
    assert len(said) > 20
    assert not [text for text in said if SECRET in text or "pinned'" in text]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("task", "outcome", "why"),
    [
        ("no-number", "grading_failed", "`evaluate` returned '', which is not a number"),
        ("broken", "grading_failed", f"broken: ValueError: cannot compare with {SECRET}"),
        ("not-set-up", "environment_failed", "the setup's own bug"),
    ],
)
async def test_what_cannot_be_graded_has_no_reward(
    web: HttpServer, task: str, outcome: str, why: str
) -> None:
    """The record says why; it is never a reward of 0."""
    async with http_peer(web) as peer:
        started = await peer.call("start_task", task=task)
        if not started.is_error:
            session = started.structured["session"]
            assert "reward" not in (await peer.call("response", session=session, answer="")).text
    (record,) = [r for r in await load_all(web.store) if r.task.id == task and r.outcome][-1:]
    assert (record.outcome, record.reward) == (outcome, None)
    assert why in (record.error or "")


async def test_a_mean_is_a_reward_with_its_parts(web: HttpServer) -> None:
    """`config` of the row says how several become one."""
    async with http_peer(web) as peer:
        session = (await peer.ok("start_task", task="any")).structured["session"]
        receipt = await peer.ok("response", session=session, answer=f"it is {SECRET}")
    assert receipt.structured["reward"] == 0.5


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory, taskset: str) -> Iterator[str]:
    """The control channel of a server of the rows, as an address."""
    folder = tmp_path_factory.mktemp("channel")
    rows = [row for row in ROWS if row.get("gym") == "asked"]
    write(folder / "asked.jsonl", rows)
    command = [
        sys.executable, "-m", "hud_mcp", "serve", ASKED, "--http", "127.0.0.1:0",
        "--channel", "127.0.0.1:0", "--taskset", str(folder / "asked.jsonl"),
        "--store", str(folder / "store.sqlite3"),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=child_environment(), text=True,
    )  # fmt: skip
    assert process.stdout is not None
    port = ""
    while not port.startswith("HUD_SERVE_PORT="):
        port = process.stdout.readline()
        assert port
    yield f"tcp://127.0.0.1:{port.partition('=')[2].strip()}"
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.long
async def test_the_channel_lists_starts_and_grades_a_row_by_its_id(channel: str) -> None:
    """It takes no arguments; an unknown id gets the closest row."""
    with anyio.fail_after(BOUND_S):
        async with ChannelClient.connect(channel) as client:
            listed = {task["id"]: task for task in await client.list_tasks()}
            assert set(listed) == {row["id"] for row in ROWS if row.get("gym") == "asked"}
            assert listed["list"]["args"]["properties"] == {}
            assert SECRET not in str(listed)
            assert (await client.start("flat"))["prompt"] == "Say plum."
            assert (await client.grade("a plum"))["score"] == 1.0
            with pytest.raises(ChannelRefused, match="Did you mean 'flat'"):
                await client.start("flta")
            with pytest.raises(
                ChannelRefused, match="row with its own arguments; pass no arguments"
            ):
                await client.start("flat", {"word": "x"})


HUD_CLIENT = """
import asyncio, sys
from hud.clients import connect
from hud.eval import Runtime
async def main():
    async with connect(Runtime(sys.argv[1])) as client:
        listed = await client.list_tasks()
        started = await client.start_task("flat", {})
        graded = await client.grade({"answer": "plum"})
        print("flat" in str(listed), started["prompt"], graded["score"])
asyncio.run(main())
"""


async def test_hud_s_own_client_starts_and_grades_a_row(
    channel: str, hud_python: Path, tmp_path: Path
) -> None:
    """By its id, as it does a template."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}
    environment = {**kept, "HUD_TELEMETRY_ENABLED": "false", "HOME": str(tmp_path), "CI": "1"}
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [str(hud_python), "-c", HUD_CLIENT, channel], check=False, env=environment
        )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.decode().split("\n")[0] == "True Say plum. 1.0"
