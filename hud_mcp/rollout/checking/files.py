"""The files of a sandbox: lines that hold a value, the author's own files, and odd outputs."""

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from hud_mcp.base.secrets import hidden_paths
from hud_mcp.environment.spec import WorldSpec
from hud_mcp.rollout.checking.leaks import is_short
from hud_mcp.rollout.checking.surface import Seen
from hud_mcp.sandbox import SandboxOptions
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.sandbox.shown import OWN
from hud_mcp.worlds.shell.spec import Shell

_MACHINE = (
    *("/proc", "/sys", "/dev", OWN, "/usr", "/bin", "/sbin"),
    *("/lib", "/lib32", "/lib64", "/libx32"),
)
"""Folders that every sandbox has, and no author wrote."""

_SPECIAL = ("/proc", "/sys", "/dev")
_MOST_BYTES = 4_000_000
"""A longer file is not searched."""

_MOST_VALUES = 12
_LINE_CHARS = 300
_REPLY_CHARS = 6000
_FOUND = re.compile(r"^(?P<path>\.?/[^\0:]*):(?P<line>\d+):(?P<text>.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"^(?P<name>[A-Za-z_]\w*)=(?P<text>.*)$", re.MULTILINE)
_SUM = re.compile(r"^(?P<sum>[0-9a-f]{64})  (?P<path>/.*)$", re.MULTILINE)


def search_for(values: Iterable[str]) -> list[str]:
    """Return commands that print the places of values in a sandbox: files and variables.

    Of a value with several lines, the longest is searched for.
    """
    # Without a sandbox the other files are the machine's, which any agent there can read anyway.
    root = f"$([ -e {OWN} ] && echo / || echo .)"
    files = f"find {root} {_leave_out(_MACHINE)} -type f -size -{_MOST_BYTES}c -print0"
    lines = dict.fromkeys(max(value.splitlines(), key=len, default="").strip() for value in values)
    found = [
        f"{files} 2>/dev/null | xargs -0 grep -nHaiF {'-w ' if is_short(line) else ''}-m 5 "
        f"-e {shlex.quote(line)} 2>/dev/null | cut -c-{_LINE_CHARS} | head -c {_REPLY_CHARS}; true"
        for line in list(lines)[:_MOST_VALUES]
        if line
    ]
    return [*found, "env"] if found else []


def read_lines(reply: str, world: WorldSpec) -> list[Seen]:
    """Read the lines and variables that a command of `search_for` has printed."""
    options = world.options if isinstance(world, Shell) else SandboxOptions()
    own = [GUEST_ROOT, *map(str, options.readonly), *options.parts, *map(str, options.places)]
    variables = [
        Seen(
            place=f"the variable {match['name']}", kind="outside", text=match["text"], own=True,
            named=match["name"],
        )
        for match in _VARIABLE.finditer(reply)
    ]  # fmt: skip
    return variables + [
        Seen(
            place=f"{match['path']}, line {match['line']}",
            kind="outside"
            if match["path"][0] == "/" and not _is_in(match["path"], own)
            else "file",
            text=match["text"],
            own=True,
            named=match["path"].removeprefix(f"{GUEST_ROOT}/"),
        )
        for match in _FOUND.finditer(reply)
    ]


def find_author_files() -> str | None:
    """Return a command that prints a sandbox's files that no agent may read, or None."""
    alike = [
        f"\\( -name {shlex.quote(path.name)} -size {path.stat().st_size}c \\)"
        for path in map(Path, hidden_paths())
        if path.is_file() and path.stat().st_size
    ]
    if not alike:
        return None
    named = " -o ".join(alike)
    return (
        f"[ -e {OWN} ] && find / {_leave_out(_SPECIAL)} -type f \\( {named} \\) -print0 "
        "2>/dev/null | xargs -0 -r sha256sum 2>/dev/null; true"
    )


def read_author_files(reply: str) -> list[str]:
    """Return a sentence for each file that `find_author_files` has found."""
    known = {_sum(path): path.name for path in map(Path, hidden_paths()) if path.is_file()}
    return [
        f"The sandbox shows {known[match['sum']]!r}, which agents must not read, at "
        f"{match['path']}. Move it to a folder that no sandbox shows, and leave it out of "
        "`root` and `readonly`."
        for match in _SUM.finditer(reply)
        if match["sum"] in known
    ]


def _leave_out(folders: Sequence[str]) -> str:
    return f"\\( {' -o '.join(f'-path {folder}' for folder in folders)} \\) -prune -o"


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


ODD_ANSWERS: Mapping[str, str] = {
    "nothing": "{}",
    "NUL": "a\0b",
    "not-a-number": "NaN",
    "lists-in-lists": "[" * 5000,
    "a-long-number": "9" * 5000,
}
"""Answers that programs read badly, by name."""

SHAPES: dict[str, str] = {
    "nothing": "true",
    "empty": ': > "$f"',
    "a folder": 'mkdir -p "$f"',
    "a folder of its own name": 'mkdir -p "$f/$(basename "$f")"; echo x > "$f/$(basename "$f")/x"',
    "a closed folder": 'mkdir "$f"; echo x > "$f/x"; chmod 000 "$f"',
    "a file": 'echo x > "$f"',
    "a closed file": 'echo x > "$f"; chmod 000 "$f"',
    "a link to a file": 'echo x > target; ln -s "$PWD/target" "$f"',
    "a link to nowhere": 'ln -s nowhere "$f"',
    "a link in a circle": 'ln -s "$(basename "$f")" "$f"',
    "a link out": 'ln -s /etc/passwd "$f"',
    "a link to a device": 'ln -s /dev/zero "$f"',
    "a pipe": 'mkfifo "$f"',
    "a socket": "python3 -c 'import socket, sys; "
    'socket.socket(socket.AF_UNIX).bind(sys.argv[1])\' "$f"',
    "20 MB": "head -c 20000000 /dev/zero | tr '\\0' 1 > \"$f\"",
    "400 MB": 'truncate -s 400M "$f"',
    "no text": "printf '\\377\\376\\200{' > \"$f\"",
    "NUL": "printf 'a\\0b' > \"$f\"",
    "a long line": "head -c 200000 /dev/zero | tr '\\0' x > \"$f\"",
    "lists in lists": "head -c 200000 /dev/zero | tr '\\0' '[' > \"$f\"",
    "a long number": "head -c 5000 /dev/zero | tr '\\0' 9 > \"$f\"",
}
"""Lines of bash by the shape that they leave at `$f`, where nothing is."""

JSON_SHAPES = {f"JSON: {text}": f"echo '{text}' > \"$f\"" for text in ("{}", "null", "[1]", '"a"')}
"""Valid JSON of a shape that no grader expects."""


PLAYED = (
    "a folder",
    "a link in a circle",
    "a pipe",
    "a closed file",
    "no text",
    "20 MB",
    "lists in lists",
    "JSON: [1]",
)
"""The shapes that a check plays: one of each kind that graders read differently."""

_CLEAR = 'chmod -R u+rwx "$f" 2>/dev/null; rm -rf "$f"; mkdir -p "$(dirname "$f")"; '

_MOST_OUTPUTS = 20


def left_as(shape: str, path: str) -> str:
    """Return the line that leaves an output in a shape, whatever was there before."""
    return f"f={shlex.quote(path)}; {_CLEAR}{_line(shape)}"


def leave_changed_as(shape: str, mark: str) -> str:
    """Return the line that leaves each file newer than another in a shape, and names it."""
    files = f"find . \\( -type f -o -type l \\) -cnewer {mark} -not -path './.*' -printf '%P\\0'"
    return (
        f"mapfile -d '' -t changed < <({files}); "
        f'for f in "${{changed[@]:0:{_MOST_OUTPUTS}}}"; do {_CLEAR}{_line(shape)}; '
        "printf '%s\\n' \"$f\"; done"
    )


def _line(shape: str) -> str:
    return {**SHAPES, **JSON_SHAPES}[shape]
