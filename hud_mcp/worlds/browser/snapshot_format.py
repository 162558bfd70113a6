"""The content of a browser's snapshot, and its form as bytes.

The parts that a script in the page wrote are opaque here: JSON that only `refill.js` reads, in
the same page.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import anyio
from pydantic import Field, ValidationError

from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment, LimitReached
from hud_mcp.values.action import Point, Value

__all__ = [
    "FORM",
    "MAX_CHARS",
    "MAX_TABS",
    "BrowserSnapshot",
    "FrameSnapshot",
    "LookSnapshot",
    "StorageSnapshot",
    "TabSnapshot",
    "pack",
    "too_large",
    "unpack",
    "write_state",
]

FORM = 1
"""The number of this form. It rises when an older package could not read the new bytes."""

MAX_CHARS = 5_000_000
"""The most characters of a snapshot, before it is compressed."""

_LONG_CHARS = 250_000
"""The longest snapshot that is compressed without a thread. This much takes 2 ms."""

MAX_TABS = 40
"""The most pages that a snapshot holds."""


class StorageSnapshot(Value):
    """What an origin stores: pairs, as JSON."""

    local: str = "[]"
    session: str = "[]"


class FrameSnapshot(Value):
    """One document: a page's own, or that of a frame in it."""

    place: tuple[int, ...] = Field(description="The frames on the way to it, counted from 0.")
    url: str
    status: int = Field(default=0, description="The HTTP status that it came with; 0: none.")
    storage: StorageSnapshot | None = Field(default=None, description="In a frame apart.")
    page: str = Field(default="", description="Fields, focus and scrolling; empty: unknown.")


class TabSnapshot(Value):
    """One open page."""

    urls: tuple[str, ...] = Field(description="Its history, oldest first.")
    index: int = Field(ge=0, description="Which of them is shown.")
    sessions: dict[str, str] = Field(description="What sessionStorage holds, by origin.")
    frames: tuple[FrameSnapshot, ...] = Field(description="The page's own document first.")


class LookSnapshot(Value):
    """The last text that the agent read, which `changes` are told from."""

    title: str
    url: str
    scrolled: str
    lines: tuple[str, ...]
    long: bool
    limit: int
    here: bool = Field(description="Whether it was of the document that is shown.")


class BrowserSnapshot(Value):
    """Everything that a snapshot holds."""

    form: Literal[1] = FORM
    tabs: tuple[TabSnapshot, ...]
    shown: int | None = Field(description="Which tab is shown, counted from 0.")
    cookies: list[Any]
    storage: dict[str, str] = Field(description="What localStorage holds, by origin.")
    databases: dict[str, str] = Field(description="IndexedDB, as JSON of Playwright's form.")
    accept_dialogs: bool
    dialog_text: str | None
    notes: tuple[tuple[str, bool], ...] = Field(description="Each with whether it was read.")
    pointer: Point
    held: tuple[str, ...]
    look: LookSnapshot | None
    refs: dict[str, int] = Field(description="The highest number of a ref, by frame.")
    visits: int = Field(description="How many documents the site answered with.")
    offline: bool = Field(default=False, description="Whether the pages have no network.")
    clipboard: dict[str, str] = Field(default={}, description="What was copied last, by its kind.")
    state: str = Field(description="The backend's, as JSON.")


async def pack(saved: BrowserSnapshot) -> bytes:
    """Return a snapshot as bytes.

    Raises:
        LimitReached: The snapshot is too large. The text names the largest part.
    """
    text = json.dumps(saved.model_dump(), separators=(",", ":"))
    if len(text) > MAX_CHARS:
        raise too_large(*_largest(saved))
    if len(text) < _LONG_CHARS:
        return zlib.compress(text.encode("ascii"), level=1)
    return await anyio.to_thread.run_sync(lambda: zlib.compress(text.encode("ascii"), level=1))


def unpack(data: bytes) -> BrowserSnapshot:
    """Read the bytes that `pack` returned.

    Raises:
        EnvironmentFailed: They are damaged, no snapshot, or of another form.
    """
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(data, MAX_CHARS + 1)
        raw = json.loads(text)
    except (zlib.error, ValueError) as exc:
        raise EnvironmentFailed(
            f"The browser's snapshot of {len(data)} bytes is damaged: {exc}. Start a new task."
        ) from exc
    form = cast("dict[str, Any]", raw).get("form") if isinstance(raw, dict) else None
    if form != FORM:
        raise EnvironmentFailed(
            f"The browser's snapshot has the form {form!r}, and this version reads form {FORM}. "
            "Use the version that wrote it, or start a new task."
        )
    try:
        return BrowserSnapshot.model_validate(raw)
    except ValidationError as exc:
        where = ".".join(str(part) for part in exc.errors()[0]["loc"])
        raise EnvironmentFailed(
            f"The browser's snapshot is damaged: {where}: {exc.errors()[0]['msg']}. "
            "Start a new task."
        ) from exc


def too_large(what: str, chars: int) -> LimitReached:
    """Return the error for a part that is too large for a snapshot."""
    return LimitReached(
        f"No snapshot: {what} takes {chars / 1e6:.1f} million characters, and all of a browser's "
        f"state may take {MAX_CHARS / 1e6:g}. The session goes on, and cannot be taken up again "
        "from here if the server ends."
    )


def write_state(state: Mapping[str, Any]) -> str:
    """Return a state as JSON, if reading that gives an equal state.

    Raises:
        InvalidEnvironment: JSON would change the state. The error names the first such value.
    """
    try:
        text = json.dumps(state, separators=(",", ":"))
        if json.loads(text) == state:
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    where, found = _first_problem(state, "state") or ("state", "a value that differs from itself")
    raise InvalidEnvironment(
        f"No snapshot: {where} of the site is {found}, which JSON cannot store. Use only dicts "
        "with text as keys, lists, text, numbers, True, False and None."
    )


def _first_problem(value: Any, where: str, depth: int = 0) -> tuple[str, str] | None:
    inside: Iterable[tuple[str, Any]] = ()
    if depth > 200:  # noqa: PLR2004  # far deeper than any state, far from Python's own limit
        return where, "nested too deeply"
    if isinstance(value, dict):
        mapping = cast("dict[Any, Any]", value)
        if odd := [key for key in mapping if not isinstance(key, str)]:
            return where, f"a dict with the key {odd[0]!r}"
        inside = ((f"{where}[{key!r}]", item) for key, item in mapping.items())
    elif isinstance(value, list):
        inside = ((f"{where}[{i}]", v) for i, v in enumerate(cast("list[Any]", value)))
    elif not (value is None or isinstance(value, str | int | float)) or value != value:  # noqa: PLR0124  # NaN
        return where, f"{type(value).__name__} {str(value)[:60]!r}"
    return next((p for at, item in inside if (p := _first_problem(item, at, depth + 1))), None)


def _largest(saved: BrowserSnapshot) -> tuple[str, int]:
    parts = {"the site's state": len(saved.state)}
    parts["the cookies"] = len(json.dumps(saved.cookies))
    for origin, text in saved.storage.items():
        parts[f"localStorage of {origin}"] = len(text)
    for origin, databases in saved.databases.items():
        parts[f"IndexedDB of {origin}"] = len(databases)
    for tab in saved.tabs:
        for origin, text in tab.sessions.items():
            parts[f"sessionStorage of {origin}"] = len(text)
        for frame in tab.frames:
            parts[f"what {frame.url[:200]} holds"] = len(frame.page)
            if frame.storage:
                parts[f"the storage of {frame.url[:200]}"] = len(frame.storage.local)
    what = max(parts, key=lambda name: parts[name])
    return what, parts[what]
