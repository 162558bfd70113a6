"""The servers of a job on nodes of a cluster, each started again on any node when it dies."""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TextIO
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream, SocketAttribute, SocketStream

from hud_mcp.base.listening import LOOPBACK
from hud_mcp.base.process import TOKENS
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import EnvironmentFailed, HudMcpError, sole_cause
from hud_mcp.loading.source import Source, load_environments
from hud_mcp.plugins import cluster
from hud_mcp.plugins.cluster.node_server import NodeServer
from hud_mcp.plugins.cluster.nodes import Cluster, connected, gather_files
from hud_mcp.record.place import PICTURES_VARIABLE, STORE_VARIABLE
from hud_mcp.registry import service
from hud_mcp.rollout.evaluation import ROWS, Served, ServedJob, tell_worker_death
from hud_mcp.rollout.link import Address, Link, web_link
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.pool import Moves
from hud_mcp.rollout.server import RunServer
from hud_mcp.store import Store
from hud_mcp.values.needs import Needs

logger = logging.getLogger(__name__)

_PLACE_S = 60.0
"""The time that a cluster has to find a node with room for a server."""
_AGAIN_S = 15.0
"""The same for a later server, before it asks for less room: a node may have died."""
_START_S = 60.0
"""The time that a server has to answer there."""
_STOP_S = 15.0


@dataclass(frozen=True)
class NodeCommand:
    """The start of a server on a node.

    It claims room for all its sessions. A later server claims the least, that for one session, if
    there is no more. `log` gets the end of the server's log once it has ended.
    """

    arguments: Sequence[str]
    variables: Mapping[str, str] = field(repr=False)
    claim: Mapping[str, Any]
    least: Mapping[str, Any]
    log: Callable[[str], None]


@asynccontextmanager
async def run_on_nodes(
    commands: Sequence[NodeCommand],
    addresses: Sequence[Address],
    on_death: Callable[[int, str], None],
) -> AsyncGenerator[list[RunServer]]:
    """Keep servers on nodes of the cluster at the addresses, and stop them at the end.

    `on_death` is called with a server's number and a line for people.

    Raises:
        EnvironmentFailed: A server does not start.
    """
    servers = [
        RunServer(
            _Starts(command, address).link, address=address, on_death=partial(on_death, number)
        )
        for number, (command, address) in enumerate(zip(commands, addresses, strict=True))
    ]
    try:
        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as starting:
                for server in servers:
                    starting.start_soon(group.start, server.keep)
            try:
                yield servers
            finally:
                group.cancel_scope.cancel()
    except BaseExceptionGroup as found:
        raise sole_cause(found) from None


class _Starts:
    """The servers of one command, one after the other.

    The first one needs room for all its sessions: else the job is too large for the cluster. Later
    there may be fewer nodes, and the runs under way have to go on.
    """

    def __init__(self, command: NodeCommand, address: Address) -> None:
        self._command = command
        self._address = address
        self._are_later = False

    @asynccontextmanager
    async def link(self) -> AsyncGenerator[Link]:
        """Start a server on a node that has room, connect, and stop it at the end.

        Raises:
            EnvironmentFailed: No node has room in time, or the server does not answer.
        """
        command, address = self._command, self._address
        address.move("")
        actor = await self._placed()
        died = False
        try:
            url, node = await _started(actor, address.token)
            address.move(url)
            logger.info("a server of the job answers on node %s", node)
            async with (
                anyio.create_task_group() as group,
                web_link(address.url, address.token) as link,
            ):
                group.start_soon(_watch, actor, link, command.log)
                try:
                    self._are_later = True
                    yield link
                finally:
                    # Read before the cancellation: a dead server is not asked to end in order.
                    died = link.died.is_set()
                    group.cancel_scope.cancel()
        finally:
            address.move("")
            with anyio.CancelScope(shield=True):
                await _end(actor, command.log, in_order=not died)

    async def _placed(self) -> Any:
        command = self._command
        tries = [(command.claim, _PLACE_S)]
        if self._are_later:
            tries = [(command.claim, _AGAIN_S), (command.least, _PLACE_S)]
        for claim, within_s in tries:
            # Several calls at once, as one of them waits for the server's end.
            placed = cluster.ray.remote(NodeServer).options(
                max_concurrency=4, scheduling_strategy="SPREAD", **claim
            )
            actor = placed.remote(list(command.arguments), dict(command.variables))
            has_room = False
            try:
                with anyio.move_on_after(within_s):
                    await _answer(actor.__ray_ready__)
                    has_room = True
                    return actor
            finally:
                if not has_room:
                    _kill(actor)
            logger.info("no node has room for a server that takes %s", dict(claim))
        raise EnvironmentFailed(
            f"No node of the cluster had room for the server within {tries[-1][1]:g} s: other "
            "servers take what it needs. `ray status` shows what each node has left."
        )


