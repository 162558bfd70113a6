"""What a shell's snapshots are taken of, and what a restore brings back."""

from hud_mcp.errors import SnapshotFailed
from hud_mcp.sandbox import Packed, Sandbox
from hud_mcp.worlds.shell.snapshot_format import missed, read_snapshot, write_snapshot

__all__ = ["FolderSnapshots"]

_NAMED = 5


class FolderSnapshots:
    """The snapshots of one session's folder: taken, and restored.

    A pack of the folder is used again until something may have changed.

    Args:
        sandbox: Whose folder.
        most_bytes: The largest snapshot, compressed.

    Attributes:
        left_out: The parts that the last snapshot lacked, or the last restore did not bring back.
        notice: What is told of a restore in each observation; empty where there is nothing.
    """

    def __init__(self, sandbox: Sandbox, *, most_bytes: int) -> None:
        self.left_out: tuple[str, ...] = ()
        self.notice = ""
        self._sandbox = sandbox
        self._most_bytes = most_bytes
        self._packed: Packed | None = None

    def expire(self) -> None:
        """Pack the folder anew next time: it may have changed."""
        self._packed = None

    async def take(self, last: str) -> bytes:
        """The folder as a compressed tar, and how the last command ended.

        Raises:
            LimitReached, SnapshotFailed, EnvironmentFailed: As for `ShellWorld.snapshot`.
        """
        sandbox = self._sandbox
        try:
            usage = await sandbox.usage()
        except OSError as exc:
            raise SnapshotFailed(
                f"The running processes cannot be listed: {exc.strerror or exc}."
            ) from exc
        goes_on = bool(usage.processes)
        packed = None if goes_on else self._packed
        if packed is None:
            packed = await sandbox.folder.pack(most_bytes=self._most_bytes)
            self._packed = None if goes_on else packed  # what goes on may change it yet
        if packed.lost:
            named = ", ".join(map(str, packed.lost[:_NAMED]))
            raise SnapshotFailed(
                f"The folder {sandbox.root} has files that a snapshot cannot store: {named}."
            )
        self.left_out = tuple(map(str, packed.skipped))
        fields = {
            "last": last,
            "left_out": self.left_out,
            "processes": usage.processes,
            "elsewhere": usage.elsewhere,
        }
        return write_snapshot(packed.data, fields)

    async def take_whole(self, last: str) -> bytes:
        """The same, where a restore of it would miss nothing.

        Raises:
            SnapshotFailed: It would; the text says what.
            LimitReached, EnvironmentFailed: As for `take`.
        """
        data = await self.take(last)
        if missing := missed(read_snapshot(data)[0]):
            raise SnapshotFailed(f"The snapshot would lack {', '.join(missing)}.")
        return data

    async def restore(self, data: bytes) -> str:
        """Make the folder what it was at a snapshot; return how the last command had ended.

        Raises:
            EnvironmentFailed: As for `ShellWorld.restore`.
        """
        fields, packed = read_snapshot(data)
        await self._sandbox.end_processes()
        await self._sandbox.folder.unpack(packed)
        # Not to be taken for a pack of what is there now: what was left out is not.
        self._packed = Packed(packed)
        self.left_out = missed(fields)
        if self.left_out:
            self.notice = (
                "The server ended and another one brought this folder back, without "
                f"{', '.join(self.left_out)}."
            )
        return str(fields["last"])
