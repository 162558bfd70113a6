"""What a job on a cluster claims, sends and refuses, where no cluster is needed to see it."""

import importlib.util
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner
from waiting import PATIENCE_S

from hud_mcp import Needs, Store, Taskset, evaluate
from hud_mcp.cli.eval import command as eval_command
from hud_mcp.errors import HudMcpError, NotInstalled
from hud_mcp.plugins.cluster.node_server import NodeServer
from hud_mcp.plugins.cluster.nodes import Cluster, gather_files
from hud_mcp.plugins.cluster.servers import check_store, relay, share_out
from hud_mcp.rollout.options import read_cluster

pytestmark = pytest.mark.anyio

SECRET = "only for this test"
PLAIN = {"Resources": {"CPU": 2.0, "memory": 4e9}}
PAGES = {"Resources": {"CPU": 4.0, "memory": 8e9, "browser": 2.0}}


def test_a_server_claims_what_its_sessions_need() -> None:
    """A browser is claimed where some node says that it has one; else any node is taken."""
    needs = Needs(cpus=0.5, memory_mb=500, browser=True)

    assert Cluster([PLAIN, PAGES]).claim(needs, 4) == {
        "num_cpus": 2,
        "memory": 2_000_000_000,
        "resources": {"browser": 1},
    }
    assert Cluster([PLAIN]).claim(needs, 4)["resources"] == {}


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        (Needs(cpus=8), "needs 32 CPU, 128 MB; nodes offer 2 CPU, 4000 MB; 4 CPU, 8000 MB"),
        (Needs(extras=["gpu"]), "0.2 CPU, 128 MB, 1 gpu; nodes offer 2 CPU, 4000 MB, 0 gpu"),
    ],
)
def test_what_no_node_offers_is_refused(needs: Needs, told: str) -> None:
    """The error says what a server needs and what each node has."""
    with pytest.raises(HudMcpError, match=told):
        Cluster([PLAIN, PAGES]).claim(needs, 4)


def test_servers_are_shared_out_by_what_their_tasks_need() -> None:
    """Each kind has its share by the number of tasks; too few servers offer everything each."""
    wanted = [Needs()] * 90 + [Needs(browser=True)] * 10

    shared = share_out(wanted, 5)

    assert [each.browser for each in shared].count(True) == 1
    assert [each.browser for each in share_out(wanted, 1)] == [True]
    assert share_out([Needs()] * 3, 2) == [Needs(), Needs()]


def test_a_job_sends_the_folders_of_its_environments(tmp_path: Path) -> None:
    """The files beside an environment go along; records and hidden files do not."""
    folder, sent = tmp_path / "own", tmp_path / "sent"
    (folder / "site").mkdir(parents=True)
    (folder / "env.py").write_text("env = 1")
    (folder / "site" / "index.html").write_text("<p>")
    (folder / ".env").write_text("SECRET=1")
    (folder / "runs.sqlite3").write_text("")
    sent.mkdir()

    sources = gather_files(["browser", f"{folder}/env.py:env"], Taskset([], "none"), sent)

    assert sources == ["browser", "env0/env.py:env"]
    found = sorted(str(p.relative_to(sent)) for p in sent.rglob("*") if p.is_file())
    assert found == ["env0/env.py", "env0/site/index.html", "tasks.jsonl"]


async def test_a_store_of_one_machine_is_refused_for_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite is for one node; pictures of several nodes need a place that all of them reach."""
    monkeypatch.delenv("HUD_MCP_PICTURES", raising=False)
    file, shared = Store(tmp_path / "a.sqlite3"), Store("postgresql://nobody@nowhere/none")
    several = Cluster([PLAIN, PAGES])

    check_store(file, Cluster([PLAIN]), shows=True)
    with pytest.raises(HudMcpError, match="2 nodes, and its store is a SQLite file"):
        check_store(file, several, shows=False)
    check_store(shared, several, shows=False)
    with pytest.raises(HudMcpError, match="HUD_MCP_PICTURES"):
        check_store(shared, several, shows=True)
    monkeypatch.setenv("HUD_MCP_PICTURES", "s3://pictures/here")
    check_store(shared, several, shows=True)
    await file.close()
    await shared.close()


async def test_an_address_stays_where_servers_move() -> None:
    """Each connection is carried to where a server is by then; with none, it is closed."""

    async def answer(name: bytes, client: anyio.abc.SocketStream) -> None:
        async with client:
            await client.send(name + await client.receive())

    target: list[str | None] = [None]
    with anyio.fail_after(PATIENCE_S):
        replies: list[bytes] = []
        listeners: list[anyio.abc.AsyncResource] = []
        async with anyio.create_task_group() as group, relay(lambda: target[0]) as port:
            for name in (b"one ", b"two "):
                listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
                listeners.append(listener)
                group.start_soon(listener.serve, lambda c, name=name: answer(name, c))
                at = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]()
                target[0] = f"http://127.0.0.1:{at}/mcp"
                async with await anyio.connect_tcp("127.0.0.1", port) as client:
                    await client.send(b"called")
                    replies.append(await client.receive())
            target[0] = None
            async with await anyio.connect_tcp("127.0.0.1", port) as client:
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await client.receive()
            group.cancel_scope.cancel()
        for each in listeners:
            await each.aclose()

    assert replies == [b"one called", b"two called"]


def test_an_address_of_a_cluster_is_read() -> None:
    """True is the cluster that is there; what is no address is refused."""
    assert [read_cluster(None), read_cluster(False), read_cluster(True)] == [None, None, "auto"]
    assert read_cluster("10.0.0.1:6379") == "10.0.0.1:6379"
    with pytest.raises(HudMcpError, match="give True for the cluster"):
        read_cluster("my cluster")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="not on this machine: Ray")
def test_without_ray_nothing_runs(tmp_path: Path) -> None:
    """The error names the extra, of the command and of the function."""
    store = str(tmp_path / "runs.sqlite3")
    with pytest.raises(NotInstalled, match=r"pip install 'hud-mcp\[ray\]'"):
        anyio.run(partial(evaluate, "letter_count", "oracle", ray=True, store=store))
    options = ["quickstart", "--agent", "oracle", "--store", store, "--ray"]
    with pytest.raises(NotInstalled, match=r"pip install 'hud-mcp\[ray\]'"):
        CliRunner().invoke(eval_command, options, catch_exceptions=False)

    assert not Path(store).exists()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="a node runs Linux")
async def test_a_server_of_a_node_answers_and_ends(tmp_path: Path) -> None:
    """It listens on its node's address for its token's sender, and ends when it is told."""
    store = {"HUD_MCP_STORE": str(tmp_path / "runs.sqlite3")}
    wrong = NodeServer(["serve", "no_such"], store, "127.0.0.1")
    server = NodeServer(["serve", "qa"], store, "127.0.0.1")

    with pytest.raises(RuntimeError, match="no_such"):
        await anyio.to_thread.run_sync(wrong.start, SECRET)
    await anyio.to_thread.run_sync(wrong.stop)
    url, node = await anyio.to_thread.run_sync(server.start, SECRET)
    await anyio.to_thread.run_sync(server.stop)

    assert node == "127.0.0.1"
    assert url.startswith("http://127.0.0.1:")
    assert await anyio.to_thread.run_sync(server.wait) == ""
