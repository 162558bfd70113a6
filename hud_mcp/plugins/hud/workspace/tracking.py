"""The changes of a workspace's files between two looks, as `filetracking/1` tells them.

Files are read inside, beneath the folder and with the agent's rights, so nothing that an agent
puts there leads anywhere else. What looks like a secret is never read.
"""

import base64
import difflib
import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Any, Protocol

import anyio
import anyio.to_thread

from hud_mcp.errors import ActionFailed
from hud_mcp.sandbox import Sandbox

__all__ = ["FileTracker"]

MIB = 1024 * 1024
_SCANNED_BYTES = 10 * MIB
"""A longer file is passed over."""
_READ_BYTES = 1 * MIB
"""Of a longer file, only that it has changed is told."""
_BUDGET_BYTES = 50 * MIB
"""What one look reads, and what one diff tells."""
_CAPTURED_FILES = 20
_CAPTURED_BYTES = 5 * MIB
_CAPTURED_IN_ALL_BYTES = 15 * MIB

_LEFT_OUT = (
    "node_modules/", ".venv/", "__pycache__/", ".cache/", ".npm/", ".hud/", ".tmp/", ".gradle/",
    ".tox/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".terraform/", ".next/", ".nuxt/",
    ".svelte-kit/", ".output/", ".turbo/", ".parcel-cache/", ".git/", ".hg/", ".svn/", ".jj/",
    ".git", ".hg", ".svn", ".jj", "*.pyc", "*.pyo", "*.so", "*.o", "*.a", "*.class", "*.dll",
    "*.dylib", "*.exe",
)  # fmt: skip
_SECRET = (
    ".env", ".env.*", ".gitconfig", ".gitmodules", "*.pem", "id_*", "*_key", "*_key.*",
    "credentials", "credentials.*", ".netrc", ".git-credentials",
)  # fmt: skip
_SECRET_FOLDERS = frozenset({".ssh", ".aws"})
_OFFICE = "application/vnd.openxmlformats-officedocument"
_CAPTURED = {
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".htm": "text/html",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".webp": "image/webp",
    ".xlsm": "application/vnd.ms-excel.sheet.macroEnabled.12",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
}
"""What is worth its bytes and not only its diff, by the end of its name."""


class Sandboxed(Protocol):
    """What has the files."""

    @property
    def sandbox(self) -> Sandbox:
        """Where they are."""
        ...


@dataclass(frozen=True)
class _File:
    """A file at one look.

    Attributes:
        size: In bytes.
        changed: When, in ns.
        content_hash: Its SHA-256, or what stands for it where it was not read.
        lines: Its text; None where it is none, or was not read.
        secret: Whether it is never read.
    """

    size: int
    changed: int
    content_hash: str
    lines: tuple[str, ...] | None = None
    secret: bool = False


@dataclass(frozen=True)
class _Look:
    """Every file at one moment."""

    at: float
    took_ms: float
    files: dict[str, _File]


