"""Servers of a job on nodes of a cluster: each in the place of the one before, on any node."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, SocketAttribute, SocketStream

from hud_mcp.base.listening import LOOPBACK
from hud_mcp.errors import EnvironmentFailed, sole_cause
from hud_mcp.plugins.cluster import libraries
from hud_mcp.plugins.cluster.node_server import NodeServer
from hud_mcp.rollout.link import Address, Link, web_link
from hud_mcp.rollout.server import RunServer

__all__ = ["NodeCommand", "relay", "run_on_nodes"]


logger = logging.getLogger(__name__)

_PLACE_S = 60.0
"""How long a cluster may take to find a node with room for a server."""
_AGAIN_S = 15.0
"""The same for a later server, until less room is asked for: a node may have died."""
_START_S = 60.0
"""How long a server may take to answer there."""
_STOP_S = 15.0


@dataclass(frozen=True)
class NodeCommand:
    """How a server is started on a node.

    Attributes:
        arguments: Of `hud-mcp`, as they are read in the folder that is sent.
        variables: What the server's environment has beside the node's own.
        claim: What it takes of its node for all its sessions, as Ray's options of an actor.
        least: The same for one session: a later server takes that where there is no more room.
        log: Given the end of the server's own log once it has ended.
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
    """Keep servers on nodes of the cluster, and stop them at the end.

    Args:
        commands: How each is started.
        addresses: Where each is, which is filled in whenever it is started.
        on_death: Called with a server's number and a line for people when it has died.

    Raises:
        EnvironmentFailed: One of them does not start.
    """
    servers = [
        RunServer(
            _Starts(command, address).link,
            address=address,
            on_death=partial(on_death, number),
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

    The first one is placed only where all its sessions have room: else the job is too large for
    the cluster. Later there may be fewer nodes, and what was promised has to go on.

    Args:
        command: How each is started.
        address: Where it is, which is filled in.
    """

    def __init__(self, command: NodeCommand, address: Address) -> None:
        self._command = command
        self._address = address
        self._are_later = False

    @asynccontextmanager
    async def link(self) -> AsyncGenerator[Link]:
        """Start a server on a node that has room, connect, and stop it at the end.

        Raises:
            EnvironmentFailed: No node takes it in time, or it does not answer.
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
                    died = link.died.is_set()
                    group.cancel_scope.cancel()
        finally:
            address.move("")
            with anyio.CancelScope(shield=True):
                await _end(actor, command.log, in_order=not died)

    async def _placed(self) -> Any:
        """Find a node with room."""
        command = self._command
        tries = [(command.claim, _PLACE_S)]
        if self._are_later:
            tries = [(command.claim, _AGAIN_S), (command.least, _PLACE_S)]
        for claim, within_s in tries:
            # Several calls at once: one of them waits for its end.
            placed = libraries.ray.remote(NodeServer).options(
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
    """Call an actor that is to start a server.

    Raises:
        EnvironmentFailed: It, or its node, has ended; or the server did not start.
    """
    try:
        return await _result(method.remote(*given))
    except libraries.RayError as exc:
        lines = [line for line in str(exc).splitlines() if line.strip()]
        raise EnvironmentFailed(f"The server did not start: {'; '.join(lines[-6:])}") from None


async def _watch(actor: Any, link: Link, log: Callable[[str], None]) -> None:
    """Tell the link when its server has died, or its node."""
    try:
        log(await _result(actor.wait.remote()))
    except libraries.RayError as exc:
        log(str(exc).splitlines()[0])
    link.die()


async def _end(actor: Any, log: Callable[[str], None], *, in_order: bool) -> None:
    """End a server in order; at once where that takes too long, or where its node may be gone."""
    try:
        if in_order:
            with anyio.move_on_after(_STOP_S):
                log(await _result(actor.stop.remote()))
    except libraries.RayError as exc:
        logger.debug("a server's node is gone: %s", exc)
    _kill(actor)


def _kill(actor: Any) -> None:
    """End what runs a server at once, or its search for a node."""
    try:
        libraries.ray.kill(actor)
    except (libraries.RayError, ValueError) as exc:
        logger.debug("a server is gone: %s", exc)


async def _result(reference: Any) -> Any:
    """Wait for what a call on another machine gives.

    Where the wait is cancelled, Ray still has a future to fill.
    """
    future = asyncio.wrap_future(reference.future())
    future.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was looked at
    return await asyncio.shield(future)


_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)
_CONNECT_S = 5.0


@asynccontextmanager
async def relay(target: Callable[[], str | None]) -> AsyncGenerator[int]:
    """Carry each connection to where a server is by then, while the block runs.

    Args:
        target: The URL of a server; None where there is none now: the connection is closed, and
            its client tries again.

    Yields:
        The port.
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
