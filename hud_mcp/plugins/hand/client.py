"""One call of a command: the server is found, or started, and asked."""

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import TypeAdapter

from hud_mcp import __version__
from hud_mcp.base import libraries
from hud_mcp.errors import HudMcpError, SourceNotFound, sole_cause
from hud_mcp.loading.source import lasting_source
from hud_mcp.plugins.hand.place import Lock, Notes, Place
from hud_mcp.session.caller import digest_token
from hud_mcp.session.finding import MOST
from hud_mcp.store import Store

__all__ = [
    "NOTHING",
    "Asked",
    "NothingOpen",
    "answers",
    "ask",
    "list_open",
    "reached",
    "stop_server",
]

_URL = "http://localhost:1/mcp"
"""The socket leads there, whatever stands in it."""

_START_S = 120.0
"""How long a server may take to load what it serves."""
_STOP_S = 10.0
_CALL_S = 1800.0
"""How long one call may take; the server bounds its own work below that."""
_TELL_S = 2.0
"""After so long, a start says how long it takes."""
_TRIES = 5
_CONNECT_S = 5.0

Report = Callable[[str], None]

_left: list[object] = []
"""Servers that this process has started, and that go on after it: nobody waits for them."""


NOTHING = "There is no task in progress. Start one: `hud-mcp task start TASK`."


class NothingOpen(HudMcpError):
    """No session is held in this store, so nothing was started."""


class Asked(HudMcpError):
    """The server has refused a call; the text is its own."""


@contextmanager
def reached(
    place: Place,
    *,
    starts: bool,
    is_named: bool = False,
    sources: Sequence[str] = (),
    tasksets: Sequence[str] = (),
    report: Report,
) -> Generator[Notes]:
    """Keep the server of a place from ending while the body runs; it is started where it must be.

    Args:
        place: Where it is.
        starts: Whether there is a server from now on; else only where something is held.
        is_named: Whether a session is named: what has ended is told of then, too.
        sources: What it is to serve; what it serves already where there are none.
        tasksets: Tasks to offer by id beside that.
        report: Told how long a start takes.

    Yields:
        What the server has left for commands.

    Raises:
        NothingOpen: There is none, and none is started.
        HudMcpError: It does not start, is of another version, serves something else, or is another
            user's.
    """
    given = tuple(lasting_source(source) for source in sources)
    wanted = tuple(lasting_source(each) for each in tasksets)
    lock = Lock(place.lock)
    try:
        for _ in range(_TRIES):
            lock.wait(alone=False, within_s=_START_S)
            if answers(place):
                break
            left = place.notes()
            if not starts and (left is None or not (left.holds or is_named)):
                raise NothingOpen(NOTHING)
            lock.release()  # two that hold it together would both wait for it alone
            lock.wait(alone=True, within_s=_START_S)
            if not answers(place):
                before = left if left is not None and (left.holds or not starts) else None
                _start(place, before, given, wanted, report)
            lock.take(alone=False)
        else:
            raise HudMcpError(f"The server ended at its start; {place.log} says why.")
        yield _check(place, given, wanted)
    finally:
        lock.close()


def answers(place: Place) -> bool:
    """Whether a server listens; a socket that a killed one has left does not count.

    Raises:
        HudMcpError: The socket is another user's.
    """
    place.check()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_S)
        try:
            probe.connect(os.fspath(place.socket))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError as exc:
            raise HudMcpError(
                f"The server of this store does not answer at {place.socket}: {exc.strerror or exc}"
                ". End it with `hud-mcp task stop`, then call again."
            ) from exc
    return True


def _check(place: Place, sources: Sequence[str], tasksets: Sequence[str]) -> Notes:
    """What a server that answers has left.

    Raises:
        HudMcpError: It is of another version, or serves something else.
    """
    notes = place.notes()
    other = "nobody knows which" if notes is None else notes.version
    if notes is None or notes.version != __version__:
        raise HudMcpError(
            f"The server of this store runs another version of hud-mcp ({other}; this is "
            f"{__version__}). Stop it with `hud-mcp task stop`; its sessions continue in the "
            "next server."
        )
    missing = [each for each in sources if each not in notes.sources]
    missing += [each for each in tasksets if each not in notes.tasksets]
    if missing:
        raise HudMcpError(
            f"The server of this store serves {', '.join(notes.sources)}, and not {missing[0]}. "
            "Answer or cancel its sessions (`hud-mcp task ps`), or name another --store."
        )
    return notes


