"""A clean place of a grader's own: the author's files, and named outputs of the agent as data.

It is a sandbox like the session's, made anew. An agent's program runs there only if a grader runs
it, and then like any stranger's: its output is data, and its exit code is its own choice.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, NoReturn, TypeVar

import anyio
import anyio.to_thread

from hud_mcp.base.egress import AllowList
from hud_mcp.environment.agent_data import note_agent_data
from hud_mcp.errors import ActionFailed, BrokenByAgent, EnvironmentFailed, GraderFailed
from hud_mcp.sandbox import Finished, Sandbox, SandboxOptions
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.worlds.shell.outputs import Originals, Sifted, named_outputs, sift
from hud_mcp.worlds.shell.results import is_agents
from hud_mcp.worlds.shell.stage import Author, Stage

Data = TypeVar("Data", str, bytes)

_SITE = "/run/hud-mcp-site"
_ROOM_BYTES = 64 * 1024 * 1024
"""The room for the author's files, beside the agent's own limit."""
_MOST_READ_BYTES = 16 * 1024 * 1024

_CLEAN = {
    "HOME": "/tmp",  # noqa: S108  # of the sandbox
    "PYTHONSAFEPATH": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": "/dev/null",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_CONFIG_KEY_2": "safe.bareRepository",
    "GIT_CONFIG_VALUE_2": "explicit",
}
"""The variables of every command in a verifier. With them no file in the folder runs by itself."""


@dataclass(frozen=True)
class VerifierResult:
    """The result of a command in a verifier.

    Attributes:
        exit_code: The exit code; 0 for success, 128 plus the signal's number after a signal.
        stdout: The standard output, without its middle if it was long.
        stderr: The standard error.
        stopped: The reason why it was stopped from outside, or None.
    """

    exit_code: int
    stdout: str
    stderr: str = ""
    stopped: str | None = None

    @property
    def output(self) -> str:
        """Both streams, one after the other."""
        return self.stdout + self.stderr


class Verifier:
    """A grader's own place. Made by `ShellWorld.verifier`, and closed when its block ends.

    Attributes:
        root: The path of its folder for commands.
        missing: The reason for each requested output that is not there as a file or folder.
        left_out: The reason for each part of an output that was not copied.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        env: Mapping[str, str],
        sifted: Sifted,
        outputs: Iterable[str],
        renamed: Sequence[str] = (),
    ) -> None:
        self._sandbox = sandbox
        self._outputs = [PurePosixPath(name) for name in outputs]
        self._has_run = False
        self._env = dict(env)
        self._renamed = renamed
        self.root = sandbox.root
        self.missing: Mapping[str, str] = sifted.missing
        self.left_out: Mapping[str, str] = sifted.left_out

    @property
    def sandbox(self) -> Sandbox:
        """Its sandbox, for programs that go on."""
        return self._sandbox

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        stdin: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        background: bool = False,
    ) -> VerifierResult:
        """Run a command to its end, in the verifier's folder.

        If it runs the agent's code, the agent can choose its exit status. Compare its output with a
        value that only the template knows.

        Args:
            command: A line for bash, or a program with its arguments.
            timeout_s: The longest duration, at most the sandbox's own limit.
            stdin: Its standard input.
            cwd: A folder, from the verifier's own.
            env: More environment variables.
            background: Whether the processes that it leaves go on. Otherwise they are killed.

        Raises:
            BrokenByAgent: The agent made no folder of `cwd`. Nothing ran.
            GraderFailed: The author names no folder with `cwd`, `timeout_s` is not above 0, or
                the command has a NUL in it. Nothing ran.
            EnvironmentFailed: The verifier has ended.

        If this call is cancelled, it kills the command and its processes.
        """
        _check_command(command, timeout_s)
        could_be_agents, self._has_run = self._could_be_agents(cwd), True
        variables = {name: self._here(each) for name, each in (env or {}).items()}
        try:
            done = await self._sandbox.run(
                self._here(command) if isinstance(command, str) else [*map(self._here, command)],
                timeout_s=timeout_s,
                stdin=stdin.encode(),
                cwd=cwd,
                env={**self._env, **variables},
                apart=True,
            )
        except OSError as exc:
            raise self._not_run(cwd, exc, could_be_agents=could_be_agents) from exc
        finally:
            if not background and self._sandbox.alive:
                with anyio.CancelScope(shield=True):
                    await self._sandbox.end_processes()
        return self._result(done)

    def _not_run(
        self, cwd: str, exc: OSError, *, could_be_agents: bool
    ) -> BrokenByAgent | GraderFailed:
        if could_be_agents and self._is_agents(exc):
            return BrokenByAgent(_unreadable(cwd, exc))
        return GraderFailed(
            f"A verifier cannot run its command in {cwd or self.root!r}: {exc.strerror or exc}. "
            "Name an existing folder."
        )

    def _result(self, done: Finished) -> VerifierResult:
        output = self._note(done.text)
        errors = self._note(done.errors.decode("utf-8", "replace"))
        return VerifierResult(done.code, output, errors, done.reason)

    async def read_text(self, path: str) -> str:
        """Return a text file's content like `read_bytes`; a sign stands for bytes not in UTF-8."""
        return self._note((await self.read_bytes(path)).decode("utf-8", "replace"))

    async def read_json(self, path: str) -> Any:
        """Return the value of a JSON file like `read_bytes`; `BrokenByAgent` if it is no JSON."""
        return read_json_text(await self.read_text(path), path)

    async def read_bytes(self, path: str) -> bytes:
        """Return a file's content, of at most 16 MiB.

        Raises:
            BrokenByAgent: The agent left no such file there, or the file cannot be read or is too
                long. If the template does not catch it, the grade is 0.
            ActionFailed: No output and no command of this verifier can have made the file.
            EnvironmentFailed: The verifier has ended.
        """
        try:
            return self._note(await self._sandbox.files.read(path, most_bytes=_MOST_READ_BYTES))
        except OSError as exc:
            self._refuse(exc, path)

    async def exists(self, path: str) -> bool:
        """Whether a file or folder of that name exists; `ActionFailed` if it leads outside."""
        try:
            return await self._sandbox.files.exists(path)
        except OSError as exc:
            if self._could_be_agents(path) and self._is_agents(exc):
                return False  # a link on the way to it leads out, or in a circle
            self._refuse(exc, path)

    def _here(self, text: str) -> str:
        for name in self._renamed:
            text = text.replace(name, self.root)
        return text

    def _note(self, data: Data) -> Data:
        """Mark data as the agent's, if it may be."""
        return note_agent_data(data) if self._outputs else data

    def _is_agents(self, exc: OSError) -> bool:
        return is_agents(exc, isolated=self._sandbox.isolation == "bwrap")

    def _could_be_agents(self, path: str) -> bool:
        """Whether an output of the agent, or a command that read one, may have made a path."""
        try:
            inside = PurePosixPath(normpath(self._sandbox.files.relative(path)))
        except OSError:
            return False
        if ".." in inside.parts or not self._outputs:
            return False
        return self._has_run or any(
            inside.is_relative_to(name) or name.is_relative_to(inside) for name in self._outputs
        )

    def _refuse(self, exc: OSError, path: str) -> NoReturn:
        agents = self._could_be_agents(path) and self._is_agents(exc)
        raise (BrokenByAgent if agents else ActionFailed)(_unreadable(path, exc)) from exc


