"""What serves the environments of a job: this process, processes beside it, or a cluster."""

import os
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

import anyio.to_thread

from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.bridged import is_bridged
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.cluster.nodes import ROWS, Cluster, connected, count_nodes, gather_files
from hud_mcp.plugins.cluster.servers import NodeCommand, relay, run_on_nodes
from hud_mcp.record.place import PICTURES_VARIABLE, STORE_VARIABLE
from hud_mcp.rollout.link import TOKENS, Address, ServerCommand
from hud_mcp.rollout.options import EACH, JobOptions, RunOptions
from hud_mcp.rollout.pool import AnyOf, Anywhere, Moves
from hud_mcp.rollout.prepared import Prepared
from hud_mcp.rollout.run import Watch
from hud_mcp.rollout.server import AnyServer, RunServer, local_server, run_server
from hud_mcp.session.limits import Limits
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store
from hud_mcp.values.needs import Needs

__all__ = ["Served", "check_store", "place_workers", "served", "share_out", "with_workers"]


async def place_workers(given: int | None, cluster: str | None) -> int | None:
    """Return the number of a job's workers: as given, or one for each node of its cluster.

    Args:
        given: As `read_workers` returns it.
        cluster: As `read_cluster` returns it.

    Raises:
        NotInstalled, HudMcpError: The cluster cannot be reached. Nothing ran.
    """
    if given is not None or cluster is None:
        return given
    return await count_nodes(cluster)


async def with_workers(options: JobOptions, *, resumed: bool) -> JobOptions:
    """Return the options with the number of workers, and as many runs at once as those take.

    A resumed job keeps the number of runs at once of its record.

    Raises:
        NotInstalled, HudMcpError: The cluster cannot be reached. Nothing ran.
    """
    count = await place_workers(options.workers, options.ray)
    if count is None:
        return options
    more = {"workers": count}
    if not resumed and "max_concurrent" not in options.model_fields_set:
        more["max_concurrent"] = EACH * count
    return options.model_copy(update=more)


_CARRIED = ("HUD_MCP_", "AWS_", "FSSPEC_")
"""Variables of this process that servers on nodes have too, by how they begin."""


@dataclass(frozen=True)
class Served:
    """The servers of a job while they run.

    Attributes:
        servers: At least one.
        offers: What a session finds at each; empty where they are all alike.
        moves: How runs go on with another server; None where they stay.
    """

    servers: Sequence[AnyServer]
    offers: Sequence[Needs] = field(default_factory=list[Needs])
    moves: Moves | None = None

    @property
    def any_server(self) -> AnyServer:
        """What asks for what every server tells: one of them, as long as there is one."""
        listed = [server for server in self.servers if isinstance(server, RunServer)]
        if self.moves is None or not listed:
            return self.servers[0]
        return Anywhere(listed[0], AnyOf(listed), None)


@dataclass(frozen=True)
class _Job:
    """What all servers of a job are started with."""

    prepared: Prepared
    store: Store
    folder: Path
    log: TextIO
    watch: Watch

    @property
    def how(self) -> RunOptions:
        return self.prepared.how

    @property
    def options(self) -> list[str]:
        """Of `serve`, wherever it runs."""
        how = self.how
        return [
            *("--image", how.image, *_room(how.max_concurrent)),
            *(text for host in how.allow for text in ("--allow", host)),
        ]


@asynccontextmanager
async def served(
    prepared: Prepared,
    store: Store,
    *,
    folder: Path,
    log: TextIO,
    watch: Watch,
) -> AsyncGenerator[Served]:
    """Have the environments of a job served while the block runs.

    Args:
        prepared: The job.
        store: Where it is recorded.
        folder: An empty one, for files of the job.
        log: Where servers write what they have to say.
        watch: Who is told of their deaths.

    Raises:
        EnvironmentFailed: A server does not start; the text has the end of its log.
        HudMcpError: A cluster cannot run the job.
    """
    job = _Job(prepared, store, folder, log, watch)
    if prepared.how.in_process:
        kind = _in_process(job)
    elif prepared.how.ray is not None:
        kind = _on_nodes(job, prepared.how.ray)
    else:
        kind = _beside(job)
    async with kind as found:
        yield found


@asynccontextmanager
async def _in_process(job: _Job) -> AsyncGenerator[Served]:
    how = job.how
    environments = load_environments(how.sources)
    sessions = Sessions(
        environments,
        store=job.store,
        tasksets=[Taskset(job.prepared.tasks, "tasks")],
        limits=_limits(how.max_concurrent),
        job_id=job.prepared.job.id,
        local_hosts=how.allow,
    )
    is_model = how.model is not None
    async with local_server(
        sessions, environments, image=how.image, answers_requests=is_model
    ) as local:
        yield Served([local])


@asynccontextmanager
async def _beside(job: _Job) -> AsyncGenerator[Served]:
    """Have it served by processes of this machine."""
    how, rows = job.how, job.folder / ROWS
    Taskset(job.prepared.tasks).save(rows)  # what this job needs, and no more
    command = ServerCommand(
        how.sources, rows, job.store.url, job.prepared.job.id, job.log, job.options
    )
    count = how.workers or 1
    async with AsyncExitStack() as stack:
        servers: list[AnyServer] = []
        for number in range(1, count + 1):
            tell = job.watch.on_death if count == 1 else _telling(job.watch, number)
            kept = run_server(
                command,
                http=how.is_remote,
                answers_requests=how.model is not None,
                on_death=tell,
            )
            servers.append(await stack.enter_async_context(kept))
        yield Served(servers)