async def _started(actor: Any, token: str) -> tuple[str, str]:
    try:
        with anyio.fail_after(_START_S):
            return await _answer(actor.start, token)
    except TimeoutError:
        raise EnvironmentFailed(
            f"The server did not answer on its node within {_START_S:g} s. `ray status` shows "
            "what the node has to do."
        ) from None


async def _answer(method: Any, *given: Any) -> Any:
    """Call an actor, or raise `EnvironmentFailed` if its node or its server has ended."""
    try:
        return await _result(method.remote(*given))
    except cluster.RayError as exc:
        lines = [line for line in str(exc).splitlines() if line.strip()]
        raise EnvironmentFailed(f"The server did not start: {'; '.join(lines[-6:])}") from None


async def _watch(actor: Any, link: Link, log: Callable[[str], None]) -> None:
    """Note on the link that its server or its node has died."""
    try:
        log(await _result(actor.wait.remote()))
    except cluster.RayError as exc:
        log(str(exc).splitlines()[0])
    link.die()


async def _end(actor: Any, log: Callable[[str], None], *, in_order: bool) -> None:
    """End a server in order, or at once if that takes too long or its node may be gone."""
    try:
        if in_order:
            with anyio.move_on_after(_STOP_S):
                log(await _result(actor.stop.remote()))
    except cluster.RayError as exc:
        logger.debug("a server's node is gone: %s", exc)
    _kill(actor)


def _kill(actor: Any) -> None:
    """End an actor at once, or its search for a node."""
    try:
        cluster.ray.kill(actor)
    except (cluster.RayError, ValueError) as exc:
        logger.debug("a server is gone: %s", exc)


async def _result(reference: Any) -> Any:
    """Wait for the result of a call on another machine.

    If the wait is cancelled, Ray still has a future to fill.
    """
    future = asyncio.wrap_future(reference.future())
    # An exception that nobody has looked at would be logged.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(future)


_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)
_CONNECT_S = 5.0


@asynccontextmanager
async def relay(target: Callable[[], str | None]) -> AsyncGenerator[int]:
    """Keep a loopback port that carries each connection to the present server, and yield it.

    If `target` has no URL now, the connection is closed, and its client tries again.
    """

    async def carry(client: SocketStream) -> None:
        async with client:
            url = target()
            if url is None:
                return
            parts = urlsplit(url)
            with suppress(*_BROKEN, TimeoutError):
                with anyio.fail_after(_CONNECT_S):
                    server = await anyio.connect_tcp(parts.hostname or "", parts.port or 0)
                async with server, anyio.create_task_group() as group:
                    group.start_soon(_pump, client, server)
                    await _pump(server, client)
                    group.cancel_scope.cancel()

    listener = await anyio.create_tcp_listener(local_host=LOOPBACK)
    port: int = listener.extra_attributes[SocketAttribute.local_port]()
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, carry)
        yield port
        group.cancel_scope.cancel()


