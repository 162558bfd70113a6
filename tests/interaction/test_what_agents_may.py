"""An agent that a run starts has one session, and a job counts what its plan began."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from mcp.shared.exceptions import MCPError
from peers import BOARD, LEGACY, PATIENCE_S, Peer, child_environment, http_peer, http_server
from peers import stdio_peer as connect_stdio
from runs import finish, query

from hud_mcp import load_job
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.session.caller import session_token
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

AGENTS = Path(__file__).resolve().parent / "agents"
ROWS: list[dict[str, Any]] = [
    {"id": "berry", "env": "letter_count", "template": "count"},
    {"id": "other", "env": "letter_count", "template": "reverse"},
]
TOKEN = "the-token-of-a-runner"  # a test's
BEGINNING = {"list_tasks", "start_task"}


def told(store: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """What the greedy agents told, by their task and by what they tried."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    lines = "SELECT s.task ->> 'id', l.text FROM logs l JOIN sessions s ON s.id = l.session_id"
    for task, text in query(store, lines):
        if (at := text.find("GREEDY ")) >= 0:
            row = orjson.loads(text[at + len("GREEDY ") :])
            found.setdefault(task, {})[row["what"]] = row
    return found


def was_refused(row: dict[str, Any]) -> bool:
    """Whether an attempt came to nothing."""
    return "failed" in row or row["is_error"]


@pytest.mark.parametrize(
    "era",
    [pytest.param(LEGACY, marks=pytest.mark.stress), pytest.param("auto", marks=pytest.mark.long)],
)
async def test_an_agent_that_wants_another_try_gets_none(tmp_path: Path, era: str) -> None:
    """It answers wrongly, and nothing else that it does begins, shows or changes anything."""
    command = shlex.join([sys.executable, str(AGENTS / "greedy.py")])
    env = {
        "OTHERS": str(tmp_path / "others"),
        "ERA": era,
        "HUD_MCP_OPERATOR_TOKEN": "an-operators-token-000000000000",
        "HUD_MCP_CHANNEL_TOKEN": "a-channels-token-00000000000000",
        "HUD_MCP_TOKEN": "another-servers-token-0000000000",
    }
    status, printed = await finish(
        tmp_path, ROWS, "--agent-command", command, env=env, within_s=240
    )
    assert status == 0, printed
    store = tmp_path / "store.sqlite3"
    seen = told(store)
    assert set(seen) == {"berry", "other"}, printed
    for attempts in seen.values():
        names = set(attempts["tools"]["names"])
        assert names == {"step", "response", "task_status", "cancel_task", "note"}
        assert attempts["tools"]["told"] == attempts["instructions"]["told"] == []
        assert attempts["instructions"]["begins"].startswith("hud-mcp holds one task for you")
        assert "Graded: reward 0." in attempts["answer"]["text"]
        assert attempts["answer"]["text"].endswith("Nothing is left to do.")
        assert attempts["prompts"]["names"] == attempts["resources"]["uris"] == []
        assert "a token that was let in" not in attempts
        assert attempts["no stdin"]["read"] == ""
        own = ("task_status {}", "cancel_task {}", "answer", "prompts/list", "resources/list")
        tried = {what: row for what, row in attempts.items() if "text" in row or "failed" in row}
        for what, row in tried.items():
            if what in own:
                assert not was_refused(row), (what, row)
            else:
                assert was_refused(row), (what, row)
            text = row.get("text", "") + row.get("failed", "")
            asked = [name for name in BEGINNING if f"Unknown tool: {name}" in text]
            assert asked or not [name for name in BEGINNING if name in text], (what, row)
    assert len(query(store, "SELECT id FROM sessions")) == 2
    reader = Store(store)
    (job_id,) = query(store, "SELECT id FROM jobs")[0]
    figures = await (await load_job(job_id, reader)).statistics()
    await reader.close()
    assert (figures.mean.value if figures.mean else None) == 0.0
    assert [row.task for row in figures.tasks] == ["berry", "other"]
    assert (figures.foreign, figures.planned) == (0, True)


