"""A grader that runs a command and asks how it ended."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, ClassVar, Literal, Protocol, cast, runtime_checkable
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread

from hud_mcp.errors import ActionFailed, BrokenByAgent, GraderFailed
from hud_mcp.grade import SubScore
from hud_mcp.graders.grader import Grader
from hud_mcp.sandbox.descriptors import readable
from hud_mcp.sandbox.process import Kept, Output, shell_status
from hud_mcp.world import current_world

__all__ = ["BashGrader", "CommandEnd", "OpensVerifiers", "RunsCommands"]

_KEPT_BYTES = 64 * 1024
"""Of each stream, the first half and the last."""
_MOST_BYTES = 64 * 1024 * 1024
"""What a command may write in all; with more it is stopped."""
_END_S = 5.0
"""How long a command that was killed may take to be gone."""
_PASSED_ON = {
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
}
"""What a command outside of a sandbox gets of the server's environment, and each `LC_…`."""


class CommandEnd(Protocol):
    """How a command ended in a world."""

    @property
    def exit_code(self) -> int:
        """0 for success; 128 and the signal's number where one ended it."""
        ...

    @property
    def output(self) -> str:
        """What it wrote, on both streams."""
        ...

    @property
    def stopped(self) -> str | None:
        """Why it was stopped from outside, or None."""
        ...


@runtime_checkable
class RunsCommands(Protocol):
    """A world with a shell, as this grader needs it."""

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandEnd:
        """Run a line of bash to its end.

        Raises:
            ActionFailed: It cannot run; the text says why.
        """
        ...


class CleanEnd(Protocol):
    """How a command ended in a verifier."""

    @property
    def exit_code(self) -> int:
        """0 for success; 128 and a signal's number where one ended it."""
        ...

    @property
    def stdout(self) -> str:
        """What it wrote."""
        ...

    @property
    def stderr(self) -> str:
        """What it wrote as errors."""
        ...

    @property
    def stopped(self) -> str | None:
        """Why it was stopped from outside, or None."""
        ...


class Clean(Protocol):
    """A verifier, as this grader needs it."""

    @property
    def missing(self) -> Mapping[str, str]:
        """Outputs that are not there."""
        ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """What was not copied."""
        ...

    async def run(
        self,
        command: str,
        *,
        timeout_s: float | None = None,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
    ) -> CleanEnd:
        """Run a line of bash to its end."""
        ...


@runtime_checkable
class OpensVerifiers(Protocol):
    """A world that offers a clean place for grading; `ShellWorld.verifier` says what it is."""

    def verifier(
        self,
        files: str | os.PathLike[str] | None = None,
        copy: str | Iterable[str] | Mapping[str, str] = (),
        *,
        originals: Iterable[str] = (),
    ) -> AbstractAsyncContextManager[Clean]:
        """Open one."""
        ...


Place = Literal["verifier", "session"]
"""Where a session's command runs."""

_TESTS = "tests"
"""A verifier's word for files that are called as tests are."""
_SHOWN = 20
"""Of what was not copied, the record has no more."""
_WEAK = (
    "It ran in the agent's own sandbox, by whatever the agent left there: files, programs, "
    "and what still runs."
)


