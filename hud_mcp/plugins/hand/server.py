"""The background server, which holds the sessions of one store and ends after the last one."""

import logging
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio

from hud_mcp.base import __version__
from hud_mcp.base.process import Deadline
from hud_mcp.plugins.hand.place import Lock, Notes, Place
from hud_mcp.server.app import build_server
from hud_mcp.server.http import http_app
from hud_mcp.server.web.auth import Tokens
from hud_mcp.server.web.listener import WebServer
from hud_mcp.session.caller import digest_token
from hud_mcp.session.finding import MOST
from hud_mcp.session.registry import Sessions

logger = logging.getLogger(__name__)

USER = "by hand"
"""The principal of all callers at the socket: the user of this machine."""

_LOOK_S = 0.1
_BACKLOG = 128


async def serve_by_hand(
    sessions: Sessions, place: Place, notes: Notes, *, on_ready: Callable[[], None]
) -> int:
    """Serve until no session is left and no command is under way, or a signal comes.

    Sessions that a signal leaves go on in the next server. The caller, or the process that started
    it, holds the lock of the place. Returns the exit status of the process.
    """
    deadline = Deadline(sessions.kill)
    listener = _listen(place)
    lock = Lock(place.lock)

    async def stop() -> None:
        number = web.signal
        deadline.begin(0 if number is None else 128 + number)
        place.write_notes(replace(notes, holds=await _holds(sessions, place)))
        await sessions.close()

    app = http_app(
        build_server(sessions, image="png"), host="localhost", port=0,
        access=Tokens({place.token(): USER}), max_body_bytes=4 * sessions.limits.argument_bytes,
    )  # fmt: skip
    web = WebServer(app, on_ready=on_ready, on_stop=stop, lifespan=True)
    try:
        place.write_notes(notes)
        async with anyio.create_task_group() as group:
            group.start_soon(_end_after_the_last, sessions, place, lock, web, notes)
            await web.serve(sockets=[listener])
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):  # bounded in itself
            await sessions.close()
        with suppress(FileNotFoundError):
            _unlink(place)
        listener.close()
    deadline.finish()
    return 0 if web.signal in (None, signal.SIGTERM) else 128 + web.signal


def notes_of(sources: tuple[str, ...], tasksets: tuple[str, ...]) -> Notes:
    """Return the notes of this process for commands."""
    return Notes(version=__version__, pid=os.getpid(), sources=sources, tasksets=tasksets)


async def _end_after_the_last(  # all that ends
    sessions: Sessions, place: Place, lock: Lock, web: Any, notes: Notes
) -> None:
    """End the server if no session is held and no command can be about to begin one."""
    while True:
        await anyio.sleep(_LOOK_S)
        if sessions.roster.living() or not lock.take(alone=True):
            continue
        if sessions.roster.living():  # one of the command that has just released the lock
            lock.release()
            continue
        logger.info("no session is left; the server ends")
        # Removed under the lock: the next command finds no socket, and starts a server.
        place.socket.unlink(missing_ok=True)
        place.write_notes(replace(notes, holds=await _holds(sessions, place)))
        web.end()
        return


async def _holds(sessions: Sessions, place: Place) -> bool:
    """Whether a session is not over, in this process or in the record of an earlier server."""
    if sessions.roster.living():
        return True
    found = await sessions.store.list_own(digest_token(place.token()), MOST)
    return any(not own.has_ended for own in found)


def _listen(place: Place) -> socket.socket:
    """Return a socket that its user alone may open, from its first moment on."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        place.socket.unlink(missing_ok=True)
        listener.bind(os.fspath(place.socket))
    finally:
        os.umask(before)
    listener.setblocking(False)
    listener.listen(_BACKLOG)
    return listener


def _unlink(place: Place) -> None:
    """Remove the socket, if it is still this server's."""
    notes = place.notes()
    if notes is None or notes.pid == os.getpid():
        place.socket.unlink()
