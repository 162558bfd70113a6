"""The place of a store's background server: files that its user alone can reach."""

import hashlib
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
from platformdirs import user_data_path

from hud_mcp.errors import HudMcpError
from hud_mcp.record.place import default_store_url, read_place

if sys.platform != "win32":
    import fcntl

_SOCKET_BYTES = 100
"""The longest path of a socket: macOS has 104 bytes, Linux 108, each with a zero."""

_PRIVATE = 0o700
_OTHERS = 0o077
_POLL_S = 0.02


@dataclass(frozen=True)
class Notes:
    """The notes that a server leaves for its commands."""

    version: str
    pid: int
    sources: tuple[str, ...]  # that it serves
    tasksets: tuple[str, ...] = ()  # that it offers by id beside those
    holds: bool = True  # sessions wait for the next server once this one has ended


@dataclass(frozen=True)
class Place:
    """The place of one store's server."""

    store: str
    folder: Path  # nobody else may enter it
    name: str  # the common name of its files there
    log: Path  # beside the store

    @property
    def socket(self) -> Path:
        """The server's socket."""
        return self.folder / f"{self.name}.sock"

    @property
    def lock(self) -> Path:
        """The lock that commands share, and that the starter or ender of the server has alone."""
        return self.folder / f"{self.name}.lock"

    @property
    def _notes(self) -> Path:
        return self.folder / f"{self.name}.json"

    def notes(self) -> Notes | None:
        """Return the notes of the last server, or None."""
        try:
            read: Any = orjson.loads(self._notes.read_bytes())
            return Notes(
                str(read["version"]),
                int(read["pid"]),
                tuple(map(str, cast("list[Any]", read["sources"]))),
                tuple(map(str, cast("list[Any]", read["tasksets"]))),
                bool(read["holds"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_notes(self, notes: Notes) -> None:
        """Write the notes, whole or not at all."""
        _write(self._notes, orjson.dumps(notes))

    def token(self) -> str:
        """Return the token by which the store knows the commands' sessions. It is made once."""
        file = self.folder / f"{self.name}.token"
        try:
            return file.read_text(encoding="ascii")
        except FileNotFoundError:
            draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
            _write(draft, secrets.token_hex(32).encode())
            with suppress(FileExistsError):  # of two processes that come first, one has made it
                file.hardlink_to(draft)
            draft.unlink()
            return file.read_text(encoding="ascii")

    def check(self) -> None:
        """Refuse a socket of another user with a HudMcpError."""
        try:
            found = self.socket.lstat()
        except FileNotFoundError:
            return
        if found.st_uid != os.getuid() or not stat.S_ISSOCK(found.st_mode):
            raise HudMcpError(
                f"{self.socket} is not a socket of yours (its owner is user {found.st_uid}), "
                "and is not used. Remove it, or set XDG_RUNTIME_DIR to a folder of your own."
            )


class Lock:
    """A lock of this process: shared or exclusive. Closing it releases it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, *, alone: bool) -> bool:
        """Lock it shared or exclusively, and return whether that was possible at once."""
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait(self, *, alone: bool, within_s: float) -> None:
        """Lock it within a time.

        Raises:
            HudMcpError: Other processes hold it for longer.
        """
        until_s = time.monotonic() + within_s
        while not self.take(alone=alone):
            if time.monotonic() > until_s:
                raise HudMcpError(
                    f"Other commands have occupied the server of this store for {within_s:g} s. "
                    "`hud-mcp task ps` shows it; call again later, or `hud-mcp task stop`."
                )
            time.sleep(_POLL_S)

    def release(self) -> None:
        """Release it. It can be locked again."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release it for good. It may be called twice."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def place_of(store: str | None) -> Place:
    """Return the place of a store's server, and make its folder.

    Raises:
        HudMcpError: No folder is this user's alone, or the system has no such sockets.
    """
    if sys.platform == "win32":
        raise HudMcpError(
            "Tasks by hand need Unix sockets, which Python does not have on Windows. Use WSL, "
            "or `hud-mcp serve` with an MCP client."
        )
    url, file = read_place(store or default_store_url())
    meant = os.path.realpath(file) if file else url
    name = hashlib.sha256(str(meant).encode()).hexdigest()[:16]
    beside = Path(meant).parent if file else user_data_path("hud-mcp")
    return Place(store=url, folder=_folder(name), name=name, log=beside / "task-server.log")


def _folder(name: str) -> Path:
    own = Path(tempfile.gettempdir()) / f"hud-mcp-{os.getuid()}"
    given = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    usual = [Path(given) / "hud-mcp"] if os.access(given, os.W_OK) else []
    for folder in (*usual, own, Path("/tmp") / own.name):  # noqa: S108  # each is looked at
        if len(os.fsencode(folder / f"{name}.sock")) <= _SOCKET_BYTES:
            return _private(folder)
    raise HudMcpError(
        f"{own} is too long a path for a socket. Set TMPDIR or XDG_RUNTIME_DIR to a shorter one."
    )


def _private(folder: Path) -> Path:
    """Make a folder that nobody else may enter, or check that it is one.

    Raises:
        HudMcpError: It is another user's, or cannot be made.
    """
    remedy = "Set XDG_RUNTIME_DIR to a folder of your own."
    try:
        folder.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        with _umask(_OTHERS):
            folder.mkdir(mode=_PRIVATE, exist_ok=True)
        for each in (folder.parent, folder):
            found = each.lstat()
            shared = each != folder and (found.st_uid == 0 or found.st_mode & stat.S_ISVTX)
            if not stat.S_ISDIR(found.st_mode) or (found.st_uid != os.getuid() and not shared):
                raise HudMcpError(
                    f"{each} belongs to another user (user {found.st_uid}), who could read the "
                    f"traffic there. {remedy}"
                )
        if folder.stat().st_mode & _OTHERS:
            folder.chmod(_PRIVATE)
    except OSError as exc:
        raise HudMcpError(f"{folder} cannot be made: {exc.strerror}. {remedy}") from exc
    return folder


@contextmanager
def _umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _write(file: Path, content: bytes) -> None:
    """Write a file of this user alone, whole or not at all."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(content)
    draft.replace(file)