class FileTracker:
    """Looks at a workspace's files, and tells what has changed since the last look.

    One look at a time: calls wait for each other.

    Args:
        world: Whose files.
    """

    def __init__(self, world: Sandboxed) -> None:
        self._world = world
        self._lock = anyio.Lock()
        self._base = self._last = _Look(0.0, 0.0, {})
        self._ignored: tuple[str, ...] = ()

    async def begin(self) -> None:
        """Take the first look, before anything happens in the folder."""
        async with self._lock:
            self._ignored = await self._read_ignored()
            self._base = self._last = await self._look()

    async def setup(self) -> dict[str, Any]:
        """What has changed since the first look; an agent's own changes begin here."""
        async with self._lock:
            now = await self._look()
            told, _left = await anyio.to_thread.run_sync(_diff, self._last, now)
            self._base = self._last = now
            return told

    async def advance(self) -> dict[str, Any]:
        """Let an agent's own changes begin here."""
        async with self._lock:
            self._base = self._last = await self._look()
            return {"advanced": True}

    async def snapshot(self) -> dict[str, Any]:
        """Every file at the last look, but for secrets."""
        async with self._lock:
            files = [
                {"path": _shown(path), "size": file.size, "content_hash": file.content_hash}
                for path, file in sorted(self._last.files.items())
                if not file.secret
            ]
            return {"files": files, "files_scanned": len(files)}

    async def diff(self) -> dict[str, Any]:
        """What has changed since the last look."""
        async with self._lock:
            return await self._differ(await self._look())

    async def flush(self) -> dict[str, Any]:
        """The same for the last time, and the documents and pictures that have changed."""
        async with self._lock:
            now = await self._look()
            capture = await self._capture(now)
            return {"diff": await self._differ(now), "capture": capture}

    async def _differ(self, now: _Look) -> dict[str, Any]:
        told, left = await anyio.to_thread.run_sync(_diff, self._last, now)
        files = dict(now.files)
        for path in left:  # for the next time
            files.pop(path, None)
            if path in self._last.files:
                files[path] = self._last.files[path]
        self._last = _Look(now.at, now.took_ms, files)
        return told

    async def _look(self) -> _Look:
        began = time.monotonic()
        found = await self._world.sandbox.folder.scan(leave_out=(*_LEFT_OUT, *self._ignored))
        files: dict[str, _File] = {}
        left = _BUDGET_BYTES
        for path, (size, changed) in found.items():
            if size > _SCANNED_BYTES:
                continue
            before = self._last.files.get(path)
            if before is not None and (before.size, before.changed) == (size, changed):
                files[path] = before
                continue
            file = await self._read(path, size, changed, left)
            if file is not None:
                files[path] = file
                left -= size if file.lines is not None else 0
        return _Look(time.time(), (time.monotonic() - began) * 1000, files)

    async def _read(self, path: str, size: int, changed: int, left: int) -> _File | None:
        """A file's content, where it may be read; None where it is gone."""
        stamp = f"{size}:{changed}"
        if _is_secret(path):
            return _File(size, changed, f"redacted:{stamp}", secret=True)
        if size > _READ_BYTES:
            return _File(size, changed, f"overlimit:{stamp}")
        if size > left:
            return _File(size, changed, f"budget_exceeded:{stamp}")
        try:
            data = await self._world.sandbox.files.read(path, most_bytes=_READ_BYTES)
        except FileNotFoundError:
            return None
        except OSError:
            return _File(size, changed, f"unreadable:{size}")
        return _File(size, changed, hashlib.sha256(data).hexdigest(), _lines(data))

    async def _capture(self, now: _Look) -> dict[str, Any]:
        """The changed files that people open, such as documents and pictures, whole."""
        changed = {
            path: "modified" if path in self._base.files else "added"
            for path, file in sorted(now.files.items())
            if path not in self._base.files
            or self._base.files[path].content_hash != file.content_hash
        }
        wanted = [
            path
            for path in changed
            if not now.files[path].secret and PurePosixPath(path).suffix.lower() in _CAPTURED
        ]
        taken: list[dict[str, Any]] = []
        total, cut = 0, False
        for path in wanted:
            size = now.files[path].size
            fits = len(taken) < _CAPTURED_FILES and size <= _CAPTURED_BYTES
            if not fits or total + size > _CAPTURED_IN_ALL_BYTES:
                cut = True
                continue
            data = await self._whole(path, size)
            if data is None:
                continue
            total += size
            taken.append(_captured(path, changed[path], data))
        return {
            "snapshot_timestamp": now.at,
            "scan_duration_ms": round(now.took_ms, 2),
            "files_scanned": len(now.files),
            "files_changed": len(changed),
            "files_eligible": len(wanted),
            "files_captured": len(taken),
            "files_skipped": len(wanted) - len(taken),
            "files": taken,
            **({"truncated": True} if cut else {}),
        }

    async def _whole(self, path: str, size: int) -> bytes | None:
        """A file's bytes; None where it is not what it was at the look."""
        try:
            data = await self._world.sandbox.files.read(path, most_bytes=_CAPTURED_BYTES)
        except OSError:
            return None
        return data if len(data) == size else None

    async def _read_ignored(self) -> tuple[str, ...]:
        """The patterns of the folder's own .gitignore that are names."""
        try:
            data = await self._world.sandbox.files.read(".gitignore", most_bytes=_READ_BYTES)
        except (OSError, ActionFailed):
            return ()
        lines = (line.strip() for line in data.decode("utf-8", "replace").splitlines())
        names = (line.lstrip("/") for line in lines if line and line[0] not in "#!")
        return tuple(name for name in names if name and "/" not in name.rstrip("/"))


