"""The results of commands, made short, and refusals of file operations, with the party to blame."""

import errno
import os
import re
import subprocess
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hud_mcp.errors import BrokenByAgent
from hud_mcp.sandbox import Entry


@dataclass(frozen=True)
class CommandResult:
    """The result of a command.

    Attributes:
        exit_code: The exit code; 0 for success. After a signal it is 128 plus the signal's number,
            as in shells: 137 for a killed command.
        output: The output on both streams, without its middle if it was long.
        stopped: The reason why it was stopped from outside, or None.
    """

    exit_code: int
    output: str
    stopped: str | None = None

    def __str__(self) -> str:
        """Return the output and, without success, the kind of end."""
        end = f"[{how_ended(self)}]"
        if self.exit_code == 0 and self.stopped is None:
            end = "" if self.output else "[exit code 0, no output]"
        return "\n".join(part for part in (self.output.rstrip("\n"), end) if part)


SHOWN_CHARS = 8000
"""The most characters of an output. A reply has room for 10,000, and must keep an output's end."""

_NUMBERS = re.compile(r"([0-9]{1,15})")
_MOST_PERIOD = 3
"""The most lines that repeat together."""
_LEAST_FOLDED_CHARS = 100
"""The least characters in place of which a note is shown."""


def shorten(text: str) -> str:
    """Return a text, with a note in place of its middle if it is long."""
    if len(text) <= SHOWN_CHARS:
        return text
    half = SHOWN_CHARS // 2
    # Between lines, unless one is very long.
    first = text.rfind("\n", half // 2, half)
    first = half if first < 0 else first
    last = text.find("\n", len(text) - half, len(text) - half // 2) + 1 or len(text) - half
    lines = text.count("\n", first, last - 1)
    also = f" in {lines} lines" if lines else ""
    note = f"… {last - first} characters{also} left out; use head, tail or grep to see them …"
    return f"{text[:first]}\n{note}\n{text[last:]}"


def fold(text: str) -> str:
    """Return a text with notes in place of lines that repeat, or that count on evenly.

    Nothing is lost: the lines that are left out follow from those that are shown. A text that stays
    too long is returned unchanged, so that its lines can be counted where it is cut.
    """
    lines = text.split("\n")
    shown: list[str] = []
    chars = i = 0
    begun = [0] * (_MOST_PERIOD + 1)  # a later part of a run is no longer than the whole of it
    while i < len(lines) and chars <= SHOWN_CHARS:
        taken, i = _fold_run(lines, i, begun)
        chars += sum(map(len, taken)) + len(taken)
        shown += taken
    return "\n".join(shown) if chars <= SHOWN_CHARS else text


def _fold_run(lines: Sequence[str], start: int, begun: list[int]) -> tuple[Sequence[str], int]:
    """Return the folded run that begins at a line, or that line, and the place of the next one."""
    for period in range(1, _MOST_PERIOD + 1):
        if start < begun[period]:
            continue
        end = start + 2 * period
        while end < len(lines) and _counts_on(lines[end - 2 * period : end + 1 : period]):
            end += 1
        begun[period] = end - 2 * period + 1
        end -= (end - start) % period
        ahead, behind = lines[start : start + period], lines[start + period : start + 2 * period]
        first, last = start + 2 * period, end - period
        note = f"{last - first} lines left out; they count on evenly to"
        if ahead == behind:
            of = "line" if period == 1 else f"{period} lines"
            first, last, behind = start + period, end, ()
            note = f"the same {of} {(last - first) // period} more times"
        chars = sum(map(len, lines[first:last])) + last - first
        if end >= start + 3 * period and chars >= _LEAST_FOLDED_CHARS:
            return [*ahead, *behind, f"… {note} …", *lines[last:end]], end
    return lines[start : start + 1], start + 1


def _counts_on(three: Sequence[str]) -> bool:
    """Whether the numbers in a third line follow from two others, and all else is equal."""
    if three[0] == three[1] or three[1] == three[2]:
        return three[0] == three[2]
    one, two, third = map(_NUMBERS.split, three)
    return one[::2] == two[::2] and third == [
        b if a == b else str(2 * int(b) - int(a)).zfill(len(b) if "0" in (a[0], b[0]) else 0)
        for a, b in zip(one, two, strict=True)
    ]


def how_ended(done: CommandResult) -> str:
    """Return the end of a command in a few words."""
    return f"exit code {done.exit_code}" if done.stopped is None else f"stopped: {done.stopped}"


def folder_lines(name: str, entries: Sequence[Entry], total: int) -> list[str]:
    """List a folder, a line for each of its first entries; `total` counts all of them."""
    lines = [f"Folder {name}: {f'{total} entries' if total else 'empty'}"]
    lines += [_entry_line(entry) for entry in entries]
    if total > len(entries):
        lines.append(f"… {total - len(entries)} more; list them with a command.")
    return lines


def _entry_line(entry: Entry) -> str:
    name = entry.name.encode("utf-8", "replace").decode()
    name = "".join(sign if sign.isprintable() else "?" for sign in name)
    if entry.info.is_folder:
        return f"  {name}/"
    return f"  {name}@" if entry.info.is_link else f"  {name}  {entry.info.size} bytes"


_AGENTS = frozenset({
    errno.EACCES, errno.EDQUOT, errno.EEXIST, errno.EFBIG, errno.EINVAL, errno.EISDIR,
    errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.ENOTEMPTY,
    errno.ENXIO, errno.EPERM, errno.ESTALE, errno.ETXTBSY, errno.EXDEV,
})  # fmt: skip
"""The errors that only the folder's state, the agent's, causes. Others are the machine's."""
_FULL = frozenset({errno.EDQUOT, errno.ENOSPC})
_CLOSED = (errno.EACCES, errno.EPERM)


def refusal(exc: OSError, path: str, root: str) -> str:
    """Return the reason of a failed file operation, and a remedy; an empty path is the folder."""
    named = path or "The folder"
    if exc.errno == errno.EXDEV:
        return f"{named} is not in {root}, or a link on its way leads out of it. Use a path in it."
    if exc.errno == errno.ENOENT:
        return f"{named} is not there. List the folder to see what is."
    if exc.errno in _CLOSED and named in ("The folder", root, "."):
        return f"{root} cannot be entered or read: {exc.strerror}. Run `chmod u+rwx {root}`."
    if exc.errno in (errno.ENOSPC, errno.EFBIG):
        why = exc.strerror if exc.errno == errno.EFBIG else "there is no room left in the folder"
        return f"{named}: {why}. Remove what is not needed, or use a part of it."
    return f"{named}: {exc.strerror or exc}."


def is_agents(exc: OSError, *, isolated: bool) -> bool:
    """Whether the agent is to blame for a failed operation on the folder.

    A folder that is not isolated shares the server's disk, which anybody may have filled.
    """
    return exc.errno in _AGENTS and (isolated or exc.errno not in _FULL)


def broken_by_agent(
    exc: BaseException | None, places: Sequence[Path], root: str, *, isolated: bool
) -> BrokenByAgent | None:
    """Return the error that blames the agent for a grader's failure on the folder's files, or None.

    The agent is to blame only for a system error about a path in the folder, by one of the names in
    `places`, or a full disk of the folder itself. The grader opened the files itself.
    """
    if not isinstance(exc, OSError) or not is_agents(exc, isolated=isolated):
        return None
    if exc.errno in _FULL and exc.filename is None:  # of a write, which names no file
        is_full = any(_is_full(place) for place in places)
        return BrokenByAgent(refusal(exc, "", root)) if is_full else None
    named: list[Any] = [exc.filename] if exc.filename2 is None else [exc.filename, exc.filename2]
    inside = [_within(name, places) for name in named if not _is_program(exc, name)]
    if len(inside) < len(named) or None in inside:
        return None
    return BrokenByAgent(refusal(exc, str(inside[0]), root))


def _is_full(place: Path) -> bool:
    try:
        disk = os.statvfs(place)
    except OSError:
        return False
    return not disk.f_bavail or not disk.f_favail


def _within(name: Any, places: Sequence[Path]) -> str | None:
    """Return a path from the folder on; None for a path outside of it, and for no path."""
    if not isinstance(name, str | bytes | os.PathLike):
        return None
    path = Path(os.path.abspath(os.fsdecode(cast("str", name))))  # noqa: PTH100  # links are the agent's
    found = next((place for place in places if path.is_relative_to(place)), None)
    return None if found is None else str(path.relative_to(found))


def _is_program(exc: OSError, name: Any) -> bool:
    """Whether a name is a program's that was looked for elsewhere, such as along PATH."""
    if not isinstance(name, str | bytes | os.PathLike):
        return False
    if Path(os.fsdecode(cast("str", name))).is_absolute():
        return False
    frames = traceback.extract_tb(exc.__traceback__)
    return bool(frames) and frames[-1].filename == subprocess.__file__
