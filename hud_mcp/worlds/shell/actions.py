"""The shell's own actions and tools: run a command; read, write, edit and list files."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import anyio.to_thread

from hud_mcp.errors import ActionFailed, did_you_mean
from hud_mcp.sandbox import Entry
from hud_mcp.values.action import ActionEffect
from hud_mcp.worlds.shell.terminal import as_on_terminal

__all__ = [
    "ACTIONS",
    "SCHEMAS",
    "Workbench",
    "edit_shown",
    "one_line",
    "read_part",
    "replace_text",
    "run_action",
    "run_shown",
    "shorten",
    "write_shown",
]

_LINES = 2000
_SHOWN_CHARS = 8000
"""A reply has room for 10,000: the end of a long output, which says most, must not be cut off."""

_AT_ONCE_CHARS = 32_000
"""Longer texts take a terminal so long that other sessions would wait."""
_LINE_CHARS = 80
_BARE_BREAK = re.compile(r"(?<!\r)\n")
_UNREADABLE = "\N{REPLACEMENT CHARACTER}"
_NO_UTF_8 = f"{_UNREADABLE} stands for bytes that are not UTF-8."


class Workbench(Protocol):
    """What the actions need of a shell; `ShellWorld` says what each does."""

    async def run_for_agent(self, command: str, *, timeout_s: float | None = None) -> object: ...  # noqa: D102

    async def read(self, path: str) -> str: ...  # noqa: D102

    async def write(self, path: str, content: str | bytes) -> None: ...  # noqa: D102

    async def edit(self, path: str, old: str, new: str, *, every: bool = False) -> int: ...  # noqa: D102

    async def list(self, path: str = ".") -> "list[Entry]": ...  # noqa: D102


def replace_text(data: bytes, old: str, new: str, *, every: bool, path: str) -> tuple[bytes, int]:
    """Replace a text in a file, as `Workbench.edit` says; return the new content and how often.

    Every other byte stays, whatever encoding it is of. Where all lines of the file end in CRLF,
    a line break in either text is one.

    Args:
        data: What the file has.
        old: The present text. It must occur once, unless `every` is set.
        new: The new text.
        every: Whether to replace each occurrence.
        path: The file, for the message.

    Raises:
        ActionFailed: It is not there, or more than once.
    """
    if 0 < data.count(b"\n") == data.count(b"\r\n"):
        old, new = (_BARE_BREAK.sub("\r\n", text) for text in (old, new))
    count = data.count(old.encode()) if old else 0
    if count == 0:
        what = one_line(old) if old else "An empty text"
        why = f" {_NO_UTF_8} Choose a text without it." if _UNREADABLE in old else ""
        raise ActionFailed(
            f"{what} is not in {path}; read it, and copy what is there exactly.{why}"
        )
    if count > 1 and not every:
        raise ActionFailed(
            f"{one_line(old)} is in {path} {count} times; give more of the text around it, or "
            "replace all of them."
        )
    return data.replace(old.encode(), new.encode()), count


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


async def run_action(world: Workbench, name: str, args: Mapping[str, Any]) -> ActionEffect:
    """Perform one custom action by its name.

    Raises:
        ActionFailed: There is none of that name, its arguments are wrong, or it was refused.
    """
    if name not in ACTIONS:
        known = ", ".join(_signature(each) for each in ACTIONS)
        hint = did_you_mean(name, ACTIONS)
        raise ActionFailed(f"There is no custom action {name!r}.{hint} There are: {known}.")
    perform, fields = ACTIONS[name]
    unknown = sorted(set(args) - set(fields))
    if unknown:
        raise ActionFailed(f"{name!r} takes no {unknown[0]!r}. It is used as {_signature(name)}.")
    for field, (kind, needed) in fields.items():
        value = args.get(field)
        if value is None and needed:
            raise ActionFailed(f"{name!r} needs {field!r}. It is used as {_signature(name)}.")
        if value is not None and not _is(value, kind):
            raise ActionFailed(f"{name!r}: {field!r} is {_KINDS[kind]}, not {value!r:.60}.")
    given = {field: value for field, value in args.items() if value is not None}
    return ActionEffect(text=await perform(world, **given))


async def read_part(world: Workbench, path: str, start: int = 1, lines: int = _LINES) -> str:
    """Some lines of a text file, with a note where there are more."""
    every = (await world.read(path)).splitlines(keepends=True)
    if not every:
        return f"{path} is empty."
    first = max(start, 1) - 1
    if first >= len(every):
        raise ActionFailed(f"{path} has {len(every)} lines; {start} is after its end.")
    part, end = "", first
    while end < min(first + max(lines, 1), len(every)):
        if part and len(part) + len(every[end]) > _SHOWN_CHARS:
            break
        part, end = part + every[end], end + 1
    left = len(every) - end
    more = f"\n… {left} more lines; read on from line {end + 1}." if left > 0 else ""
    note = f"\n… {_NO_UTF_8} edit_file keeps them." if _UNREADABLE in part else ""
    return shorten(part.rstrip("\n")) + more + note


def shorten(text: str) -> str:
    """A text without its middle, where it is long, and with a note of that."""
    left_out = len(text) - _SHOWN_CHARS
    if left_out <= 0:
        return text
    half = _SHOWN_CHARS // 2
    note = f"… {left_out} characters left out; use head, tail or grep to see them …"
    return f"{text[:half]}\n{note}\n{text[-half:]}"


async def run_shown(world: Workbench, command: str, timeout_s: float | None = None) -> str:
    """Run a command line; return what a terminal shows of it, shortened, and how it ended."""
    written = str(await world.run_for_agent(command, timeout_s=timeout_s))
    if len(written) <= _AT_ONCE_CHARS:
        return shorten(as_on_terminal(written))
    return shorten(await anyio.to_thread.run_sync(as_on_terminal, written))


async def write_shown(world: Workbench, path: str, content: str) -> str:
    """Write a whole text file, and say so."""
    await world.write(path, content)
    return f"Wrote {len(content.encode())} bytes to {path}."


async def edit_shown(
    world: Workbench, path: str, old: str, new: str, *, every: bool = False
) -> str:
    """Replace a text in a file, and say how often."""
    count = await world.edit(path, old, new, every=every)
    return f"Replaced it in {path}." if count == 1 else f"Replaced it {count} times in {path}."


async def _list(world: Workbench, path: str = ".") -> str:
    entries = await world.list(path)
    lines = [f"{each.name}/" if each.info.is_folder else each.name for each in entries]
    return shorten("\n".join(lines)) or f"{path} is empty."


_KINDS: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "a flag",
}
_Fields = Mapping[str, tuple[type, bool]]

ACTIONS: Mapping[str, tuple[Callable[..., Awaitable[str]], _Fields]] = {
    "run": (run_shown, {"command": (str, True), "timeout_s": (float, False)}),
    "read": (read_part, {"path": (str, True), "start": (int, False), "lines": (int, False)}),
    "write": (write_shown, {"path": (str, True), "content": (str, True)}),
    "edit": (
        edit_shown,
        {"path": (str, True), "old": (str, True), "new": (str, True), "every": (bool, False)},
    ),
    "list": (_list, {"path": (str, False)}),
}
"""Every custom action: what performs it, and its arguments with their kinds."""


_SAID = {
    "run": "run a command in the shell.",
    "read": "read a text file, or some lines of it.",
    "write": "write a whole file.",
    "edit": "replace a text in a file.",
    "list": "list a folder.",
    "command": "what to run, as in a shell.",
    "timeout_s": "after how many seconds it is stopped.",
    "path": "of the file or folder; from /workspace on.",
    "start": "the first line, from 1.",
    "lines": "how many.",
    "content": "the whole of it.",
    "old": "what is there; it must be there once.",
    "new": "what comes in its place.",
    "every": "replace it wherever it is.",
}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}

SCHEMAS: Mapping[str, dict[str, Any]] = {
    name: {
        "type": "object",
        "description": _SAID[name],
        "properties": {
            field: {"type": _TYPES[kind], "description": _SAID[field]}
            for field, (kind, _) in fields.items()
        },
        "required": [field for field, (_, needed) in fields.items() if needed],
        "additionalProperties": False,
    }
    for name, (_, fields) in ACTIONS.items()
}
"""Every custom action: the JSON schema of its arguments."""


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)


def _signature(name: str) -> str:
    fields = ACTIONS[name][1]
    shown = ", ".join(each if needed else f"{each}?" for each, (_, needed) in fields.items())
    return f"{name} {{{shown}}}"
