"""Runs of a job whose servers are of several kinds, where one dies that cannot be placed again."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import psutil
import pytest
from waiting import PATIENCE_S, until

from hud_mcp import Job, Needs, Outcome, Store, Task, Taskset
from hud_mcp.agents.agent import Agent
from hud_mcp.agents.given import read_agent
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.rollout.attempt import Attempt, Bounds
from hud_mcp.rollout.conversation import SessionIds
from hud_mcp.rollout.link import Address, ConnectionLost, Link, ServerCommand, http_link
from hud_mcp.rollout.pool import Moves, Pool, Worker
from hud_mcp.rollout.run import PlannedRun, Rollout, Runs, Watch
from hud_mcp.rollout.server import RunServer

pytestmark = pytest.mark.anyio

ENV = """
import asyncio
import os
import signal

from hud_mcp import Environment, Needs

plain, special = Environment("plain"), Environment("special", needs=Needs(extras=["gpu"]))


@plain.template()
async def ask():
    answer = yield "Say yes."
    yield float(answer == "yes")


@plain.template()
async def stop():
    yield "Say anything: the server is told to stop."
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(60)
    yield 1.0


@special.template()
async def request():
    answer = yield "Say yes."
    yield float(answer == "yes")
"""
NEEDS = {"plain": Needs(), "special": Needs(extras=["gpu"])}
TASKS = [
    Task(id="special", env="special", template="request"),
    *(Task(id=f"plain{i}", env="plain", template="ask") for i in range(4)),
]


class Room:
    """Room for one server on a node, which is taken once that server is dead.

    Args:
        command: How the server is started.
        later: Called in place of each later start.
    """

    def __init__(self, command: ServerCommand, later: Callable[[], Awaitable[None]]) -> None:
        self.address = Address()
        self._command = command
        self._later = later
        self.is_dead = False
        self._has_started = False

    @asynccontextmanager
    async def link(self) -> AsyncGenerator[Link]:
        """Start the server, once."""
        if self._has_started:
            await self._later()
        self._has_started = True
        async with http_link(self._command, self.address) as link:
            yield link

    def kill(self) -> None:
        """Kill the server."""
        self.is_dead = True
        for child in psutil.Process().children():
            if any(at.laddr.port == self.address.port for at in child.net_connections()):
                child.kill()


async def has_no_room() -> None:
    """As a cluster whose nodes are taken."""
    raise EnvironmentFailed("No node has room.")


async def job_with_two_servers(
    folder: Path, offers: list[Needs], later: Callable[[], Awaitable[None]]
) -> tuple[dict[str, Rollout], list[str]]:
    """Run the tasks on two servers, of which the first dies as a task has its prompt from it.

    Returns:
        What became of each, and what was told.
    """
    (folder / "env.py").write_text(ENV)
    Taskset(TASKS).save(folder / "rows.jsonl")
    store, job, told = Store(folder / "runs.sqlite3"), Job(name="moves"), list[str]()
    await store.add_job(job, TASKS)
    ended: dict[str, Rollout] = {}

    async def says_yes(agent: Agent) -> str:
        """Kills the server with its first answer."""
        if not rooms[0].is_dead:
            rooms[0].kill()
        return "yes"

    with (folder / "log").open("w") as log:
        source, rows = str(folder / "env.py"), folder / "rows.jsonl"
        command = ServerCommand([source], rows, store.url, job.id, log)
        rooms = [Room(command, later) for _ in offers]
        servers = [RunServer(r.link, address=r.address, on_death=told.append) for r in rooms]
        begin = partial(
            Attempt, solver=read_agent(says_yes), store=store, bounds=Bounds(),
            ids=SessionIds(store, job.id),
        )  # fmt: skip
        workers = [
            Worker(server, begin, number, offered)
            for number, (server, offered) in enumerate(zip(servers, offers, strict=True), 1)
        ]
        runs = Runs(
            Pool(workers, Moves(NEEDS, 2, None, told.append)).begin,
            max_concurrent=1,
            watch=Watch(on_end=lambda done, _: ended.update({done.planned.task.id: done})),
        )
        async with anyio.create_task_group() as group:
            for server in servers:
                await group.start(server.keep)
            await runs.run([PlannedRun(task) for task in TASKS])
            group.cancel_scope.cancel()
    await store.close()
    return ended, told


@pytest.mark.long
async def test_a_run_ends_as_lost_where_only_a_lost_server_offers_what_it_needs(
    tmp_path: Path,
) -> None:
    """It says why, and does not wait for ever; the other server's runs go on."""
    with anyio.fail_after(PATIENCE_S):
        ended, _ = await job_with_two_servers(tmp_path, [NEEDS["special"], Needs()], has_no_room)

    assert {task: done.outcome for task, done in ended.items() if done.reward != 1.0} == {
        "special": Outcome.LOST
    }
    assert "No node has room." in str(ended["special"].error)
    assert sorted(ended) == sorted(task.id for task in TASKS)


@pytest.mark.long
async def test_a_run_goes_on_with_another_server_while_its_own_waits_for_room(
    tmp_path: Path,
) -> None:
    """It does not wait for the next start; the job says which worker has it."""
    needs = NEEDS["special"]
    with anyio.fail_after(PATIENCE_S):
        ended, told = await job_with_two_servers(tmp_path, [needs, needs], anyio.sleep_forever)

    assert [done.reward for done in ended.values()] == [1.0] * len(TASKS)
    assert told[-1] == "special goes on with worker 2: the server of worker 1 is gone."


async def refused_without_a_stop(link: Link) -> bool:
    """Make a call that any server refuses; whether that one did so for another reason."""
    reply = await link.call("task_status", {"session": "sess-unknown"})
    return reply.meta["hud-mcp/error"] != "SessionNotFound"


@pytest.mark.long
async def test_a_call_that_a_stopping_server_refuses_is_made_again_elsewhere(
    tmp_path: Path,
) -> None:
    """Its refusal is no reply to the run: the server is left, as one that is killed."""
    store, job = Store(tmp_path / "runs.sqlite3"), Job(name="stops")
    await store.add_job(job)
    (tmp_path / "env.py").write_text(ENV)
    Taskset([Task(id="stop", env="plain", template="stop")]).save(tmp_path / "rows.jsonl")

    async def answer() -> None:
        with suppress(ConnectionLost):
            await link.call("response", {"session": session, "answer": "any"})

    with anyio.fail_after(PATIENCE_S), (tmp_path / "log").open("w") as log:
        source, rows = str(tmp_path / "env.py"), tmp_path / "rows.jsonl"
        command = ServerCommand([source], rows, store.url, job.id, log)
        async with http_link(command, Address()) as link, anyio.create_task_group() as group:
            session = (await link.call("start_task", {"task": "stop"})).structured["session"]
            group.start_soon(answer)
            with pytest.raises(ConnectionLost, match="being stopped"):
                await until(partial(refused_without_a_stop, link))
            assert link.died.is_set()
    await store.close()
