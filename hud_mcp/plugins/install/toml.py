"""Edit TOML: add or remove one table, and leave the rest of the text unchanged."""

import re
import tomllib
from collections.abc import Sequence
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import InlineTable

from hud_mcp.errors import InvalidConfiguration


def read(text: str) -> Any:
    """Return the value of a text.

    Raises:
        InvalidConfiguration: It is not TOML; the text has line and column.
    """
    return _parse(text).unwrap()


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Put a value at a path of tables, from the outermost one. Missing tables are made.

    Raises:
        InvalidConfiguration: The text is not TOML, or something on the path is not a table.
    """
    before = read(text)
    wanted = _with(before, path, value)
    if before == wanted:
        return text
    edited = _appended(text, path, value) if isinstance(value, dict) else None
    if edited is None or not _is(edited, wanted):
        edited = _set(text, path, value)
    if not _is(edited, wanted) or not _keeps_comments(text, edited):
        raise InvalidConfiguration(f"{path[-1]!r} cannot be added without changing other settings.")
    return edited


def drop(text: str, path: Sequence[str]) -> str:
    """Remove the table at a path. A text without it stays unchanged.

    Raises:
        InvalidConfiguration: The text is not TOML.
    """
    document = _parse(text)
    holder: Any = document
    for name in path[:-1]:
        holder = holder.get(name) if hasattr(holder, "get") else None
    if not hasattr(holder, "get") or path[-1] not in holder:
        return text
    wanted = _pruned(_without(read(text), path))
    cut = _cut(text, path)
    if _is(cut, wanted, pruned=True):
        return cut
    del holder[path[-1]]
    edited = tomlkit.dumps(document)
    if not _is(edited, wanted, pruned=True) or not _keeps_comments(text, edited):
        raise InvalidConfiguration(f"{path[-1]!r} cannot be taken away without other settings.")
    return edited


def _cut(text: str, path: Sequence[str]) -> str:
    """Return the text without the lines of a table and its inner tables; later comments stay."""
    names = r"\s*\.\s*".join(rf"[\"']?{re.escape(name)}[\"']?" for name in path)
    header = re.compile(rf"\s*\[\s*{names}\s*(?:\.[^\]]*)?\]")
    kept: list[str] = []
    within: list[str] | None = None
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            kept += within or []
            within = None
            if header.match(line):
                within = []
                if kept and not kept[-1].strip():
                    kept.pop()  # the blank line above it
                continue
        if within is None:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            within.append(line)
        else:
            within.clear()
    return "".join([*kept, *(within or [])])


def _parse(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except ParseError as exc:
        reason = str(exc).partition(" at line ")[0].rstrip(".")
        line, column = exc.line, exc.col + 1  # it counts columns from 0
        if "'\\x00'" in reason:  # its own character behind a text, whose place it does not know
            reason = "the file ends too early"
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        raise InvalidConfiguration(f"line {line}, column {column}: {reason}.") from None
    except TOMLKitError as exc:
        raise InvalidConfiguration(f"{exc}.") from None


def _appended(text: str, path: Sequence[str], value: Any) -> str:
    document = tomlkit.document()
    inner: Any = document
    for name in path[:-1]:
        inner[name] = tomlkit.table(is_super_table=True)
        inner = inner[name]
    inner[path[-1]] = tomlkit.item(value)
    eol = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else eol if text.endswith("\n") else eol * 2
    return text + gap + tomlkit.dumps(document).replace("\n", eol)


def _set(text: str, path: Sequence[str], value: Any) -> str:
    document = _parse(text)
    holder: Any = document
    for name in path[:-1]:
        if name not in holder:
            holder[name] = tomlkit.table(is_super_table=True)
        holder = holder[name]
        if not hasattr(holder, "keys"):
            raise InvalidConfiguration(f"{name!r} is not a table, and was to hold {path[-1]!r}.")
    if isinstance(holder, InlineTable) and isinstance(value, dict):
        inline: Any = tomlkit.inline_table()
        inline.update(cast("dict[str, Any]", value))
        value = inline
    try:
        holder[path[-1]] = value
    except (TOMLKitError, ValueError) as exc:
        raise InvalidConfiguration(f"{path[-1]!r} cannot be added: {exc}.") from None
    return tomlkit.dumps(document)


def _is(text: str, wanted: Any, *, pruned: bool = False) -> bool:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return (_pruned(found) if pruned else found) == wanted


def _keeps_comments(before: str, after: str) -> bool:
    """Whether every line that has a comment is still there, as it was."""
    lines = set(after.splitlines())
    return all(line in lines for line in before.splitlines() if line.lstrip().startswith("#"))


def _with(value: Any, path: Sequence[str], new: Any) -> Any:
    if not path:
        return new
    if not isinstance(value, dict):
        raise InvalidConfiguration(
            f"{path[0]!r} was to be put into what is not a table: {value!r}."
        )
    known = cast("dict[str, Any]", value)
    return {**known, path[0]: _with(known.get(path[0], {}), path[1:], new)}


def _without(value: Any, path: Sequence[str]) -> Any:
    if len(path) > 1:
        return {**value, path[0]: _without(value[path[0]], path[1:])}
    return {name: each for name, each in value.items() if name != path[0]}


def _pruned(value: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if each != {}}
