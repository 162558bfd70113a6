"""Whatever an agent may leave in the place of an output, as lines of bash; and odd answers."""

import shlex
from collections.abc import Mapping

__all__ = ["JSON_SHAPES", "ODD_ANSWERS", "PLAYED", "SHAPES", "leave_changed_as", "left_as"]

ODD_ANSWERS: Mapping[str, str] = {
    "nothing": "{}",
    "NUL": "a\0b",
    "not-a-number": "NaN",
    "lists-in-lists": "[" * 5000,
    "a-long-number": "9" * 5000,
}
"""Answers that programs read badly, by a name for each."""

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
"""By what they are; `$f` is the output's path, at which nothing is."""

JSON_SHAPES = {f"JSON: {text}": f"echo '{text}' > \"$f\"" for text in ("{}", "null", "[1]", '"a"')}
"""Sound JSON of another shape than a grader expects."""


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
"""Those that a check plays: one of each kind that graders read in a way of their own."""

_CLEAR = 'chmod -R u+rwx "$f" 2>/dev/null; rm -rf "$f"; mkdir -p "$(dirname "$f")"; '

_MOST_OUTPUTS = 20


def left_as(shape: str, path: str) -> str:
    """The line that leaves an output in a shape, whatever is there before."""
    return f"f={shlex.quote(path)}; {_CLEAR}{_line(shape)}"


def leave_changed_as(shape: str, mark: str) -> str:
    """The line that leaves each file in a shape that is newer than another one; it names them."""
    files = f"find . \\( -type f -o -type l \\) -cnewer {mark} -not -path './.*' -printf '%P\\0'"
    return (
        f"mapfile -d '' -t changed < <({files}); "
        f'for f in "${{changed[@]:0:{_MOST_OUTPUTS}}}"; do {_CLEAR}{_line(shape)}; '
        "printf '%s\\n' \"$f\"; done"
    )


def _line(shape: str) -> str:
    return {**SHAPES, **JSON_SHAPES}[shape]