async def _pump(source: ByteReceiveStream, sink: ByteSendStream) -> None:
    with suppress(*_BROKEN):
        async for chunk in source:
            await sink.send(chunk)


_CARRIED = ("HUD_MCP_", "AWS_", "FSSPEC_")
"""The beginnings of variables that servers on nodes get from this process."""


@asynccontextmanager
async def serve_on_nodes(job: ServedJob, cluster_address: str) -> AsyncGenerator[Served]:
    """Serve a job by processes on the nodes of a Ray cluster, while the block runs."""
    how, sent = job.how, job.folder / "sent"
    sent.mkdir()
    tasks = Taskset(job.prepared.tasks)
    sources = await anyio.to_thread.run_sync(gather_files, how.sources, tasks, sent)
    needs = _needs(how)
    count = how.workers or 1
    each = -(-how.max_concurrent // count)
    offers = share_out([needs.get(task.env, Needs()) for task in tasks], count)
    async with connected(cluster_address, sent) as nodes, AsyncExitStack() as stack:
        check_store(job.store, nodes, shows=_shows(how))
        shutil.rmtree(sent)  # it was sent as this process connected

        def tell(at: int, text: str) -> None:
            tell_worker_death(job.watch, at + 1, text)

        commands = [
            NodeCommand(
                ["serve", *sources, "--taskset", ROWS, "--job", job.prepared.job.id, *job.options],
                _carried(job.store) | service("sampling variables")(how.model),
                nodes.claim(one, each),
                nodes.claim(one, 1),
                partial(_append, job.log, number),
            )
            for number, one in enumerate(offers, 1)
        ]
        token = Address().token  # one for all servers, as a run may move
        addresses = [Address(token=token) for _ in offers]
        servers = await stack.enter_async_context(run_on_nodes(commands, addresses, tell))
        stable: Address | None = None
        if how.is_remote:
            relayed = relay(lambda: next((each.url for each in addresses if each.url), None))
            port = await stack.enter_async_context(relayed)
            stable = Address(token, port, f"http://127.0.0.1:{port}/mcp")
        moves = Moves(needs, each, stable, job.watch.on_note)
        yield Served(list(servers), offers, moves)


def check_store(store: Store, nodes: Cluster, *, shows: bool) -> None:
    """Refuse a store that other machines cannot write to.

    Raises:
        HudMcpError: The store, or its pictures if `shows`, are files of this machine, and there are
            several nodes.
    """
    if nodes.size <= 1:
        return
    if not store.url.startswith("postgresql"):
        raise HudMcpError(
            f"The Ray cluster has {nodes.size} nodes, and its store is a SQLite file of this "
            "machine. Give a store that all of them reach: postgresql://user@host/database."
        )
    if shows and not os.environ.get(PICTURES_VARIABLE):
        raise HudMcpError(
            f"The Ray cluster has {nodes.size} nodes, and pictures would lie on each of them. "
            f"Name one place for all of them in {PICTURES_VARIABLE}: a shared folder, or "
            "s3://bucket/folder."
        )


def _carried(store: Store) -> dict[str, str]:
    own = {k: v for k, v in os.environ.items() if k.startswith(_CARRIED) and k not in TOKENS}
    return own | {STORE_VARIABLE: store.url}


def _needs(how: RunOptions) -> dict[str, Needs]:
    """Return the needs of a session, by environment; those of a bridged one are unknown."""
    sources = [each for each in how.sources if not Source(each).is_remote]
    return {each.name: each.needs for each in load_environments(sources)}


def _shows(how: RunOptions) -> bool:
    sources = [each for each in how.sources if not Source(each).is_remote]
    return any(each.world.has_screen for each in load_environments(sources))


def share_out(wanted: Sequence[Needs], count: int) -> list[Needs]:
    """Return the needs that each of so many servers meets, shared out by the number of tasks.

    With fewer servers than kinds of needs, each server meets all needs.
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