def _start(  # what one server is
    place: Place,
    left: Notes | None,
    sources: Sequence[str],
    tasksets: Sequence[str],
    report: Report,
) -> None:
    """Start the server, and wait until it answers; it serves what an earlier one has left, too.

    Raises:
        HudMcpError: It does not; the text is what it said.
    """
    served = tuple(dict.fromkeys((*(left.sources if left else ()), *sources)))
    offered = tuple(dict.fromkeys((*(left.tasksets if left else ()), *tasksets)))
    read, write = os.pipe()
    command = [sys.executable, "-P", "-m", "hud_mcp", "task", "hold"]
    command += ["--store", place.store, "--ready", str(write)]
    command += [*(f"--taskset={each}" for each in offered), "--", *served]
    place.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(read, "rb") as told:
        try:
            with os.fdopen(os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)) as log:
                process = subprocess.Popen(  # noqa: S603  # this program
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    pass_fds=(write,), start_new_session=True,
                )  # fmt: skip
        finally:
            os.close(write)
        said = _wait(told, report)
    if said == b"ready\n":
        _left.append(process)
        return
    process.wait()
    text = said.decode(errors="replace").strip()
    raise HudMcpError(text or f"The server did not start; {place.log} says why.")


def _wait(told: Any, report: Report) -> bytes:
    """What a server says of its start, up to its end."""
    began_s = time.monotonic()
    while not select.select([told], [], [], _TELL_S)[0]:
        passed_s = time.monotonic() - began_s
        if passed_s > _START_S:
            return f"The server has not started within {_START_S:g} s.".encode()
        report(f"starting the server: {passed_s:.0f} s")
    return told.read()


async def ask(
    place: Place,
    name: str,
    arguments: Mapping[str, Any],
    *,
    meta: Mapping[str, Any] | None = None,
    report: Report,
) -> Any:
    """Call a tool of a server that answers; `tools/list` gives them all.

    Args:
        place: Where it is.
        name: The tool's.
        arguments: Its arguments.
        meta: Beside them.
        report: Told how a long call goes on.

    Raises:
        Asked: It was refused.
        HudMcpError: The server has ended meanwhile.
    """

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        report(message or "working")

    types = libraries.mcp_types
    transport = libraries.httpx2.AsyncHTTPTransport(uds=os.fspath(place.socket))
    headers = {"Authorization": f"Bearer {place.token()}"}
    timeout = libraries.httpx2.Timeout(30, read=None)
    try:
        async with (
            libraries.httpx2.AsyncClient(
                transport=transport, headers=headers, timeout=timeout
            ) as web,
            libraries.Client(
                libraries.streamable_http_client(_URL, http_client=web),
                read_timeout_seconds=_CALL_S,
            ) as client,
        ):
            if name == "tools/list":
                return (await client.list_tools()).tools
            request = types.CallToolRequest(
                params=types.CallToolRequestParams.model_validate(
                    {"name": name, "arguments": dict(arguments), "_meta": dict(meta or {})}
                )
            )
            return await client.session.send_request(
                request, TypeAdapter(types.CallToolResult), progress_callback=tell
            )
    except libraries.MCPError as exc:
        raise Asked(exc.error.message) from exc
    except (OSError, TimeoutError, libraries.httpx2.HTTPError, ExceptionGroup) as exc:
        cause = sole_cause(exc)
        if isinstance(cause, libraries.MCPError):
            raise Asked(cause.error.message) from exc
        raise HudMcpError(
            f"The server ended during the call ({type(cause).__name__}). The record is intact: "
            f"`hud-mcp task ps` shows it, and {place.log} says why."
        ) from exc


async def list_open(place: Place) -> tuple[list[dict[str, str]], str]:
    """The sessions of a store that commands have started, newest first, and what serves them.

    No server is started for it: this reads the record.
    """
    store = Store(place.store)
    try:
        found = await store.list_own(digest_token(place.token()), MOST)
    finally:
        await store.close()
    is_running = answers(place)
    notes = place.notes()
    open_state = "open" if is_running else "waiting"
    rows = [
        {
            "session": own.trajectory_id,
            "state": "ended" if own.has_ended else open_state,
            "since": f"{own.started_at:%Y-%m-%d %H:%M}",
            "task": own.task,
            "environment": own.environment,
        }
        for own in found
    ]
    if is_running and notes is not None:
        return rows, f"Server: process {notes.pid}, serves {', '.join(notes.sources)}."
    return rows, "No server is running. The next command for a session starts one."


def stop_server(place: Place) -> bool:
    """End the server in order; its sessions go on in the next one. Return whether there was one.

    Raises:
        HudMcpError: It does not end.
    """
    if not answers(place):
        return False
    pid = _peer(place)
    if pid is None:
        raise SourceNotFound(f"No process is known for the server at {place.socket}.")
    os.kill(pid, 15)
    until_s = time.monotonic() + _STOP_S
    while answers(place):
        if time.monotonic() > until_s:
            raise HudMcpError(f"The server (process {pid}) does not end; {place.log} says why.")
        time.sleep(0.05)
    return True


def _peer(place: Place) -> int | None:
    """The process that listens: as the system says, else as its notes do."""
    if hasattr(socket, "SO_PEERCRED"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(os.fspath(place.socket))
            credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return int.from_bytes(credentials[:4], sys.byteorder)
    notes = place.notes()
    return notes.pid if notes else None
