"""The places of a grader's command: a session's shell, a verifier, or a process of the server."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import anyio.to_thread

from hud_mcp.base.reaper import reaped
from hud_mcp.errors import ActionFailed, BrokenByAgent, GraderFailed
from hud_mcp.sandbox.commands import Excerpt, Output, readable, shell_status

Variables = Mapping[str, str] | None
"""More environment variables of a command, or None."""


class CommandEnd(Protocol):
    """The end of a command."""

    @property
    def exit_code(self) -> int:
        """The exit code: 128 plus the number of a signal that ended it."""
        ...

    @property
    def stopped(self) -> str | None:
        """The reason for a stop from outside, or None."""
        ...


class WorldEnd(CommandEnd, Protocol):
    """The end of a command in a world."""

    @property
    def output(self) -> str:
        """The command's output on both streams."""
        ...


@runtime_checkable
class RunsCommands(Protocol):
    """A world with a shell, with the methods that this grader needs."""

    async def run(
        self, command: str, *, cwd: str = "", timeout_s: float | None = None, env: Variables = None
    ) -> WorldEnd:
        """Run a line of bash to its end.

        Raises:
            ActionFailed: The command cannot run; the text says why.
        """
        ...


class CleanEnd(CommandEnd, Protocol):
    """The end of a command in a verifier."""

    @property
    def stdout(self) -> str:
        """The command's standard output."""
        ...

    @property
    def stderr(self) -> str:
        """The command's standard error."""
        ...


class Clean(Protocol):
    """A verifier, with the members that this grader needs."""

    @property
    def missing(self) -> Mapping[str, str]:
        """The outputs that are not there."""
        ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """The files that were not copied."""
        ...

    async def run(
        self, command: str, *, timeout_s: float | None = None, cwd: str = "", env: Variables = None
    ) -> CleanEnd:
        """Run a line of bash to its end."""
        ...


@runtime_checkable
class OpensVerifiers(Protocol):
    """A world that offers a clean place for grading, as `ShellWorld.verifier` does."""

    def verifier(
        self,
        files: str | os.PathLike[str] | None = None,
        copy: str | Iterable[str] | Mapping[str, str] = (),
        *,
        originals: Iterable[str] = (),
    ) -> AbstractAsyncContextManager[Clean]:
        """Open a verifier."""
        ...


_SHOWN = 20
"""The most entries of a list of missing or left-out files in the record."""
_WEAK = (
    "It ran in the agent's own sandbox, by whatever the agent left there: files, programs, "
    "and what still runs."
)


@dataclass(frozen=True)
class Line:
    """A line of bash, its folder or an empty text, its time limit, and its variables."""

    command: str
    cwd: str
    timeout_s: float
    env: Variables


async def run_in_verifier(clean: Clean, line: Line) -> dict[str, Any]:
    """Run a line of bash in a verifier, where the agent has not been, and return its end."""
    started = anyio.current_time()
    end = await clean.run(line.command, cwd=line.cwd, timeout_s=line.timeout_s, env=line.env)
    took_s = anyio.current_time() - started
    beside = {"missing": _some(clean.missing), "left_out": _some(clean.left_out)}
    return {
        **_ended(end, line.timeout_s, took_s),
        "stdout": _ends_of(end.stdout),
        "stderr": _ends_of(end.stderr),
        "ran_in": "verifier",
        **{name: each for name, each in beside.items() if each},
    }


async def run_in_session(world: RunsCommands, line: Line) -> dict[str, Any]:
    """Run a line of bash in the world, and return its end.

    Raises:
        GraderFailed: The command cannot run there.
        BrokenByAgent: The agent made that impossible.
    """
    started = anyio.current_time()
    try:
        end = await world.run(line.command, cwd=line.cwd, timeout_s=line.timeout_s, env=line.env)
    except BrokenByAgent:
        raise
    except ActionFailed as exc:
        raise GraderFailed(f"BashGrader cannot run its command: {exc}") from exc
    took_s = anyio.current_time() - started
    return {
        **_ended(end, line.timeout_s, took_s),
        "stdout": _ends_of(end.output),
        "stderr": "",
        "ran_in": "session",
        "weak": _WEAK,
    }


def _ended(end: CommandEnd, timeout_s: float, took_s: float) -> dict[str, Any]:
    stopped = end.stopped
    timed_out = stopped is not None and (took_s >= timeout_s or "took longer" in stopped)
    return {
        "exit_code": None if stopped is not None else end.exit_code,
        "timed_out": timed_out,
        **({"stopped": stopped} if stopped is not None else {}),
        **({"timeout": min(timeout_s, round(took_s, 3))} if timed_out else {}),
    }


