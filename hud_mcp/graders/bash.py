"""The grader that runs a command and looks at its end."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, cast
from weakref import WeakKeyDictionary

import anyio

from hud_mcp.environment.world import current_world
from hud_mcp.errors import GraderFailed
from hud_mcp.graders.combination import Grader
from hud_mcp.graders.commands import (
    Line,
    OpensVerifiers,
    RunsCommands,
    run_in_session,
    run_in_verifier,
    run_on_server,
)
from hud_mcp.values.grade import SubScore

__all__ = ["BashGrader", "Place", "runs_no_code"]

Place = Literal["verifier", "session"]
"""The place in which a session's command runs."""
_BELIEVED = (
    "The command may run the agent's code, which can exit with 0 without the work: give `stdout`."
)
_TESTS = "tests"
"""A verifier's word for files that are called as tests are."""


class BashGrader(Grader):
    """1.0 if a line of bash exits with 0, else 0.0.

    In a session whose world has a shell, the command runs in a *verifier*. A verifier is a fresh
    sandbox with a copy of the agent's folder, as data. Files that the environment's own `root` has
    for tests (`test_*`, `check*`, `conftest.py` …) come from there. With `copy`, all files come
    from there except those that `copy` names. Files that Python, pytest or git would run
    automatically are not copied. The command's changes are deleted with the verifier.

    A command that runs the agent's code can exit with 0 whenever that code wants. For such a
    command, give the expected output as `stdout`. The comparison runs outside the agent's code.

    `place="session"` runs it in the agent's own sandbox, with the agent's rights, one grader at a
    time. This is **weak**; use it only for what exists only there, such as a running server.

    Outside of such sessions it runs as a process of the server's user. Its process group is killed
    at its end. It gets only a few variables of the server's environment (`PATH`, `HOME`, `LANG` …),
    no keys, and no profile. It can read and write everything that the server's user can.
    """

    name: ClassVar[str] = "BashGrader"
    unrecorded: ClassVar[frozenset[str]] = frozenset({"env"})
    default_timeout: ClassVar[float] = 600

    @classmethod
    async def compute_score(  # pyright: ignore[reportIncompatibleMethodOverride]  # each grader has parameters of its own
        cls,
        command: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_seconds: float | None = None,
        env: Mapping[str, str] | None = None,
        *,
        stdout: str | None = None,
        copy: str | Iterable[str] | Mapping[str, str] | None = None,
        files: str | os.PathLike[str] | None = None,
        place: Place | None = None,
    ) -> SubScore:
        """Run the command, and say how it ended.

        Args:
            command: A line for bash.
            cwd: A folder of the session's sandbox if the command runs there, else of this machine;
                by default the session's own folder, or the server's.
            timeout_seconds: The command's time limit; `default_timeout` by default. In a session it
                is at most the sandbox's `command_s`.
            env: More environment variables; their values are not recorded.
            stdout: The output that it must write, too. Newlines at the end do not count.
            copy: The agent's outputs, as `ShellWorld.verifier` takes them; all other files are
                those of the environment's `root`. By default, or with `.`, it is the agent's whole
                folder.
            files: The author's files, as `ShellWorld.verifier` takes them.
            place: `verifier`, or `session` for the agent's own sandbox. By default it is a
                verifier, if the world has any.

        Returns:
            `info` has `exit_code` (None if it was stopped), `stdout`, `stderr` (a session has both
            in `stdout`), `timed_out`, and `ran_in`: `verifier`, `session` or `server`; after a
            stop also `stopped`, and `timeout` if that was for its time. A verifier may add
            `missing` and `left_out`. `weak` says how an agent can forge the result: always in a
            session, and for an exit code if the command may run its code.

        Raises:
            ValueError: There is no command, or no time for it.
            GraderFailed: It cannot run, for lack of the folder, of bash or of a verifier.
            BrokenByAgent: The agent's folder cannot be copied.
            EnvironmentFailed: The session's world has ended.

        If this call is cancelled, it kills the command and its processes.
        """
        timeout_s = cls.default_timeout if timeout_seconds is None else timeout_seconds
        info = await _run(_checked(command, timeout_s, cwd, env), copy, files, place)
        if stdout is None and info["ran_in"] == "verifier" and not runs_no_code(command or ""):
            info["weak"] = _BELIEVED
        return SubScore(name=cls.name, value=float(_is_right(info, stdout)), info=info)


def _checked(
    command: str | None,
    timeout_s: float,
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
) -> Line:
    if not command or "\0" in command:
        raise ValueError(f"BashGrader needs a command for bash, got {command!r:.80}.")
    if not timeout_s > 0:
        raise ValueError(f"BashGrader needs a timeout_seconds above 0, got {timeout_s!r}.")
    return Line(command, "" if cwd is None else os.fspath(cwd), timeout_s, env)


async def _run(
    line: Line,
    copy: str | Iterable[str] | Mapping[str, str] | None,
    files: str | os.PathLike[str] | None,
    place: Place | None,
) -> dict[str, Any]:
    world = current_world.get()
    clean = place == "verifier" or copy is not None or files is not None
    if place == "session" and clean:
        raise ValueError("BashGrader takes copy and files for a verifier, not place='session'.")
    if isinstance(world, OpensVerifiers) and place != "session":
        named = _named("." if copy is None else copy)
        whole = any(not name.strip("./") for name in named)
        opening = world.verifier(files, named, originals=(_TESTS if whole else "*",))
        async with _turns.setdefault(world, anyio.Lock()), opening as clean:
            return await run_in_verifier(clean, line)
    if clean:
        raise GraderFailed("BashGrader needs a shell world for a verifier; leave out place.")
    if isinstance(world, RunsCommands):
        async with _turns.setdefault(world, anyio.Lock()):  # a world has one caller at a time
            return await run_in_session(world, line)
    return await run_on_server(line)


def _is_right(info: Mapping[str, Any], stdout: str | None) -> bool:
    if stdout is None or info["exit_code"] != 0:
        return info["exit_code"] == 0
    return info["stdout"].rstrip("\n") == stdout.rstrip("\n")


_turns: "WeakKeyDictionary[object, anyio.Lock]" = WeakKeyDictionary()


def _named(copy: str | Iterable[str] | Mapping[str, str]) -> Mapping[str, str]:
    if isinstance(copy, Mapping):
        return cast("Mapping[str, str]", copy)
    return {name: name for name in ([copy] if isinstance(copy, str) else copy)}


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

    Any other program may run the agent's code, and then the agent chooses the exit code. The line
    is its author's, who means no harm, so its words decide.
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