@pytest.mark.long
async def test_an_honest_model_that_calls_start_task_after_its_reply_counts_once(
    tmp_path: Path,
) -> None:
    """It is told that there is no such tool; its one grade stands, whatever it would have got."""
    command = shlex.join([sys.executable, str(AGENTS / "honest.py")])
    status, printed = await finish(tmp_path, ROWS[:1], "--agent-command", command, within_s=120)
    assert status == 0, printed
    store = tmp_path / "store.sqlite3"
    rows = query(store, "SELECT receipt ->> 'reward', receipt ->> 'attempt' FROM sessions")
    assert rows == [(0.0, 1)]
    (log,) = query(store, "SELECT group_concat(text, char(10)) FROM logs")[0]
    assert "Unknown tool: start_task" in log
    assert "mean reward  0.000" in printed


@pytest.mark.long
async def test_what_the_runners_own_token_begins_beside_the_plan_counts_nowhere(
    tmp_path: Path,
) -> None:
    """A session that is started in a job with a plan is foreign: shown apart, in no figure."""
    status, printed = await finish(tmp_path, ROWS[:1], "--agent", "nop", within_s=120)
    assert status in (0, 1), printed
    store = tmp_path / "store.sqlite3"
    (job_id,) = query(store, "SELECT id FROM jobs")[0]
    async with connect_stdio(tmp_path, ["letter_count"], "--job", job_id) as peer:
        for _ in range(2):
            held = await peer.start("count", word="aaa", letter="a")
            await peer.ok("response", session=held.session, answer="3")
    reader = Store(store)
    job = await load_job(job_id, reader)
    figures = await job.statistics()
    assert (figures.mean.value if figures.mean else None) == 0.0
    assert (figures.wanted, figures.foreign) == (1, 2)
    assert [row.task for row in figures.tasks] == ["berry"]
    assert (await job.get_analytics())["avg_reward"] == 0.0
    assert [t.reward for t in await job.load_trajectories(foreign=True)] == [1.0, 1.0]
    assert [t.reward for t in await job.load_trajectories()] == [0.0]
    assert (await Outlines(reader.database).count_rewards())[job_id] == (1, 1, 0.0)
    await reader.close()
    done = await hud_mcp("jobs", job_id, "--store", str(store))
    assert "foreign" in done
    assert "graded, foreign, not counted" in done
    shown = orjson.loads(await hud_mcp("jobs", job_id, "--json", "--store", str(store)))
    assert [run["reward"] for run in shown["foreign"]] == [1.0, 1.0]
    out = tmp_path / "out.jsonl"
    await hud_mcp("export", job_id, "--to", "jsonl", "--out", str(out), "--store", str(store))
    assert len(out.read_bytes().splitlines()) == 1
    status, printed = await finish(tmp_path, None, "--resume", job_id, within_s=120)
    assert "foreign" in printed
    assert len(query(store, "SELECT id FROM sessions")) == 3


@pytest.mark.long
async def test_a_job_without_a_plan_counts_all_and_says_so(tmp_path: Path) -> None:
    """What `serve --job` begins in a job that nobody planned counts, labelled unplanned."""
    store = Store(tmp_path / "store.sqlite3")
    from hud_mcp.record.job import Job  # noqa: PLC0415  # one name

    job = await Job.create("by hand", store=store)
    async with connect_stdio(tmp_path, ["letter_count"], "--job", job.id) as peer:
        held = await peer.start("count", word="aaa", letter="a")
        await peer.ok("response", session=held.session, answer="3")
    figures = await job.statistics()
    assert (figures.mean.value if figures.mean else None) == 1.0
    assert (figures.planned, figures.foreign) == (False, 0)
    assert "unplanned: the job has no plan" in str(figures)
    await store.close()
    listed = await hud_mcp("jobs", "--json", "--store", str(tmp_path / "store.sqlite3"))
    assert orjson.loads(listed)["planned"] is False


async def hud_mcp(*arguments: str) -> str:
    """Run a command that must succeed; what it printed."""
    with anyio.fail_after(PATIENCE_S):
        done = await anyio.run_process(
            [sys.executable, "-m", "hud_mcp", *arguments], env=child_environment(COLUMNS="200")
        )
    return done.stdout.decode()