@asynccontextmanager
async def _on_nodes(job: _Job, cluster_address: str) -> AsyncGenerator[Served]:
    """Have it served by processes on the nodes of a Ray cluster."""
    how, sent = job.how, job.folder / "sent"
    sent.mkdir()
    tasks = Taskset(job.prepared.tasks)
    sources = await anyio.to_thread.run_sync(gather_files, how.sources, tasks, sent)
    needs = _needs(how)
    count = how.workers or 1
    each = -(-how.max_concurrent // count)
    offers = share_out([needs.get(task.env, Needs()) for task in tasks], count)
    async with connected(cluster_address, sent) as cluster, AsyncExitStack() as stack:
        check_store(job.store, cluster, shows=_shows(how))
        shutil.rmtree(sent)  # it was sent as this process connected
        tell: Callable[[int, str], None] = lambda at, text: _telling(job.watch, at + 1)(text)  # noqa: E731
        commands = [
            NodeCommand(
                ["serve", *sources, "--taskset", ROWS, "--job", job.prepared.job.id, *job.options],
                _carried(job.store),
                cluster.claim(one, each),
                cluster.claim(one, 1),
                partial(_append, job.log, number),
            )
            for number, one in enumerate(offers, 1)
        ]
        token = Address().token  # one for all: a run may go on with another server
        addresses = [Address(token=token) for _ in offers]
        servers = await stack.enter_async_context(run_on_nodes(commands, addresses, tell))
        stable: Address | None = None
        if how.is_remote:
            port = await stack.enter_async_context(relay(lambda: _first_url(addresses)))
            stable = Address(token, port, f"http://127.0.0.1:{port}/mcp")
        moves = Moves(needs, each, stable, job.watch.on_note)
        yield Served(list(servers), offers, moves)


def check_store(store: Store, cluster: Cluster, *, shows: bool) -> None:
    """Refuse a store that other machines cannot write to.

    Args:
        store: Where the job is recorded.
        cluster: Whose nodes write.
        shows: Whether sessions record pictures.

    Raises:
        HudMcpError: It is a file of this machine, or its pictures are, and there are more nodes.
    """
    if cluster.size <= 1:
        return
    if not store.url.startswith("postgresql"):
        raise HudMcpError(
            f"The Ray cluster has {cluster.size} nodes, and its store is a SQLite file of this "
            "machine. Give a store that all of them reach: postgresql://user@host/database."
        )
    if shows and not os.environ.get(PICTURES_VARIABLE):
        raise HudMcpError(
            f"The Ray cluster has {cluster.size} nodes, and pictures would lie on each of them. "
            f"Name one place for all of them in {PICTURES_VARIABLE}: a shared folder, or "
            "s3://bucket/folder."
        )


def _first_url(addresses: Sequence[Address]) -> str | None:
    """Where a server answers now: any of them takes any call of the job."""
    return next((address.url for address in addresses if address.url), None)


def _carried(store: Store) -> Mapping[str, str]:
    """What the environment of servers on nodes has, beside their node's own."""
    own = {k: v for k, v in os.environ.items() if k.startswith(_CARRIED) and k not in TOKENS}
    return own | {STORE_VARIABLE: store.url}


def _needs(how: RunOptions) -> dict[str, Needs]:
    """What a session of each environment needs; a bridged one has not said."""
    sources = [source for source in how.sources if not is_bridged(source)]
    return {each.name: each.needs for each in load_environments(sources)}


def _shows(how: RunOptions) -> bool:
    sources = [source for source in how.sources if not is_bridged(source)]
    return any(each.world.has_screen for each in load_environments(sources))


def share_out(wanted: Sequence[Needs], count: int) -> list[Needs]:
    """What each of so many servers offers: its share by the number of tasks.

    Where there are fewer servers than kinds of needs, each of them offers everything.
    """
    kinds: dict[frozenset[str], list[Needs]] = {}
    for needs in wanted:
        kinds.setdefault(needs.offered, []).append(needs)
    if len(kinds) <= 1 or count < len(kinds):
        return [Needs.most(wanted)] * count
    shares = dict.fromkeys(kinds, 1)
    for _ in range(count - len(kinds)):
        most = max(kinds, key=lambda kind: len(kinds[kind]) / shares[kind])
        shares[most] += 1
    return [Needs.most(kinds[kind]) for kind, share in shares.items() for _ in range(share)]


def _append(log: TextIO, number: int, text: str) -> None:
    if text:
        log.write(f"Worker {number}:\n{text}\n")
        log.flush()


def _telling(watch: Watch, number: int) -> Callable[[str], None]:
    """Says of which worker a line is."""
    return lambda text: watch.on_death(f"Worker {number}: {text}")


def _room(max_concurrent: int) -> list[str]:
    """Limits that let so many sessions live at once; one that just ended may still count."""
    limits = _limits(max_concurrent)
    return [
        "--limit", f"sessions={limits.sessions}",
        "--limit", f"sessions_per_caller={limits.sessions_per_caller}",
    ]  # fmt: skip


def _limits(max_concurrent: int) -> Limits:
    wanted = 2 * max_concurrent
    default = Limits()
    return Limits(
        sessions=max(default.sessions, wanted),
        sessions_per_caller=max(default.sessions_per_caller, wanted),
    )
