"""The folder of a sandbox as a whole: packed, unpacked, listed, and copied from."""

import errno
import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from hud_mcp.errors import BrokenByAgent, EnvironmentFailed, LimitReached, SnapshotFailed
from hud_mcp.sandbox.commands import Commands, Output, Process, feed
from hud_mcp.sandbox.inside.tree import Skip


@dataclass(frozen=True)
class Packed:
    """A folder as a compressed tar, and everything that it omits; lost content comes first."""

    data: bytes
    skipped: tuple[Skip, ...] = ()

    @property
    def lost(self) -> tuple[Skip, ...]:
        """Everything with lost content. If empty, the tar holds the whole folder."""
        return tuple(each for each in self.skipped if each.lost)


def read_report(told: bytes) -> tuple[Skip, ...]:
    """Return the content of a report from inside, which is not trusted to be well formed.

    A text that is no report is a `SnapshotFailed`.
    """
    try:
        report: dict[str, Any] = json.loads(told)
        rows: list[tuple[str, str, bool]] = report["skipped"]
        found = [Skip(_shown(path), _shown(why), bool(lost)) for path, why, lost in rows]
        more = int(report["count"]) - len(found)
    except (ValueError, TypeError, KeyError) as exc:
        raise SnapshotFailed(
            "The sandbox did not report the packed files. Nothing was stored."
        ) from exc
    if more > 0:
        found.append(Skip(f"{more} more", "not named here", lost=found[-1].lost))
    return tuple(found)


def _shown(text: str) -> str:
    # An agent chooses names: bytes that are not UTF-8, or signs of control.
    text = text.encode("utf-8", "replace").decode()
    return "".join(sign if sign.isprintable() else "?" for sign in text)


_EVENT = struct.Struct("iIII")  # struct inotify_event: watch, kind, cookie, length of the name
_EVENTS_BYTES, _MOST_READS = 1 << 16, 64
_OPENED, _IS_FOLDER = 0x20, 0x40000000


class EventQueue:
    """The kernel's events of a folder that is watched; without a watch, any may have come."""

    def __init__(self) -> None:
        self._fd = -1
        self.changed = True  # since the last `clear`
        self._opened = False

    def watch(self, fds: Sequence[int]) -> None:
        """Read from the descriptor of a watch that begins, if there is one."""
        if fds:
            (self._fd,) = fds
            os.set_blocking(self._fd, False)  # it comes from inside, and the loop reads it
            self.changed = False

    def is_still(self) -> bool:
        """Whether no file was changed or opened since the last `clear`."""
        self._read()
        return not (self.changed or self._opened)

    def clear(self) -> bool:
        """Forget the events until now; return whether they changed anything."""
        self._read()
        changed, self.changed, self._opened = self.changed, self._fd < 0, False
        return changed

    def close(self) -> None:
        """Forget the watch. It may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> None:
        for _ in range(_MOST_READS):
            try:
                data = os.read(self._fd, _EVENTS_BYTES)
            except BlockingIOError:
                return
            except OSError:
                break
            at = 0
            while at < len(data):
                _watch, kind, _cookie, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                # That a folder was opened says nothing. A file's memory may be shared from then on,
                # even if a close follows: the kernel merges events that are alike.
                self._opened = self._opened or kind == _OPENED
                self.changed = self.changed or kind & ~_IS_FOLDER != _OPENED
        self.changed = True  # it is written faster than it is read


_PACK_S = 20.0
"""The longest time for packing; shorter than a step's, so that this bound ends it first."""
_UNPACK_S = 30.0
_REPORT_BYTES = 1 << 18
_SCAN_BYTES = 64 * 1024 * 1024


