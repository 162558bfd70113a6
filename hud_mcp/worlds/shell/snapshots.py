"""The content of a shell's snapshots, and their restoration."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hud_mcp.errors import EnvironmentFailed, SnapshotFailed
from hud_mcp.sandbox import Packed, Sandbox

_FORM = 1


def write_snapshot(packed: bytes, fields: Mapping[str, Any]) -> bytes:
    """Return a snapshot of a packed folder, with other fields as JSON."""
    sha256 = hashlib.sha256(packed).hexdigest()
    head = json.dumps({"form": _FORM, **fields, "sha256": sha256})
    return head.encode() + b"\n" + packed


def read_snapshot(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the fields of a snapshot, and the packed folder; `EnvironmentFailed` for damage."""
    head, _, packed = data.partition(b"\n")
    try:
        fields: dict[str, Any] = json.loads(head)
        form, sha256 = fields["form"], fields["sha256"]
        fields["last"] = str(fields["last"])
    except (ValueError, TypeError, KeyError):
        fields, form, sha256 = {}, None, ""
    if form != _FORM:
        raise EnvironmentFailed(
            f"This is not a snapshot of a shell in form {_FORM}. Start a new task."
        )
    if hashlib.sha256(packed).hexdigest() != sha256:
        raise EnvironmentFailed("This snapshot of a shell is damaged. Start a new task.")
    return fields, packed


def missed(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts that a restored shell lacks, by the fields of its snapshot."""
    missed = [str(name) for name in fields.get("left_out") or ()]
    for name, one, more in (
        ("processes", "1 process that ran in the back", "processes that ran in the back"),
        ("elsewhere", "1 file outside of it, as in /tmp", "files outside of it, as in /tmp"),
    ):
        if count := int(fields.get(name) or 0):
            missed.append(one if count == 1 else f"{count} {more}")
    return tuple(missed)


_NAMED = 5

_WATCHED = 10_000
"""The most things in a folder that are watched in place of packing it."""
_ALL = 2


class FolderSnapshots:
    """The taking and restoring of snapshots of one session's folder.

    A pack of the folder is used again until an event of the kernel tells of a change.

    Attributes:
        left_out: The parts that the last snapshot lacked, or the last restore did not bring back.
        notice: The sentence on a restore in each observation; empty without missing parts.
    """

    def __init__(self, sandbox: Sandbox, *, most_bytes: int) -> None:
        self.left_out: tuple[str, ...] = ()
        self.notice = ""
        self._sandbox = sandbox
        self._most_bytes = most_bytes
        self._packed = Packed(b"")  # without its data, which the last snapshot ends with
        self._events = 0  # the worth of those since the last look
        self._is_stale = True
        self._last = b""
        self._fields: Mapping[str, Any] = {}
        self._counts: Mapping[str, int] = {}

    def expire(self) -> None:
        """Look anew next time: a command may have left something behind."""
        self._is_stale = True

    async def take(self, last: str) -> bytes:
        """Return a snapshot: the folder as a compressed tar, and the end of the last command.

        It fails for the reasons of `ShellWorld.snapshot`.
        """
        sandbox, packed = self._sandbox, self._packed
        if self._is_stale or self._events < _ALL or not sandbox.events.is_still():
            packed = await self._look()
        if packed.lost:
            named = ", ".join(map(str, packed.lost[:_NAMED]))
            raise SnapshotFailed(
                f"The folder {sandbox.root} has files that a snapshot cannot store: {named}."
            )
        self.left_out = tuple(map(str, packed.skipped))
        fields = {"last": last, "left_out": self.left_out, **self._counts}
        if fields != self._fields:
            data = packed.data or self._last.partition(b"\n")[2]
            self._fields, self._last = fields, write_snapshot(data, fields)
        return self._last  # the very same bytes tell the journal that nothing has changed

    async def _look(self) -> Packed:
        """Count the things that a snapshot lacks, and pack the folder if it may have changed."""
        sandbox, packed, went_on = self._sandbox, self._packed, self._counts.get("processes")
        changed, was, self._events = sandbox.events.clear(), self._events, 0
        was_stale, self._is_stale = self._is_stale, True  # also if this fails
        try:
            usage = await sandbox.usage(most=_WATCHED)
        except OSError as exc:
            raise SnapshotFailed(
                f"The running processes cannot be listed: {exc.strerror or exc}."
            ) from exc
        self._counts = {"processes": usage.processes, "elsewhere": usage.elsewhere}
        if was and usage.events:
            # Memory that was shared before the look, and is not in it, has made an event.
            sandbox.events.is_still()
            changed = changed or sandbox.events.changed
        else:  # without events, only a folder in which nothing ran is known to be the same
            changed = bool(was_stale or went_on or usage.processes)
        if changed:
            packed = await sandbox.folder.pack(most_bytes=self._most_bytes)
            self._packed, self._fields = replace(packed, data=b""), {}
        self._events, self._is_stale = usage.events, False
        return packed

    async def take_whole(self, last: str) -> bytes:
        """Return a snapshot like `take`; `SnapshotFailed` too if a restore would miss something."""
        data = await self.take(last)
        if missing := missed(read_snapshot(data)[0]):
            raise SnapshotFailed(f"The snapshot would lack {', '.join(missing)}.")
        return data

    async def restore(self, data: bytes) -> str:
        """Restore the folder like `ShellWorld.restore`; return the end of the last command then."""
        fields, packed = read_snapshot(data)
        await self._sandbox.end_processes()
        await self._sandbox.folder.unpack(packed)
        # Not to be taken for a pack of what is there now: what was left out is not.
        self._packed, self._is_stale, self._events = Packed(b""), True, 0
        self._fields, self._last = {}, data
        self.left_out = missed(fields)
        if self.left_out:
            self.notice = (
                "The server ended and another one brought this folder back, without "
                f"{', '.join(self.left_out)}."
            )
        return str(fields["last"])