@pytest.mark.long
async def test_over_stdio_a_call_may_give_up_every_other_session(tmp_path: Path) -> None:
    """A runner speaks for its agent on its own connection: such a call has one session alone."""
    async with connect_stdio(tmp_path, ["letter_count", BOARD]) as peer:
        mine = await peer.start("count", word="aaa", letter="a")
        other = await peer.start("reverse")
        only = {"hud-mcp/only": mine.session}

        async def call(name: str, **arguments: Any) -> Any:
            return await peer.client.call_tool(name, arguments, meta=only)

        for name in sorted(BEGINNING):
            with pytest.raises(MCPError, match=f"Unknown tool: {name}"):
                await call(name, task="berry")
        refused = await call("response", session=other.session, answer="pmal")
        assert refused.is_error
        assert "There is no such session. Leave `session` out" in refused.content[0].text
        assert (await call("task_status")).structured_content["session"] == mine.session
        graded = await call("response", answer="wrong")
        assert graded.content[0].text.endswith("Nothing is left to do.")
        again = await call("response", answer="3")
        assert again.is_error
        assert "start_task" not in again.content[0].text
        assert (await peer.status(other.session))["state"] == "open"


@pytest.mark.long
async def test_a_session_token_outlives_the_server_and_opens_no_other(tmp_path: Path) -> None:
    """It is made from a token, so the next server knows it; nothing else is opened by it."""
    with http_server(tmp_path, ["letter_count"], "--token", f"ann={TOKEN}") as server:
        async with http_peer(server, token=TOKEN) as peer:
            mine, other = await peer.start("count"), await peer.start("reverse")
        await works(server, mine.session, other.session)
        server.process.terminate()
        server.process.wait()
    with http_server(tmp_path, ["letter_count"], "--token", f"ann={TOKEN}") as server:
        await works(server, mine.session, other.session)
        async with http_peer(server, token=session_token(TOKEN, mine.session)) as peer:
            assert (await peer.ok("response", answer="3")).structured["reward"] == 1.0
        for token in (session_token("another-token", mine.session), mine.session):
            with pytest.raises(Exception, match=r"401|nauthorized|connection|unhandled"):
                async with http_peer(server, token=token):
                    pass


async def works(server: Any, session: str, other: str) -> None:
    """Check that a session token sees its session and no other."""
    async with http_peer(server, token=session_token(TOKEN, session)) as peer:
        assert (await peer.ok("task_status")).structured["state"] == "open"
        assert "no such session" in await peer.error("task_status", session=other)
        assert BEGINNING.isdisjoint(await names(peer))
    async with http_peer(server, token=TOKEN) as peer:
        assert await names(peer) >= BEGINNING


async def names(peer: Peer) -> set[str]:
    """The tools that a connection lists."""
    return {tool.name for tool in (await peer.client.list_tools()).tools}


@pytest.mark.long
async def test_a_task_may_be_started_so_often_and_receipts_count(tmp_path: Path) -> None:
    """`--tries` bounds starts of one caller, whatever seed is named, and after a restart too."""
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(b"\n".join(orjson.dumps(row) for row in ROWS))
    options = ("--tries", "2", "--taskset", str(rows))
    tokens = ("--token", f"ann={TOKEN}", "--token", "bob=the-token-of-another")
    with http_server(tmp_path, ["letter_count"], *options, *tokens) as server:
        async with http_peer(server, token=TOKEN) as peer:
            first = await peer.ok("start_task", task="berry")
            graded = await peer.ok("response", session=first.structured["session"], answer="x")
            assert graded.structured["attempt"] == 1
    with http_server(tmp_path, ["letter_count"], *options, *tokens) as server:
        async with http_peer(server, token=TOKEN) as peer:
            starts: list[Any] = []
            async with anyio.create_task_group() as group:  # at once: one of them is the second

                async def start() -> None:
                    starts.append(await peer.call("start_task", template="count"))

                for _ in range(4):
                    group.start_soon(start)
            begun = [reply for reply in starts if not reply.is_error]
            refused = [reply.text for reply in starts if reply.is_error]
            assert (len(begun), len(refused)) == (1, 3)
            session = begun[0].structured["session"]
            second = await peer.ok("response", session=session, answer="3")
            assert (second.structured["attempt"], second.structured["reward"]) == (2, 1.0)
            assert "This was try 2 of the task." in second.text
            assert refused[0].startswith("This would be your try 3 of this task, and it may be")
            assert "Continue with another task" in refused[0]
            assert "try 3" in await peer.error("start_task", task="berry")
            assert (await peer.call("start_task", task="other")).is_error is False
            seeds = [await peer.call("start_task", task="berry", seed=seed) for seed in (1, 2, 3)]
            assert [reply.is_error for reply in seeds] == [True] * 3
        async with http_peer(server, token="the-token-of-another") as peer:  # the same
            assert not (await peer.call("start_task", task="berry")).is_error
    assert os.path.exists(server.store)  # noqa: ASYNC240, PTH110  # small