class Folder:
    """The folder of one sandbox as a whole, by way of the sandbox's commands."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._root = commands.root

    async def pack(self, *, most_bytes: int) -> Packed:
        """Return the folder as a compressed tar: files, folders and links, with modes and times.

        Anything that cannot be kept is passed over, and named.

        Raises:
            LimitReached: The tar exceeds `most_bytes`. The folder is unchanged.
            SnapshotFailed: Packing failed, or took too long. The folder is unchanged.
            EnvironmentFailed: The sandbox has ended.
        """
        report = os.memfd_create("hud-mcp")
        try:
            code, data = await self._stream("pack", most_bytes + 1, report, SnapshotFailed)
            told = os.pread(report, _REPORT_BYTES, 0)
        finally:
            os.close(report)
        if len(data) > most_bytes:
            raise LimitReached(
                f"The folder {self._root} has more than {most_bytes} bytes when packed, which "
                "is the limit. Remove files that you do not need."
            )
        if code != 0:
            raise SnapshotFailed(f"The folder {self._root} could not be packed: {_why(code)}.")
        return Packed(data, read_report(told))

    async def scan(self, *, leave_out: Sequence[str] = ()) -> dict[str, tuple[int, int]]:
        """Return the size and the time of change, in ns, of every regular file by its path.

        Names that match a pattern of `leave_out` are passed over; patterns of folders end with a
        slash.

        Raises:
            BrokenByAgent: The folder cannot be read, or not in time.
            EnvironmentFailed: The sandbox has ended.
        """
        code, data = await self._stream(
            "scan",
            _SCAN_BYTES,
            None,
            BrokenByAgent,
            leave_out=list(leave_out),
            most=self._commands.limits.files,
        )
        if code != 0 or len(data) > _SCAN_BYTES:
            why = _why(code) if code else "it has too many files to be listed"
            raise BrokenByAgent(f"The folder {self._root} could not be read: {why}.")
        # In JSON a line break of a name is escaped, so that each line is one file.
        rows = (json.loads(line) for line in data.splitlines())
        return {path: (int(size), int(changed)) for path, size, changed in rows}

    async def gather(
        self, wanted: Sequence[tuple[str, str]], *, most_bytes: int, most_files: int
    ) -> tuple[int, bytes]:
        """Return named files and folders as a compressed tar, in the format of `inside.gather`.

        `wanted` has pairs of a path in the folder and its path in the tar. Call `hold` first, or
        they may change meanwhile. With more bytes or files than allowed, the tar ends and says so.

        Returns:
            0 and the tar; or the number of the error that stopped it, and the tar until then.

        Raises:
            BrokenByAgent: The files cannot be read, or not in time.
            EnvironmentFailed: The sandbox has ended.
        """
        return await self._stream(
            "gather",
            2 * most_bytes + _SCAN_BYTES,
            None,
            BrokenByAgent,
            wanted=[list(pair) for pair in wanted],
            most={"bytes": most_bytes, "files": most_files},
        )

    async def unpack(self, data: bytes, *, clear: bool = True) -> None:
        """Put the content of a tar into the folder; with `clear`, in place of its present content.

        Raises:
            EnvironmentFailed: It is not a tar, or there is no room. Part of it may be unpacked.
        """
        read, write = os.pipe()
        try:
            reply, _ = await self._commands.link.ask("unpack", send=[read], clear=clear)
        except BaseException:
            os.close(write)
            raise
        finally:
            os.close(read)
        process = self._commands.started(int(reply["pid"]))
        feeding = feed(write, data)
        try:
            code = await self._ended(process)
        finally:
            feeding.cancel()
        if not self._commands.alive:
            raise EnvironmentFailed("The sandbox has ended. Start a new task.")
        if code != 0:
            raise EnvironmentFailed(f"The folder {self._root} could not be unpacked: {_why(code)}.")

    async def _stream(
        self,
        op: str,
        most_bytes: int,
        report: int | None,
        failure: type[SnapshotFailed | BrokenByAgent],
        **fields: Any,
    ) -> tuple[int, bytes]:
        """Have the inside write about the folder; return the exit status and the written bytes.

        It raises `failure` if the work could not begin, or took too long.
        """
        read, write = os.pipe()
        send = [write] if report is None else [write, report]
        try:
            reply, _ = await self._commands.link.ask(op, send=send, **fields)
        except OSError as exc:
            os.close(read)
            raise failure(f"The folder {self._root}: {exc.strerror or exc}.") from exc
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        process = self._commands.started(int(reply["pid"]))
        # Twice the bytes: an output keeps half of them for the beginning, and here that is all.
        output = Output(
            read, kept_bytes=2 * most_bytes + 2, most_bytes=most_bytes, on_overflow=lambda: None
        )
        self._commands.keep(output)
        code: int | None = None
        try:
            with anyio.move_on_after(_PACK_S):
                await output.ended.wait()
                code = await process.wait()
        finally:
            output.close()
            if code is None:  # out of time, or cancelled: nothing else would end the work
                with anyio.CancelScope(shield=True):
                    await self._commands.kill(process, "it took too long")
        if not self._commands.alive:
            raise EnvironmentFailed("The sandbox has ended. Start a new task.")
        if code is None:
            raise failure(f"The folder {self._root} could not be read within {_PACK_S:g} s.")
        return code, output.taken()

    async def _ended(self, process: Process) -> int:
        with anyio.move_on_after(_UNPACK_S):
            return await process.wait()
        await self._commands.kill(process, "it took too long")
        return await process.wait()


def _why(code: int) -> str:
    if code < 0:
        return f"what runs in the sandbox stopped it (signal {-code})"
    return os.strerror(code) if code in errno.errorcode else "it is not in order"
