"""Whoever lost an id finds its own sessions again, and names its own jobs; no neighbour does."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import (
    BOARD,
    LEGACY,
    MODERN,
    PATIENCE_S,
    Peer,
    Reply,
    http_peer,
    http_server,
    read_reply,
    stdio_peer,
)

from hud_mcp.record.job import Job
from hud_mcp.session.caller import session_token
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

ALICE, BOB = "the-token-of-alice", "the-token-of-bob"  # a test's
JOB = "hud-mcp/job"


async def listed(peer: Peer) -> list[dict[str, Any]]:
    """The sessions that a caller is told of."""
    return (await peer.ok("task_status", list=True)).structured["sessions"]


async def start(peer: Peer, job: Any, **more: Any) -> Reply:
    """Start a session in a job of a name."""
    arguments = {"template": "collect", "arguments": {"marker": "x"}, **more}
    with anyio.fail_after(PATIENCE_S):
        return read_reply(await peer.client.call_tool("start_task", arguments, meta={JOB: job}))


async def jobs_of(path: Path) -> dict[str, list[str]]:
    """The jobs of a store by their ids, with their trajectories."""
    store = Store(path)
    try:
        return {job.id: (await store.load_job_ids(job.id))[1] for job in await store.list_jobs()}
    finally:
        await store.close()


@pytest.mark.long
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_caller_with_a_token_finds_its_sessions_and_no_neighbour_does(
    tmp_path: Path, era: str
) -> None:
    """Also after a restart. The list has no id that is a secret, and nothing of others."""
    tokens = ("--token", f"alice={ALICE}", "--token", f"bob={BOB}")
    with http_server(tmp_path, [BOARD], *tokens) as server:
        async with http_peer(server, token=ALICE, era=era) as alice:
            first = await alice.start("collect", marker="a")
            second = await alice.start("collect", marker="b")
            await alice.ok("cancel_task", session=second.session)
            rows = await listed(alice)
            assert [(row["session"], row["state"]) for row in rows] == [
                (second.trajectory, "ended"),
                (first.trajectory, "open"),
            ]
            for secret in (first.session, second.session):
                assert secret not in str(rows)
            async with http_peer(server, token=BOB, era=era) as bob:
                assert await listed(bob) == []
                unknown = await bob.error("task_status", session="traj-0123456789abcdef")
                assert await bob.error("task_status", session=first.trajectory) == unknown
                assert "There is no such session" in await bob.error(
                    "step", session=first.trajectory
                )
            done = await alice.ok("add_note", session=first.trajectory, text="tea")
            assert done.step["session"] == first.session
    with http_server(tmp_path, [BOARD], *tokens) as server:
        async with http_peer(server, token=ALICE, era=era) as alice:
            assert [row["state"] for row in await listed(alice)] == ["ended", "waiting"]
            assert (await alice.ok("step", session=first.trajectory)).step["steps"] == 2
            assert (await alice.ok("step", session=first.session)).step["steps"] == 3
            ended = await alice.ok("task_status", session=second.trajectory)
            assert ended.structured["state"] == "ended"


@pytest.mark.long
async def test_two_servers_of_one_store_do_not_mix_their_callers(tmp_path: Path) -> None:
    """A token without a name is called `token` by each; what it opens depends on the token."""
    with http_server(tmp_path, [BOARD], "--token", ALICE) as first:
        async with http_peer(first, token=ALICE) as alice:
            task = await alice.start("collect", marker="a")
            await start(alice, "mine")
            with http_server(tmp_path, [BOARD], "--token", BOB) as second:
                async with http_peer(second, token=BOB) as bob:
                    assert await listed(bob) == []
                    said = await bob.error("task_status", session=task.trajectory)
                    assert "There is no such session" in said
                    assert not (await start(bob, "mine")).is_error
            assert len(await listed(alice)) == 2
    assert sorted(map(len, (await jobs_of(tmp_path / "store.sqlite3")).values())) == [1, 1]


@pytest.mark.long
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_without_a_token_http_lists_and_names_nothing(tmp_path: Path, era: str) -> None:
    """There nobody is told from others: not the sessions, not a job that all could join."""
    with http_server(tmp_path, [BOARD]) as server:
        async with http_peer(server, era=era) as peer:
            task = await peer.start("collect", marker="a")
            assert "cannot tell callers apart" in await peer.error("task_status", list=True)
            said = await peer.error("task_status", session=task.trajectory)
            assert "There is no such session" in said
            refused = await start(peer, "shared")
            assert refused.is_error
            assert "everybody could join it" in refused.text
    assert await jobs_of(tmp_path / "store.sqlite3") == {}


@pytest.mark.long
async def test_over_stdio_a_connection_finds_what_it_has_started(tmp_path: Path) -> None:
    """Another process of the same user on the same store is another conversation, and does not."""
    async with stdio_peer(tmp_path, [BOARD]) as one, stdio_peer(tmp_path, [BOARD]) as other:
        task = await one.start("collect", marker="a")
        mine = await other.start("collect", marker="b")
        assert [row["session"] for row in await listed(one)] == [task.trajectory]
        assert (await one.ok("step", session=task.trajectory)).step["session"] == task.session
        for name in (task.trajectory, "traj-0123456789abcdef"):
            assert "There is no such session" in await other.error("step", session=name)
        assert [row["session"] for row in await listed(other)] == [mine.trajectory]


@pytest.mark.long
async def test_an_agent_of_one_session_lists_nothing(tmp_path: Path) -> None:
    """It has no such argument, is refused, and finds no session by its record."""
    with http_server(tmp_path, [BOARD], "--token", ALICE) as server:
        async with http_peer(server, token=ALICE) as runner:
            task = await runner.start("collect", marker="a")
            other = await runner.start("collect", marker="b")
            credential = session_token(ALICE, task.session)
            async with http_peer(server, token=credential) as agent:
                tools = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
                assert list(tools["task_status"].input_schema["properties"]) == ["session"]
                assert "only one session" in await agent.error("task_status", list=True)
                for name in (task.trajectory, other.trajectory):
                    assert "no such session" in await agent.error("task_status", session=name)


@pytest.mark.long
async def test_a_program_names_its_job(tmp_path: Path) -> None:
    """The first start makes it, later ones join it; what has no name belongs to none."""
    async with stdio_peer(tmp_path, [BOARD]) as peer:
        begun = [await start(peer, "nightly, 1"), await start(peer, "nightly, 1")]
        await start(peer, "another")
        await peer.start("collect", marker="y")
    (job,) = {each.meta["hud-mcp/start"]["job"] for each in begun}
    found = await jobs_of(tmp_path / "store.sqlite3")
    assert found[job] == [each.meta["hud-mcp/start"]["trajectory"] for each in begun]
    assert sorted(map(len, found.values())) == [1, 2]
    store = Store(tmp_path / "store.sqlite3")
    named, _, runs = await store.load_job_summary(job)
    await store.close()
    assert (named.name, named.planned, len(runs)) == ("nightly, 1", False, 2)
    assert not any(run.foreign for run in runs)


@pytest.mark.long
async def test_a_start_that_is_repeated_tells_the_job_of_the_first(tmp_path: Path) -> None:
    """Whatever job it names now: the session stays where it is."""
    chosen = f"sess-{'a1' * 16}"
    async with stdio_peer(tmp_path, [BOARD]) as peer:
        first, again = [await start(peer, name, session=chosen) for name in ("one", "two")]
    begun = first.meta["hud-mcp/start"]
    assert again.meta["hud-mcp/start"] == begun
    assert (await jobs_of(tmp_path / "store.sqlite3"))[begun["job"]] == [begun["trajectory"]]


@pytest.mark.long
@pytest.mark.parametrize("name", ["", " ", "x" * 201, 5, None, ["a"]])
async def test_what_is_no_name_starts_nothing(tmp_path: Path, name: Any) -> None:
    """The call says what a name is."""
    async with stdio_peer(tmp_path, [BOARD]) as peer:
        refused = await start(peer, name)
        if name is None:  # the SDK's client sends nothing then
            assert not refused.is_error
            return
        assert "hud-mcp/job is a job's name" in refused.text
        assert await listed(peer) == []


@pytest.mark.long
async def test_no_name_leads_into_a_job_of_a_run(tmp_path: Path) -> None:
    """Its id is a name like any other; its plan and its trajectories stay as they are."""
    path = tmp_path / "store.sqlite3"
    store = Store(path)
    job = await Job.create("a run", planned=True, store=store)
    async with stdio_peer(tmp_path, [BOARD]) as peer:
        begun = await start(peer, job.id)
        assert begun.meta["hud-mcp/start"]["job"] != job.id
        named = begun.meta["hud-mcp/start"]["job"]
        await store.plan_run(named, "0" * 64)
        assert "has a plan now" in (await start(peer, job.id)).text
    await store.close()
    assert (await jobs_of(path))[job.id] == []


@pytest.mark.long
async def test_a_server_of_one_job_takes_no_other_name(tmp_path: Path) -> None:
    """What `hud-mcp eval` and `serve --job` begin belongs to their job alone."""
    store = Store(tmp_path / "store.sqlite3")
    job = await Job.create("the server's", store=store)
    await store.close()
    async with stdio_peer(tmp_path, [BOARD], "--job", job.id) as peer:
        assert "belong to one job" in (await start(peer, "mine")).text
        await peer.start("collect", marker="a")
    assert await jobs_of(tmp_path / "store.sqlite3") == {
        job.id: [each[0] for each in (await jobs_of(tmp_path / "store.sqlite3")).values()]
    }


@pytest.mark.long
async def test_another_name_is_no_other_try(tmp_path: Path) -> None:
    """How often a task may be started is counted over all names of its caller."""
    async with stdio_peer(tmp_path, [BOARD], "--tries", "1") as peer:
        begun = await start(peer, "one")
        await peer.ok("cancel_task", session=begun.structured["session"])
        refused = await start(peer, "two")
        assert refused.is_error
        assert "it may be started once" in refused.text
