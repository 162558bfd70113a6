"""A folder of the machine in which sessions work themselves, one after the other.

Before a session, the folder's state is packed into a file; after it, the state is put back. If the
server dies in between, the next session puts it back before it begins.
"""

import errno
import fcntl
import hashlib
import logging
import os
import tarfile
from pathlib import Path

import anyio
import anyio.to_thread

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.sandbox.inside.archive import pack, unpack
from hud_mcp.sandbox.inside.beneath import open_root, remove_all
from hud_mcp.sandbox.inside.tree import Skip, walk

logger = logging.getLogger(__name__)

_WAIT_S = 20.0
"""Seconds that a session waits for the one before it; the usual bound of a setup is longer."""
_POLL_S = 0.05
_NAMED = 5


class InPlace:
    """A folder that belongs to one session at a time. Made by `take`."""

    def __init__(self, root: Path, kept: Path, lock: int) -> None:
        self._root = root
        self._kept = kept
        self._lock = lock

    @classmethod
    async def take(cls, root: Path, *, most_bytes: int) -> "InPlace":
        """Wait until no other session has the folder, and pack its state of at most `most_bytes`.

        EnvironmentFailed says that another session has it for long, or that packing failed.
        """
        state = await anyio.to_thread.run_sync(_state_folder, root)
        lock = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await _wait_for(lock, root)
            folder = cls(root, state / "first.tar.gz", lock)
            await anyio.to_thread.run_sync(folder._keep, most_bytes)
        except BaseException:
            os.close(lock)
            raise
        return folder

    async def put_back(self) -> None:
        """Restore the folder, and leave it to the next session. It may be called twice."""
        if self._lock < 0:
            return
        lock, self._lock = self._lock, -1
        try:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._restore)
        finally:
            os.close(lock)

    def _keep(self, most_bytes: int) -> None:
        if self._kept.exists():  # its server has died before it could
            left = self._kept.with_name("left.tar.gz")
            for skip in self._pack(left):  # an author may have worked in it since
                logger.warning("%s: %s is not in %s: %s", self._root, skip.path, left, skip.why)
            self._restore()
            logger.warning(
                "%s is put back as it was; what a dead server left: %s", self._root, left
            )
        folder = open_root(str(self._root))
        try:
            size = sum(item.info.st_size for item in walk(folder, lambda _skip: None, opens=False))
        finally:
            os.close(folder)
        if size > most_bytes:
            raise EnvironmentFailed(
                f"The workspace {self._root} has more than {most_bytes} bytes; raise "
                "SandboxLimits(disk_bytes=…)."
            )
        lost = [f"{skip.path} ({skip.why})" for skip in self._pack(self._kept) if skip.lost]
        if lost:
            self._kept.unlink()
            raise EnvironmentFailed(
                f"The workspace {self._root} could not be restored after a session: "
                f"{', '.join(lost[:_NAMED])}. Remove these, or install bubblewrap."
            )

    def _pack(self, to: Path) -> list[Skip]:
        skips: list[Skip] = []
        part = to.with_suffix(".part")
        fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            folder = self._open()
            try:
                pack(folder, fd, skips.append)
            finally:
                os.close(folder)
            os.fsync(fd)
        finally:
            os.close(fd)
        part.rename(to)
        return skips

    def _restore(self) -> None:
        try:
            folder = self._open()
            try:
                remove_all(folder)
                with self._kept.open("rb") as kept:
                    unpack(folder, kept.fileno())
            finally:
                os.close(folder)
        except (OSError, tarfile.TarError) as exc:
            raise EnvironmentFailed(
                f"The first state of {self._root} could not be restored from {self._kept}: "
                f"{exc}. Restore it by hand, and remove that file."
            ) from exc
        self._kept.unlink()

    def _open(self) -> int:
        """Open the folder; remove anything that an agent put in its place, such as a link."""
        try:
            return open_root(str(self._root))
        except (FileNotFoundError, NotADirectoryError):
            self._root.unlink(missing_ok=True)
            self._root.mkdir()
            return open_root(str(self._root))


def _state_folder(root: Path) -> Path:
    """Return the place of a folder's packed state, for this user alone."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    name = hashlib.sha256(str(root).encode()).hexdigest()[:24]
    folder = Path(home, "hud-mcp", "workspaces", name)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "root").write_text(f"{root}\n")
    return folder


async def _wait_for(lock: int, root: Path) -> None:
    """Wait for the lock; EnvironmentFailed says that another session has it for long."""
    with anyio.move_on_after(_WAIT_S) as bound:
        while not _locked(lock):  # noqa: ASYNC110  # another process may have it
            await anyio.sleep(_POLL_S)
    if bound.cancelled_caught:
        raise EnvironmentFailed(
            f"Another session works in {root}, and without a sandbox only one can. Start the "
            "task again after that session ends, or install bubblewrap."
        )


def _locked(lock: int) -> bool:
    """Take the lock if it is free, and return whether it was."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        if exc.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True