class BashGrader(Grader):
    """1.0 where a line of bash exits with 0, and 0.0 where it does not.

    In a session whose world has a shell, the command runs in a *verifier*: a fresh sandbox with a
    copy of the agent's folder, as data. Files that the environment's own `root` has for tests
    (`test_*`, `check*`, `conftest.py` …) come from there; with `copy`, all do but what it names.
    What Python, pytest or git would run by itself is not copied. What the command changes is gone
    with the verifier.

    A command that runs code of the agent's ends as that code likes: it can exit with 0. Where it
    does, say with `stdout` what is to be written. It is compared where no agent's code runs.

    `place="session"` runs it in the agent's own sandbox, with its rights, one grader after the
    other, which is **weak**; it is for what only that one has, such as a server that runs there.

    Outside of such sessions it runs as a process of the server's user, in a process group that is
    killed when it ends, and of the server's environment it sees only what says where and how it
    runs (`PATH`, `HOME`, `LANG` …): no keys. No profile is read. What the server's user may read
    and write, it may.
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
            cwd: A folder: of the session's sandbox where the command runs there, else of this
                machine. The session's own folder, or the server's, by default.
            timeout_seconds: Longer than this it may not take; `default_timeout` by default. A
                sandbox's `command_s` is the most in a session.
            env: More environment variables; their values are not recorded.
            stdout: What it must write, beside exiting with 0; newlines at the end do not count.
            copy: Outputs of the agent's, as `ShellWorld.verifier` takes them; all other files are
                those of the environment's `root`. By default, or with `.`, the agent's whole
                folder.
            files: Files of the author's, as there.
            place: `verifier`, or `session` for the agent's own sandbox. By default, a verifier
                where the world has any.

        Returns:
            `info` has `exit_code` (None where it was stopped), `stdout`, `stderr` (a session has
            both in `stdout`), `timed_out`, and `ran_in`: `verifier`, `session` or `server`; where
            it was stopped, also `stopped`, and `timeout` where that was for its time. A verifier
            has `missing` and `left_out` where there are such, a session `weak`.

        Raises:
            ValueError: There is no command, or no time for it.
            GraderFailed: It cannot run: there is no such folder, no bash, or no verifier.
            BrokenByAgent: The agent's folder cannot be copied.
            EnvironmentFailed: The session's world has ended.

        If this call is cancelled, the command and what it started are killed.
        """
        if not command or "\0" in command:
            raise ValueError(f"BashGrader needs a command for bash, got {command!r:.80}.")
        timeout_s = cls.default_timeout if timeout_seconds is None else timeout_seconds
        if not timeout_s > 0:
            raise ValueError(f"BashGrader needs a timeout_seconds above 0, got {timeout_s!r}.")
        folder = "" if cwd is None else os.fspath(cwd)
        world = current_world.get()
        clean = place == "verifier" or copy is not None or files is not None
        if place == "session" and clean:
            raise ValueError("BashGrader takes copy and files for a verifier, not place='session'.")
        if isinstance(world, OpensVerifiers) and place != "session":
            named = _named("." if copy is None else copy)
            whole = any(not name.strip("./") for name in named)
            opening = world.verifier(files, named, originals=(_TESTS if whole else "*",))
            async with _turns.setdefault(world, anyio.Lock()), opening as clean:
                info = await _in_verifier(clean, command, folder, timeout_s, env)
        elif clean:
            raise GraderFailed("BashGrader needs a shell world for a verifier; leave out place.")
        elif isinstance(world, RunsCommands):
            info = await _in_session(world, command, folder, timeout_s, env)
        else:
            info = await _on_machine(command, folder, timeout_s, env)
        right = info["exit_code"] == 0
        if stdout is not None:
            right = right and info["stdout"].rstrip("\n") == stdout.rstrip("\n")
        return SubScore(name=cls.name, value=float(right), info=info)


_turns: "WeakKeyDictionary[object, anyio.Lock]" = WeakKeyDictionary()


def _named(copy: str | Iterable[str] | Mapping[str, str]) -> Mapping[str, str]:
    """Outputs of the agent's, each with its path in the verifier."""
    if isinstance(copy, Mapping):
        return cast("Mapping[str, str]", copy)
    return {name: name for name in ([copy] if isinstance(copy, str) else copy)}


async def _in_verifier(
    clean: Clean,
    command: str,
    cwd: str,
    timeout_s: float,
    env: Mapping[str, str] | None,
) -> dict[str, Any]:
    """Run it where the agent has not been."""
    started = anyio.current_time()
    end = await clean.run(command, cwd=cwd, timeout_s=timeout_s, env=env)
    took_s = anyio.current_time() - started
    beside = {"missing": _some(clean.missing), "left_out": _some(clean.left_out)}
    return {
        **_ended(end.exit_code, end.stopped, timeout_s, took_s),
        "stdout": _ends_of(end.stdout),
        "stderr": _ends_of(end.stderr),
        "ran_in": "verifier",
        **{name: each for name, each in beside.items() if each},
    }


async def _in_session(
    world: RunsCommands, command: str, cwd: str, timeout_s: float, env: Mapping[str, str] | None
) -> dict[str, Any]:
    """Run it in the world, when no other grader does: a world has one caller at a time."""
    async with _turns.setdefault(world, anyio.Lock()):
        started = anyio.current_time()
        try:
            end = await world.run(command, cwd=cwd, timeout_s=timeout_s, env=env)
        except BrokenByAgent:
            raise
        except ActionFailed as exc:
            raise GraderFailed(f"BashGrader cannot run its command: {exc}") from exc
        took_s = anyio.current_time() - started
    return {
        **_ended(end.exit_code, end.stopped, timeout_s, took_s),
        "stdout": _ends_of(end.output),
        "stderr": "",
        "ran_in": "session",
        "weak": _WEAK,
    }