def _diff(before: _Look, now: _Look) -> tuple[dict[str, Any], list[str]]:
    """What has changed, the smallest first; and the paths for which there was no room."""
    changed = [
        (path, before.files.get(path), now.files.get(path))
        for path in sorted({*before.files, *now.files})
    ]
    changed = [
        each
        for each in changed
        if each[1] is None or each[2] is None or each[1].content_hash != each[2].content_hash
    ]
    changed.sort(key=lambda each: max(_size(each[1]), _size(each[2])))
    patches: list[dict[str, Any]] = []
    left: list[str] = []
    room = _BUDGET_BYTES
    for path, old, new in changed:
        patch = _patch(_shown(path), old, new)
        room -= len(patch.encode("utf-8", "replace"))
        if room < 0:
            room += len(patch.encode("utf-8", "replace"))
            left.append(path)
            continue
        status = "added" if old is None else "deleted" if new is None else "modified"
        patches.append(
            {
                "path": _shown(path),
                "status": status,
                "patch": patch,
                "size_before": _size(old),
                "size_after": _size(new),
                "content_hash_before": old.content_hash if old else None,
                "content_hash_after": new.content_hash if new else None,
            }
        )
    told: dict[str, Any] = {
        "snapshot_timestamp": now.at,
        "scan_duration_ms": round(now.took_ms, 2),
        "files_scanned": len(now.files),
        "files_changed": len(changed),
        "patches": patches,
    }
    return ({**told, "truncated": True} if left else told), left


def _patch(path: str, old: _File | None, new: _File | None) -> str:
    if any(file is not None and file.secret for file in (old, new)):
        return f"A secret has changed, and is not shown: {path}\n"
    if max(_size(old), _size(new)) > _READ_BYTES:
        return f"Too large to compare ({_size(old)} to {_size(new)} bytes): {path}\n"
    before, after = (() if file is None else file.lines for file in (old, new))
    if before is None or after is None:
        return f"A binary file has changed: {path}\n"
    lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(lines)


def _captured(path: str, status: str, data: bytes) -> dict[str, Any]:
    kind = _CAPTURED[PurePosixPath(path).suffix.lower()]
    file = {"type": "file", "data": base64.b64encode(data).decode(), "media_type": kind}
    return {
        "path": _shown(path),
        "size": len(data),
        "content_hash": hashlib.sha256(data).hexdigest(),
        "content_type": kind,
        "file": file,
        "status": status,
    }


def _lines(data: bytes) -> tuple[str, ...] | None:
    try:
        return tuple(data.decode().splitlines())
    except UnicodeDecodeError:
        return None


def _is_secret(path: str) -> bool:
    *folders, name = path.split("/")
    return not _SECRET_FOLDERS.isdisjoint(folders) or _any_of(name, _SECRET)


def _any_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _size(file: _File | None) -> int:
    return file.size if file is not None else 0


def _shown(path: str) -> str:
    """A path as JSON can have it: names need not be text."""
    return path.encode("utf-8", "replace").decode()