def read_json_text(text: str, path: str) -> Any:
    """Return the value of a JSON text that the agent made.

    It is a `BrokenByAgent` if the text is not JSON, or too deep to be read.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        why = "too deep" if isinstance(exc, RecursionError) else str(exc)
        raise BrokenByAgent(f"{path} cannot be read as JSON: {why}.") from exc


def _check_command(command: str | Sequence[str], timeout_s: float | None) -> None:
    line = command if isinstance(command, str) else " ".join(command)
    if not line or "\0" in line or (timeout_s is not None and not timeout_s > 0):
        raise GraderFailed(
            f"A verifier takes a command without NUL and a time above 0, not {line!r:.80} "
            f"in {timeout_s} s."
        )


def _unreadable(path: str, exc: OSError) -> str:
    return f"{path} cannot be read: {exc.strerror or exc}."


@asynccontextmanager
async def open_verifier(
    agents: Sandbox,
    author: Author,
    *,
    files: str | Path | None,
    copy: str | Iterable[str] | Mapping[str, str],
    originals: Sequence[str],
    network: bool,
) -> AsyncGenerator[Verifier]:
    """Open a verifier for a session's sandbox, whose processes are stopped meanwhile.

    `ShellWorld.verifier` describes the arguments.
    """
    named = named_outputs(copy)
    source = author.find(files) if files is not None else None
    kept = Originals(author.root, originals) if originals and author.root is not None else None
    stage = await anyio.to_thread.run_sync(Stage)
    sandbox: Sandbox | None = None
    try:
        if source is not None:
            await anyio.to_thread.run_sync(stage.add, source)
        packed = await _gathered(agents, named)
        names = _names_of_folder(agents.options)
        work = partial(sift, packed, named=named, authors=stage.files, originals=kept, names=names)
        sifted = await anyio.to_thread.run_sync(work)
        options = _options(agents.options, stage, network=network)
        sandbox = await Sandbox.open(options)
        sandbox.files.call_also(*agents.files.also, *map(str, agents.options.places))
        await sandbox.folder.unpack(sifted.archive, clear=False)
        env, renamed = {**_CLEAN, "PYTHONPATH": _SITE}, ()
        if options.isolation == "none":
            env = await _on_the_machine(env, sandbox, stage)
            renamed = (*agents.files.also, agents.root)
        yield Verifier(sandbox, {**env, **agents.options.env}, sifted, named.values(), renamed)
    finally:
        with anyio.CancelScope(shield=True):
            if sandbox is not None:
                await sandbox.close()
            await anyio.to_thread.run_sync(stage.close)


def _names_of_folder(session: SandboxOptions) -> dict[str, str]:
    """Return the absolute paths that lead into a verifier's folder like into the agent's."""
    if session.isolation != "bwrap":
        return {}
    whole = dict.fromkeys((GUEST_ROOT, *map(str, session.places)), "")
    return {**whole, **{part: part.lstrip("/") for part in session.parts}}


async def _gathered(agents: Sandbox, named: Mapping[str, str]) -> bytes:
    """Return the outputs as a tar, from a moment at which nothing of the agent's ran.

    Outputs that cannot be read are a `BrokenByAgent`.
    """
    limits = agents.limits
    was_held = await agents.hold()
    try:
        code, packed = await agents.folder.gather(
            list(named.items()), most_bytes=limits.disk_bytes, most_files=limits.files
        )
    finally:
        if not was_held and agents.alive:
            with anyio.CancelScope(shield=True):
                await agents.release()
    if code != 0:
        raise BrokenByAgent("The files to grade cannot be read in the agent's folder.")
    return packed


def _options(session: SandboxOptions, stage: Stage, *, network: bool) -> SandboxOptions:
    """Return the options of a verifier's sandbox: the session's, with the author's files."""
    isolated = session.isolation == "bwrap"
    limits = session.limits
    return replace(
        session,
        hosts=session.hosts if network else AllowList(),
        readonly={**session.readonly, **stage.mounts(GUEST_ROOT, _SITE)} if isolated else {},
        limits=limits.model_copy(update={"disk_bytes": limits.disk_bytes + _ROOM_BYTES}),
        places=(),
        names=session.places,
        in_place=None,
    )


async def _on_the_machine(env: Mapping[str, str], sandbox: Sandbox, stage: Stage) -> dict[str, str]:
    """Write the author's files into an unguarded folder, and return its environment variables."""

    def names() -> list[Path]:
        return [path for path in sorted(stage.files.rglob("*")) if path.is_file()]

    for path in await anyio.to_thread.run_sync(names):
        inside = path.relative_to(stage.files).as_posix()
        try:
            await sandbox.files.write(inside, await anyio.Path(path).read_bytes())
            await sandbox.files.adjust(inside, mode=path.stat().st_mode & 0o777)
        except OSError as exc:
            raise EnvironmentFailed(
                f"The verifier has no room for {inside!r}: {exc.strerror}."
            ) from exc
    return {**env, "HOME": sandbox.root, "PYTHONPATH": str(stage.site)}
