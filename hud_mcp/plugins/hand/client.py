"""One call of a command to the background server, which starts if there is none."""

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

from hud_mcp.base import __version__, libraries
from hud_mcp.base.process import OwnServer
from hud_mcp.errors import EnvironmentFailed, HudMcpError, SourceNotFound, sole_cause
from hud_mcp.loading.source import lasting_source
from hud_mcp.plugins.hand.place import Lock, Notes, Place
from hud_mcp.rollout.link import http_client
from hud_mcp.session.caller import digest_token
from hud_mcp.session.finding import MOST
from hud_mcp.store import Store

_URL = "http://localhost:1/mcp"
"""The socket leads to the server, whatever address stands here."""

_START_S = 120.0
_STOP_S = 10.0
_CALL_S = 1800.0
"""The bound of one call. The server bounds its own work below that."""
_TELL_S = 2.0
_TRIES = 5
_CONNECT_S = 5.0

Report = Callable[[str], None]

_left: list[object] = []
"""Servers that this process has started. They go on after it, and nobody waits for them."""


NOTHING = "There is no task in progress. Start one: `hud-mcp task start TASK`."


class NothingOpen(HudMcpError):
    """No session is held in this store, so no server was started."""


class Asked(HudMcpError):
    """The server has refused a call. The text is the server's."""


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
    """Keep the server at `place` alive while the block runs, and start it if it does not run.

    Args:
        place: The place of the server.
        starts: Whether to start a server in any case; otherwise only if it has held sessions.
        is_named: Whether the call names a session: an ended one is reported then, too.
        sources: The sources to serve; empty for those that it serves already.
        tasksets: Tasks to offer by id beside those.
        report: Called with the progress of a long start.

    Raises:
        NothingOpen: There is no server, and none is started.
        HudMcpError: The server does not start, has another version, serves something else, or is
            another user's.
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
            lock.release()  # two processes that share it would both wait to have it alone
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
    """Whether a server listens. A socket that a killed server has left does not count.

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
    """Return the notes of a server that answers.

    Raises:
        HudMcpError: It has another version, or serves something else.
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
    """Start the server, and wait until it answers. It serves the earlier one's sources, too.

    Raises:
        HudMcpError: It does not start; the text is its last output.
    """
    served = tuple(dict.fromkeys((*(left.sources if left else ()), *sources)))
    offered = tuple(dict.fromkeys((*(left.tasksets if left else ()), *tasksets)))
    read, write = os.pipe()
    options = ["--store", place.store, "--ready", str(write)]
    options += [*(f"--taskset={each}" for each in offered), "--", *served]
    place.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(read, "rb") as told:
        try:
            with os.fdopen(os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)) as log:
                process = OwnServer(["task", "hold", *options], log).popen(
                    stdin=subprocess.DEVNULL, stdout=log, pass_fds=(write,), leads_session=True
                )
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
    """Call a tool of the running server; the name `tools/list` lists all tools.

    Raises:
        Asked: The server has refused the call.
        HudMcpError: The server has ended meanwhile.
    """

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        report(message or "working")

    types = libraries.mcp_types
    opened = http_client(_URL, token=place.token(), call_s=_CALL_S, socket=place.socket)
    try:
        async with opened as client:
            if name == "tools/list":
                return (await client.list_tools()).tools
            params = {"name": name, "arguments": dict(arguments), "_meta": dict(meta or {})}
            return await client.session.send_request(
                types.CallToolRequest(params=types.CallToolRequestParams.model_validate(params)),
                TypeAdapter(types.CallToolResult),
                progress_callback=tell,
            )
    except libraries.MCPError as exc:
        raise Asked(exc.error.message) from exc
    except (
        OSError, TimeoutError, EnvironmentFailed, libraries.httpx2.HTTPError, ExceptionGroup
    ) as exc:  # fmt: skip
        cause = sole_cause(exc.__cause__ or exc)  # of a connection that could not be made, too
        if isinstance(cause, libraries.MCPError):
            raise Asked(cause.error.message) from exc
        raise HudMcpError(
            f"The server ended during the call ({type(cause).__name__}). The record is intact: "
            f"`hud-mcp task ps` shows it, and {place.log} says why."
        ) from exc


async def list_open(place: Place) -> tuple[list[dict[str, str]], str]:
    """Return the sessions of commands, newest first, and a line on their server. It starts none."""
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
    """End the server in order, and return whether there was one. Its sessions go on in the next.

    Raises:
        HudMcpError: The server does not end.
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
    if hasattr(socket, "SO_PEERCRED"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(os.fspath(place.socket))
            credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return int.from_bytes(credentials[:4], sys.byteorder)
    notes = place.notes()
    return notes.pid if notes else None
