"""Commands that read files and run none: their exit code is no agent's choice."""

import re

__all__ = ["runs_no_code"]

_READERS = frozenset({
    "[", "[[", ":", "b2sum", "base64", "basename", "cat", "cd", "cksum", "cmp", "column", "comm",
    "cut", "diff", "dirname", "echo", "egrep", "exit", "expand", "expr", "false", "fgrep", "file",
    "fmt", "fold", "grep", "head", "hexdump", "join", "jq", "ls", "md5sum", "nl", "od", "paste",
    "printf", "pwd", "read", "readlink", "realpath", "rev", "seq", "set", "sha1sum", "sha256sum",
    "sha512sum", "sort", "stat", "strings", "tac", "tail", "test", "tr", "true", "tsort", "uniq",
    "wc", "xxd", "zcat", "zgrep",
    "chmod", "cp", "date", "gunzip", "gzip", "ln", "mkdir", "mv", "rm", "sleep", "sqlite3", "tar",
    "tee", "touch", "unzip",
})  # fmt: skip
"""Programs that start no other one of what they read."""
_GRAMMAR = frozenset({
    "!", "{", "}", "if", "then", "elif", "else", "fi", "do", "done", "while", "until",
})  # fmt: skip
_LITERAL = re.compile(r"'[^']*'|\\.")
_INNER = re.compile(r"(?:[$<>]\(|\()([^()]*)\)|`([^`]*)`")
_QUOTED = re.compile(r'"[^"]*"')
_LOOP = re.compile(r"\bfor\s+\w+\s+in\b[^;\n]*")
_BREAKS = re.compile(r"[;&|\n]+")
_REDIRECTION = re.compile(r"\d*(?:>>?|<)&?\s*[^\s;&|]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")


def runs_no_code(command: str) -> bool:
    """Whether every program of a line of bash is known to run nothing that it reads.

    What is not known may run the agent's code, and then the agent chooses the exit code. The line
    is its author's, who means no harm: its words are looked at, and nothing else.
    """
    left, pieces = _LITERAL.sub("Q", command), list[str]()
    while (inner := _INNER.search(left)) is not None:  # the innermost first
        pieces.append(inner[1] or inner[2] or "")
        shown = ":" if inner[0].startswith("(") else "Q"
        left = f"{left[: inner.start()]}{shown}{left[inner.end() :]}"
    pieces.append(left)
    whole = [_LOOP.sub("", _REDIRECTION.sub("", _QUOTED.sub("Q", piece))) for piece in pieces]
    return all(_is_reader(part) for piece in whole for part in _BREAKS.split(piece))


def _is_reader(part: str) -> bool:
    words = part.split()
    while words and (words[0] in _GRAMMAR or _ASSIGNMENT.fullmatch(words[0])):
        words.pop(0)
    return not words or words[0] in _READERS
