"""The lists of a server: read once from an instance that no session uses, kept, and compared.

A later start reads them from a file, by the server's command and version, and starts nothing.
"""

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson
from pydantic import ValidationError

from hud_mcp.base import libraries as base_libraries
from hud_mcp.base.text import clip
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.servers import libraries
from hud_mcp.plugins.servers.install import cache_folder
from hud_mcp.plugins.servers.instance import LIST_METHODS, ListKind
from hud_mcp.plugins.servers.peer import Json, as_object
from hud_mcp.plugins.servers.program import Program
from hud_mcp.values.call import CORE_TOOLS

__all__ = ["Change", "Listing", "Lists", "Offer", "Watch", "can_be_sent", "changes", "list_server",
           "listing_file", "offers", "tokens"]  # fmt: skip

_FORM = 1
_LISTS = ("tools", "prompts", "resources", "templates")
_MOST_BYTES = 4 * 1024 * 1024
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_VERSIONS = ("2025-11-25", "2026-07-28")
_SHOWN_CHARS = 60
_SHOWN_NAMES = 20
_RELIST_S = 5.0
"""The shortest time between two looks at an instance's tools."""


class Lists(Protocol):
    """The part of an instance that is asked for lists."""

    async def list(self, kind: ListKind) -> Sequence[Json]:
        """Return the entries of a kind; none if the server has no such kind."""
        ...


@dataclass(frozen=True)
class Listing:
    """The lists of one version of a server, in its own words.

    Attributes:
        era: The version of the protocol that it speaks.
        server: The name and version that it tells.
        instructions: Its text for models.
    """

    tools: tuple[Json, ...] = ()
    prompts: tuple[Json, ...] = ()
    resources: tuple[Json, ...] = ()
    templates: tuple[Json, ...] = ()
    era: str = ""
    server: Json = field(default_factory=dict[str, Any])
    instructions: str = ""

    def keep(self, file: Path) -> None:
        """Write it to a file of the cache; a reader sees all of it or nothing."""
        part = file.with_suffix(".part")
        part.write_bytes(orjson.dumps({"form": _FORM, **asdict(self)}))
        part.replace(file)

    @classmethod
    def kept(cls, file: Path) -> "Listing | None":
        """Return the listing that a file has; None without one that can be read."""
        try:
            found: Json = orjson.loads(file.read_bytes())
            if found.pop("form") != _FORM:
                return None
            lists = {name: tuple(found.pop(name)) for name in _LISTS}
            return cls(**lists, **found)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


async def list_server(
    instance: Lists, *, era: str = "", server: Json | None = None, instructions: str = ""
) -> Listing:
    """Ask an instance for its lists.

    Raises:
        EnvironmentFailed: It does not list its tools, or its lists are too large.
    """
    found = [tuple(await instance.list(kind)) for kind in LIST_METHODS]
    listing = Listing(*found, era=era, server=server or {}, instructions=instructions)
    try:
        size = len(orjson.dumps(asdict(listing)))
    except (orjson.JSONEncodeError, RecursionError):
        raise EnvironmentFailed("The server's lists are nested too deeply.") from None
    if size > _MOST_BYTES:
        raise EnvironmentFailed(
            f"The server's lists have {size} bytes; at most {_MOST_BYTES} pass."
        )
    return listing


def listing_file(program: Program, *, env: Collection[str], era: str, files: str) -> Path:
    """Return the file that keeps the lists of a program, whether or not it is there.

    Args:
        program: Its words, its version and its parts decide.
        env: The names of its variables; their values are secrets.
        era: The wanted version of the protocol.
        files: A digest of the files that it begins with: some servers list them.
    """
    words = [Path(program.argv[0]).name, *program.argv[1:]]
    state = [_FORM, words, program.version, program.digest, sorted(env), era, files]
    return cache_folder("listings") / f"{hashlib.sha256(orjson.dumps(state)).hexdigest()}.json"


@dataclass(frozen=True)
class Offer:
    """A listed tool, and the name under which agents get it.

    Attributes:
        name: Its name here; None if it is left out.
        entry: Its entry, which every client of both eras can be sent.
        note: A sentence for agents on a difference from the server's own list, or "".
    """

    name: str | None
    entry: Json
    note: str = ""