def _ended(exit_code: int, stopped: str | None, timeout_s: float, took_s: float) -> dict[str, Any]:
    """What is told of an end in a sandbox."""
    timed_out = stopped is not None and (took_s >= timeout_s or "took longer" in stopped)
    return {
        "exit_code": None if stopped is not None else exit_code,
        "timed_out": timed_out,
        **({"stopped": stopped} if stopped is not None else {}),
        **({"timeout": min(timeout_s, round(took_s, 3))} if timed_out else {}),
    }


def _ends_of(text: str) -> str:
    """The first half and the last of what the record keeps of a text."""
    kept = Kept(_KEPT_BYTES)
    kept.add(text.encode("utf-8", "replace"))
    return kept.taken().decode("utf-8", "replace")


def _some(reasons: Mapping[str, str]) -> dict[str, str]:
    return dict(list(reasons.items())[:_SHOWN])


async def _on_machine(
    command: str, cwd: str, timeout_s: float, env: Mapping[str, str] | None
) -> dict[str, Any]:
    """Run it as a process group of its own, beside the server."""
    bash = shutil.which(
        "bash", path=f"/bin{os.pathsep}/usr/bin{os.pathsep}{os.environ.get('PATH', '')}"
    )
    if os.name != "posix" or bash is None:
        raise GraderFailed(
            "BashGrader finds no bash on this machine. Install it, or use a shell world."
        )
    if cwd and not await anyio.Path(cwd).is_dir():
        raise GraderFailed(
            f"BashGrader cannot run its command: {cwd!r} is no folder here. Name one."
        )
    running = _Running(bash, command, cwd or None, env)
    try:
        with anyio.move_on_after(timeout_s) as bound:
            await running.wait()
        stopped = (
            f"it took longer than {timeout_s:g} s" if bound.cancelled_caught else running.stopped
        )
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
        **({"timeout": timeout_s} if bound.cancelled_caught else {}),
    }


class _Running:
    """A command under way. Started at once: there is no moment at which it could be lost.

    Raises:
        GraderFailed: It could not be started.
    """

    def __init__(
        self, bash: str, command: str, cwd: str | None, env: Mapping[str, str] | None
    ) -> None:
        self.stopped: str | None = None
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # the author's own command
                [bash, "--noprofile", "--norc", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=out_write,
                stderr=err_write,
                cwd=cwd,
                env={**_environment(), **(env or {})},
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
        """How it ended, as shells tell it; None while it runs."""
        code = self._process.poll()
        return None if code is None else shell_status(code)

    async def wait(self) -> None:
        """Wait for the end of the command itself, not of what it left in the back.

        Its number stays its own: until `kill` it is not taken off the list of processes.
        """
        if self._process.returncode is not None:
            return
        if hasattr(os, "pidfd_open"):
            ending = os.pidfd_open(self._process.pid)
            try:
                await readable(ending)
            finally:
                os.close(ending)
            return
        # Without it, what the command left in the back is no longer found afterwards.
        await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)

    def kill(self) -> None:
        """End it, and everything in its process group. What it wrote until now is read."""
        self._kill_group()
        self.out.drain()
        self.err.drain()

    def close(self) -> None:
        """Let go of what is left of it."""
        self.out.close()
        self.err.close()

    def _collect(self, fd: int) -> Output:
        return Output(
            fd, kept_bytes=_KEPT_BYTES, most_bytes=_MOST_BYTES, on_overflow=self._overflow
        )

    def _overflow(self) -> None:
        self.stopped = f"it wrote more than {_MOST_BYTES} bytes"
        self._kill_group()

    def _kill_group(self) -> None:
        if self._process.returncode is None:  # else its number may be another's by now
            with suppress(ProcessLookupError, PermissionError):  # all of it has ended
                os.killpg(self._process.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """What is passed on of the server's own environment."""
    return {k: v for k, v in os.environ.items() if k in _PASSED_ON or k.startswith("LC_")}
