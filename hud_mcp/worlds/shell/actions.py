"""The shell's own actions and tools: run a command; read, write, edit and list files."""

import re
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any, Protocol, TypeVar

import anyio.to_thread
from pydantic import Field

from hud_mcp.environment.tool import Tool, actions
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed
from hud_mcp.sandbox import Entry
from hud_mcp.worlds.shell.results import SHOWN_CHARS, fold, shorten

_LINES = 2000
_AT_ONCE_CHARS = 32_000
"""The longest text that is shown without a thread. For longer ones other sessions would wait."""
_LINE_CHARS = 80
_BARE_BREAK = re.compile(r"(?<!\r)\n")
_UNREADABLE = "\N{REPLACEMENT CHARACTER}"
_NO_UTF_8 = f"{_UNREADABLE} stands for bytes that are not UTF-8."


CommandLine = Annotated[str, Field(description="A command line for bash.")]
Seconds = Annotated[float, Field(description="After how many seconds it is stopped; above 0.")]
PathOfFile = Annotated[str, Field(description="The file, from the task's folder on.")]
PathOfFolder = Annotated[str, Field(description="The folder, from the task's folder on.")]
FirstLine = Annotated[int, Field(description="The first line, from 1.")]
LineCount = Annotated[int, Field(description="How many lines.")]
WholeFile = Annotated[str, Field(description="The whole of it.")]
OldText = Annotated[str, Field(description="What is there, exactly, with what is around it.")]
NewText = Annotated[str, Field(description="What comes in its place.")]
Everywhere = Annotated[bool, Field(description="Replace it wherever it is.")]


class Workbench(Protocol):
    """The methods of a shell that the actions need. `ShellWorld` describes them."""

    async def run_for_agent(self, command: str, *, timeout_s: float | None = None) -> object: ...  # noqa: D102

    async def read(self, path: str) -> str: ...  # noqa: D102

    async def write(self, path: str, content: str | bytes) -> None: ...  # noqa: D102

    async def edit(self, path: str, old: str, new: str, *, every: bool = False) -> int: ...  # noqa: D102

    async def list(self, path: str = ".") -> "list[Entry]": ...  # noqa: D102


def replace_text(data: bytes, old: str, new: str, *, every: bool, path: str) -> tuple[bytes, int]:
    """Replace a text in a file, like `ShellWorld.edit`; return the new content and the count.

    Every other byte stays, in any encoding. If all lines of the file end in CRLF, so does each line
    of either text.
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
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


async def run_command(shell: Workbench, command: CommandLine, timeout_s: Seconds = 50.0) -> str:
    """Run a command line with bash, and return what it writes, and its exit code if not 0.

    Every command starts in the task's folder; files stay, variables and `cd` do not. Put what
    is to go on in the back behind `&`, with its output in a file. Call response when done.
    """
    written = str(await shell.run_for_agent(command, timeout_s=timeout_s))
    if len(written) <= _AT_ONCE_CHARS:
        return shorten(fold(as_on_terminal(written)))
    return shorten(await anyio.to_thread.run_sync(lambda: fold(as_on_terminal(written))))


async def read_file(
    shell: Workbench, path: PathOfFile, start: FirstLine = 1, lines: LineCount = _LINES
) -> str:
    """Read a text file in the task's folder, from a line on; the first is line 1."""
    every = (await shell.read(path)).splitlines(keepends=True)
    if not every:
        return f"{path} is empty."
    first = max(start, 1) - 1
    if first >= len(every):
        raise ActionFailed(f"{path} has {len(every)} lines; {start} is after its end.")
    part, end = "", first
    while end < min(first + max(lines, 1), len(every)):
        if part and len(part) + len(every[end]) > SHOWN_CHARS:
            break
        part, end = part + every[end], end + 1
    left = len(every) - end
    more = f"\n… {left} more lines; read on from line {end + 1}." if left > 0 else ""
    note = f"\n… {_NO_UTF_8} edit_file keeps them." if _UNREADABLE in part else ""
    return shorten(part.rstrip("\n")) + more + note


async def write_file(shell: Workbench, path: PathOfFile, content: WholeFile) -> str:
    """Write a whole file in the task's folder; folders on its way are made."""
    await shell.write(path, content)
    return f"Wrote {len(content.encode())} bytes to {path}."


async def edit_file(
    shell: Workbench,
    path: PathOfFile,
    old: OldText,
    new: NewText,
    every: Everywhere = False,  # noqa: FBT002  # an agent's arguments come by name
) -> str:
    """Replace a text in a file: `old` must be there exactly once, unless `every` is true."""
    count = await shell.edit(path, old, new, every=every)
    return f"Replaced it in {path}." if count == 1 else f"Replaced it {count} times in {path}."


async def list_folder(shell: Workbench, path: PathOfFolder = ".") -> str:
    """List a folder, from the task's folder on."""
    entries = await shell.list(path)
    lines = [f"{each.name}/" if each.info.is_folder else each.name for each in entries]
    return shorten("\n".join(lines)) or f"{path} is empty."


