"""The changes of a workspace's files between two looks, as `filetracking/1` tells them.

Files are read inside, beneath the folder and with the agent's rights. Therefore a link of the agent
leads nowhere else. A file that looks like a secret is never read.
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

MIB = 1024 * 1024
_SCANNED_BYTES = 10 * MIB
"""The size above which a file is left out."""
_READ_BYTES = 1 * MIB
"""The size above which a file is only known to have changed."""
_BUDGET_BYTES = 50 * MIB
"""The most bytes that one look reads, and one diff returns."""
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
"""The kinds of files that are returned whole, by their suffix."""


class Sandboxed(Protocol):
    """An object with a sandbox."""

    @property
    def sandbox(self) -> Sandbox:
        """Its sandbox."""
        ...


@dataclass(frozen=True)
class _File:
    """A file at one look: size in bytes, last change in ns, SHA-256 or a label, and its text."""

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
    """Looks at a workspace's files, and returns the changes since the last look.

    Calls wait for each other, so that one look runs at a time.
    """

    def __init__(self, world: Sandboxed) -> None:
        self._world = world
        self._lock = anyio.Lock()
        self._base = self._last = _Look(0.0, 0.0, {})
        self._ignored: tuple[str, ...] = ()

    async def begin(self) -> None:
        """Look for the first time, before anything happens in the folder."""
        async with self._lock:
            self._ignored = await self._read_ignored()
            self._base = self._last = await self._look()

    async def setup(self) -> dict[str, Any]:
        """Return the changes since the first look. The agent's own changes begin here."""
        async with self._lock:
            now = await self._look()
            result, _left = await anyio.to_thread.run_sync(_diff, self._last, now)
            self._base = self._last = now
            return result

    async def advance(self) -> dict[str, Any]:
        """Begin the agent's own changes here."""
        async with self._lock:
            self._base = self._last = await self._look()
            return {"advanced": True}

    async def snapshot(self) -> dict[str, Any]:
        """Return every file of the last look, except secrets."""
        async with self._lock:
            files = [
                {"path": _shown(path), "size": file.size, "content_hash": file.content_hash}
                for path, file in sorted(self._last.files.items())
                if not file.secret
            ]
            return {"files": files, "files_scanned": len(files)}

    async def diff(self) -> dict[str, Any]:
        """Return the changes since the last look."""
        async with self._lock:
            return await self._differ(await self._look())

    async def flush(self) -> dict[str, Any]:
        """Return the last changes, and the changed documents and pictures as a whole."""
        async with self._lock:
            now = await self._look()
            capture = await self._capture(now)
            return {"diff": await self._differ(now), "capture": capture}

    async def _differ(self, now: _Look) -> dict[str, Any]:
        result, left = await anyio.to_thread.run_sync(_diff, self._last, now)
        files = dict(now.files)
        for path in left:  # for the next time
            files.pop(path, None)
            if path in self._last.files:
                files[path] = self._last.files[path]
        self._last = _Look(now.at, now.took_ms, files)
        return result

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
        """Return a file with its content if it may be read; None if it is gone."""
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
        """Return a file's bytes; None if it has changed since the look."""
        try:
            data = await self._world.sandbox.files.read(path, most_bytes=_CAPTURED_BYTES)
        except OSError:
            return None
        return data if len(data) == size else None

    async def _read_ignored(self) -> tuple[str, ...]:
        """Return the patterns in the folder's .gitignore that are plain names."""
        try:
            data = await self._world.sandbox.files.read(".gitignore", most_bytes=_READ_BYTES)
        except (OSError, ActionFailed):
            return ()
        lines = (line.strip() for line in data.decode("utf-8", "replace").splitlines())
        names = (line.lstrip("/") for line in lines if line and line[0] not in "#!")
        return tuple(name for name in names if name and "/" not in name.rstrip("/"))


def _diff(before: _Look, now: _Look) -> tuple[dict[str, Any], list[str]]:
    """Return the changes, the smallest first, and the paths that did not fit."""
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
    result: dict[str, Any] = {
        "snapshot_timestamp": now.at,
        "scan_duration_ms": round(now.took_ms, 2),
        "files_scanned": len(now.files),
        "files_changed": len(changed),
        "patches": patches,
    }
    return ({**result, "truncated": True} if left else result), left


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
    """Return a path as text for JSON; a name may be any bytes."""
    return path.encode("utf-8", "replace").decode()