def offers(
    tools: Sequence[Json],
    *,
    prefix: str,
    without: Collection[str] = (),
    reserved: Collection[str] | None = None,
) -> Iterator[Offer]:
    """Yield each listed tool with its name here, and with the reason if it is left out.

    Each entry is tried alone: a single odd one would break the whole list of a client. Names of one
    of several servers have the prefix, and none is `reserved`.
    """
    taken: set[str] = set()
    for entry in tools:
        called = str(entry.get("name"))  # which `_fault` refuses if it is no text
        if called in without:
            continue
        is_plain = reserved is None and called not in CORE_TOOLS
        name = str(called) if is_plain else f"{prefix}_{called}"
        why = _fault(entry, name) or ("it is listed twice" if called in taken else None)
        if name in (reserved or ()):
            why = f"{name} is the name of another tool"
        if why is not None:
            shown = called[:_SHOWN_CHARS]
            yield Offer(None, entry, f"The server's tool {shown!r} is left out: {why}.")
            continue
        taken.add(called)
        is_told = not is_plain and reserved is None
        notes = [f"The server's tool {called} is {name} here."] if is_told else []
        sent = entry
        if "outputSchema" in entry and _refused({**entry, "name": name}):
            sent = {key: value for key, value in entry.items() if key != "outputSchema"}
            notes.append(f"{name} has a schema of results that no client can be sent.")
        if _refused({**sent, "name": name}):
            yield Offer(None, entry, f"The server's tool {called} is left out: clients refuse it.")
            continue
        yield Offer(name, sent, " ".join(notes))


def tokens(entry: Json) -> int:
    """Estimate the tokens that a tool costs in each request of a host: four characters are one."""
    sent = {name: entry.get(name) for name in ("name", "description", "inputSchema")}
    return len(json.dumps(sent, ensure_ascii=False, separators=(",", ":"))) // 4


def _fault(entry: Json, name: str) -> str | None:
    """Return the reason why a tool cannot be offered, or None."""
    called, schema = entry.get("name"), entry.get("inputSchema")
    if not isinstance(called, str) or not _TOOL_NAME.fullmatch(name):
        return "hosts take names of letters, digits and _.- alone, at most 64"
    if not isinstance(schema, dict) or as_object(schema).get("type", "object") != "object":
        return "its schema is not that of an object"
    if not isinstance(as_object(schema).get("properties", {}), dict):
        return "its schema has no usable properties"
    if fault := libraries.find_invalid_x_mcp_header(as_object(schema)):
        return clip(fault, 200)
    if as_object(entry.get("execution")).get("taskSupport") == "required":
        return "it runs as a task of MCP 2025-11-25 alone, which is not spoken here"
    return None


def _refused(entry: Json) -> bool:
    return not can_be_sent("tools", base_libraries.mcp_types.Tool, entry)


def can_be_sent(kind: ListKind, model: Any, entry: Json) -> bool:
    """Return whether clients of both eras can be sent an entry of a list."""
    result = {kind: [entry], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    try:
        model.model_validate(entry)
        for version in _VERSIONS:
            libraries.serialize_server_result(LIST_METHODS[kind], version, result)
    except (ValidationError, ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True)
class Change:
    """The difference of an instance's tools from those that agents were offered, by name."""

    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.gone or self.new or self.changed)

    def __str__(self) -> str:
        """Return sentences for the agent."""
        told = [
            (self.gone, "The server no longer has: {}; calls get its own error."),
            (self.new, "The server has tools that are not offered here: {}."),
            (self.changed, "The server describes these otherwise now: {}."),
        ]
        return " ".join(text.format(_some(names)) for names, text in told if names)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of its names, for the record."""
        return {"gone": len(self.gone), "new": len(self.new), "changed": len(self.changed)}


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def changes(kept: Sequence[Json], now: Sequence[Json]) -> Change:
    """Compare an instance's tools with those of the kept list; the order does not count."""
    before, after = _by_name(kept), _by_name(now)
    return Change(
        gone=tuple(name for name in before if name not in after),
        new=tuple(name for name in after if name not in before),
        changed=tuple(
            name for name in before if name in after and _same(before[name]) != _same(after[name])
        ),
    )


class Watch:
    """The tools of one instance, compared with those that agents were offered.

    Args:
        offered: The tools of the kept list.
        without: Tools that the author leaves out; nobody is told of them.
    """

    def __init__(self, offered: Sequence[Json], without: Collection[str] = ()) -> None:
        self._known, self._without = offered, without
        self._next_s = 0.0
        self.is_due = True

    async def look(self, instance: Lists) -> Change:
        """Return what is otherwise since the last look, if one is due and may be taken now."""
        now_s = time.monotonic()
        if not self.is_due or now_s < self._next_s:
            return Change()
        # The first look, as the instance starts, holds up no later one.
        self.is_due, self._next_s = False, now_s + _RELIST_S if self._next_s else 1e-9
        before, self._known = self._known, await instance.list("tools")
        lists = (
            [t for t in each if str(t.get("name")) not in self._without]
            for each in (before, self._known)
        )
        return changes(*lists)


def _by_name(tools: Sequence[Json]) -> dict[str, Json]:
    return {str(each.get("name"))[:_SHOWN_CHARS]: each for each in tools}


def _same(entry: Mapping[str, Any]) -> bytes:
    with contextlib.suppress(TypeError):
        return orjson.dumps(entry, option=orjson.OPT_SORT_KEYS)
    return repr(entry).encode()