SHELL_ACTIONS = actions(
    run=run_command, read=read_file, write=write_file, edit=edit_file, list=list_folder
)
"""The custom actions of a shell."""

WorldT = TypeVar("WorldT", bound=World)
Reach = Callable[[WorldT, Callable[[Any], Awaitable[str]]], Awaitable[str]]
"""The type of a function that calls another one with the shell of a world."""


def shell_tools(
    world_type: type[WorldT], reach: Reach[WorldT], *, replayable: bool = True
) -> tuple[Tool, ...]:
    """Return the same functions as tools, with names that models know from elsewhere.

    `reach` calls a function with the shell of a world. `replayable` is that of running a command.
    """

    def tool(function: Callable[..., Awaitable[str]], **options: Any) -> Tool:
        @wraps(function)
        async def in_shell(shell: WorldT, **args: Any) -> str:
            return await reach(shell, lambda found: function(found, **args))

        # Of the world's class, by which a tool is given the world.
        in_shell.__annotations__ = {**function.__annotations__, "shell": world_type}
        return Tool(in_shell, **options)

    return (
        tool(run_command, replayable=replayable),
        tool(read_file, read_only=True),
        tool(write_file),
        tool(edit_file),
    )


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PART = re.compile(
    r"\x1b\[(?P<numbers>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # a title, a link, a picture: not shown
    r"|\x1b[ -/]*(?P<short>[0-~])"
    r"|(?P<control>[\x00-\x08\n-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x08\n-\x1f\x7f]+)"
)
_ROWS, _COLUMNS = 50, 250
"""The furthest place, beyond the text, to which a sequence moves the cursor. Text has no bound."""
_MOST_BLANKS = 1_000_000
"""The most blanks that moves to the right make. A few bytes can ask for many."""


def as_on_terminal(text: str) -> str:
    """Return the text that a terminal shows for an output.

    A carriage return, a backspace and the escape sequences of ECMA-48 are obeyed, so a hundred
    frames of a progress bar become the last one. The screen has no bottom: nothing scrolls away.
    """
    if _CONTROL.search(text) is None:
        return text
    screen = _Screen()
    for part in _PART.finditer(text):
        if (shown := part["text"]) is not None:
            screen.write(shown)
        elif part["final"] is not None:
            screen.obey(part["final"], part["numbers"])
        else:
            screen.control(part["control"] or f"\x1b{part['short']}")
    return screen.text


class _Screen:
    def __init__(self) -> None:
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0
        self._saved = 0, 0
        self._blanks = _MOST_BLANKS

    @property
    def text(self) -> str:
        return "\n".join(map("".join, self._lines))

    def write(self, text: str) -> None:
        line = self._line()
        missing = self._column - len(line)
        if missing > 0:
            self._blanks -= missing
            line += " " * missing if self._blanks > 0 else ""
        self._column = min(self._column, len(line))
        line[self._column : self._column + len(text)] = text
        self._column += len(text)

    def control(self, sign: str) -> None:
        if sign in "\n\v\f":
            self._row += 1
            self._column = 0
            self._line()
        elif sign == "\r":
            self._column = 0
        elif sign == "\b":
            self._column = max(0, self._column - 1)
        elif sign == "\x1b7":
            self._saved = self._row, self._column
        elif sign == "\x1b8":
            self._row, self._column = self._saved

    def obey(self, final: str, numbers: str) -> None:
        given = [int(each) if each.isdecimal() else 0 for each in numbers[:40].split(";")]
        count = max(1, given[0])
        if final in "ABCDEF":
            down = {"A": -count, "F": -count, "B": count, "E": count}.get(final, 0)
            right = {"C": count, "D": -count}.get(final, 0)
            self._move(self._row + down, 0 if final in "EF" else self._column + right)
        elif final == "G":
            self._move(self._row, count - 1)
        elif final in "Hf":
            self._move(count - 1, max(1, given[1]) - 1 if len(given) > 1 else 0)
        elif final == "K":
            self._erase_line(given[0])
        elif final == "J":
            self._erase_screen(given[0])
        elif final in "su":
            self.control("\x1b7" if final == "s" else "\x1b8")

    def _move(self, row: int, column: int) -> None:
        self._row = max(0, min(row, max(len(self._lines), _ROWS) - 1))
        self._column = max(0, min(column, max(self._column, _COLUMNS)))

    def _erase_line(self, how: int) -> None:
        line = self._line()
        if how != 1:
            del line[self._column if how == 0 else 0 :]
        else:
            end = min(self._column + 1, len(line))
            line[:end] = " " * end

    def _erase_screen(self, how: int) -> None:
        if how == 0:
            self._erase_line(0)
            del self._lines[self._row + 1 :]
        elif how != 1:  # the screen is empty, and what comes next stands at its top
            self._lines = [[]]
            self._row = 0
            self._saved = 0, 0

    def _line(self) -> list[str]:
        while len(self._lines) <= self._row:
            self._lines.append([])
        return self._lines[self._row]