def _ends_of(text: str) -> str:
    kept = Excerpt(KEPT_BYTES)
    kept.add(text.encode("utf-8", "replace"))
    return kept.taken().decode("utf-8", "replace")


def _some(reasons: Mapping[str, str]) -> dict[str, str]:
    return dict(list(reasons.items())[:_SHOWN])


KEPT_BYTES = 64 * 1024
"""The bytes of each stream in the record: the first half of them and the last."""
_MOST_BYTES = 64 * 1024 * 1024
"""The most bytes that a command may write in all; with more it is stopped."""
_END_S = 5.0
"""The most seconds that a killed command may take to be gone."""
_PASSED_ON = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
)
"""The variables of the server that a command outside of a sandbox gets, beside each `LC_…`."""


async def run_on_server(line: Line) -> dict[str, Any]:
    """Run a line of bash beside the server, end all that it has started, and return its end.

    Raises:
        GraderFailed: There is no bash, or no such folder.

    If this call is cancelled, it kills the command and its processes.
    """
    bash = _find_bash()
    if line.cwd and not await anyio.Path(line.cwd).is_dir():
        raise GraderFailed(
            f"BashGrader cannot run its command: {line.cwd!r} is not a folder here. Name one."
        )
    running = _Running(bash, line)
    try:
        with anyio.move_on_after(line.timeout_s) as bound:
            await running.wait()
        late = f"it took longer than {line.timeout_s:g} s"
        stopped = late if bound.cancelled_caught else running.stopped
    finally:
        running.kill()
        with anyio.move_on_after(_END_S, shield=True):
            await running.wait()
        exit_code = running.exit_code
        running.close()
    return {
        "exit_code": exit_code if stopped is None else None,
        "stdout": running.out.taken().decode("utf-8", "replace"),
        "stderr": running.err.taken().decode("utf-8", "replace"),
        "timed_out": bound.cancelled_caught,
        "ran_in": "server",
        **({"stopped": stopped} if stopped is not None else {}),
        **({"timeout": line.timeout_s} if bound.cancelled_caught else {}),
    }


def _find_bash() -> str:
    places = f"/bin{os.pathsep}/usr/bin{os.pathsep}{os.environ.get('PATH', '')}"
    bash = shutil.which("bash", path=places)
    if os.name != "posix" or bash is None:
        raise GraderFailed(
            "BashGrader finds no bash on this machine. Install it, or use a shell world."
        )
    return bash


class _Running:
    """A command that runs from the first moment on. A failed start raises `GraderFailed`."""

    def __init__(self, bash: str, line: Line) -> None:
        self.stopped: str | None = None
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the author's own command
                reaped([bash, "--noprofile", "--norc", "-c", line.command]),
                stdin=subprocess.DEVNULL,
                stdout=out_write,
                stderr=err_write,
                cwd=line.cwd or None,
                env={**_environment(), **(line.env or {})},
                start_new_session=True,
            )
        except OSError as exc:
            os.close(out_read)
            os.close(err_read)
            raise GraderFailed(f"BashGrader cannot start {bash}: {exc.strerror}.") from exc
        finally:
            os.close(out_write)
            os.close(err_write)
        self.out, self.err = self._collect(out_read), self._collect(err_read)

    @property
    def exit_code(self) -> int | None:
        code = self._process.poll()
        return None if code is None else shell_status(code)

    async def wait(self) -> None:
        """Wait for the end of the command, then of its remaining processes, which are killed."""
        if self._process.returncode is not None:
            return
        if hasattr(os, "pidfd_open"):
            ending = os.pidfd_open(self._process.pid)
            try:
                await readable(ending)
            finally:
                os.close(ending)
            return
        await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)

    def kill(self) -> None:
        """End the command and everything that it has started. Its output until now is read."""
        self._end()
        self.out.drain()
        self.err.drain()

    def close(self) -> None:
        self.out.close()
        self.err.close()

    def _collect(self, fd: int) -> Output:
        return Output(fd, kept_bytes=KEPT_BYTES, most_bytes=_MOST_BYTES, on_overflow=self._overflow)

    def _overflow(self) -> None:
        self.stopped = f"it wrote more than {_MOST_BYTES} bytes"
        self._end()

    def _end(self) -> None:
        self._process.terminate()  # the reaper, which kills all the others


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k in _PASSED_ON or k.startswith("LC_")}
