"""What stands for a shell in a template's own process: its calls are done in the session's."""

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from hud_mcp.environment.world import note_agent_data
from hud_mcp.errors import ActionFailed, BrokenByAgent
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.observation import Look, Observation
from hud_mcp.worlds.shell.results import CommandResult, broken_by_agent
from hud_mcp.worlds.shell.verifier import Verifier, VerifierResult, read_json_text
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["StandIn", "StandInVerifier", "calls_of"]

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class StandIn:
    """A shell, seen from a template's process: graders find it as `current_world`.

    What it runs, runs in the session's sandbox, with the agent's rights. It takes the folder's
    name in the author's file for the folder.

    Args:
        call: Calls something in the server's process.
        renamed: Names that only this process has for the folder, and what they are there.
    """

    def __init__(self, call: Call, renamed: Sequence[tuple[str, str]]) -> None:
        self._call = call
        self._renamed = renamed

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        stdin: str = "",
        cwd: object = "",
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command to its end; see `ShellWorld.run`.

        Raises:
            ActionFailed: The folder `cwd` is not there, or the command is none. Nothing ran.
            EnvironmentFailed: The sandbox has ended.

        If this call is cancelled, it kills the command and its processes.
        """
        asked = _renamed(self._there, command, cwd, env)
        done = await self._call("run", {**asked, "timeout_s": timeout_s, "stdin": stdin})
        output = note_agent_data(str(done["output"]))
        return CommandResult(done["exit_code"], output, done["stopped"])

    async def end_processes(self) -> None:
        """Kill everything that runs in the sandbox, so that nothing disturbs the grading."""
        await self._call("end_processes", {})

    @asynccontextmanager
    async def verifier(
        self,
        files: str | PathLike[str] | None = None,
        copy: str | Iterable[str] | Mapping[str, str] = (),
        *,
        originals: Iterable[str] = (),
        network: bool = False,
    ) -> "AsyncGenerator[StandInVerifier]":
        """A fresh sandbox for grading; see `ShellWorld.verifier`."""
        opened = await self._call(
            "open_verifier",
            {
                "files": None if files is None else fspath(files),
                "copy": copy if isinstance(copy, str | Mapping) else list(copy),
                "originals": [originals] if isinstance(originals, str) else list(originals),
                "network": network,
            },
        )
        try:
            yield StandInVerifier(self._call, opened, self._there)
        finally:
            await self._call("close_verifier", {"number": opened["number"]})

    async def act(self, action: Action) -> ActionEffect:
        """Only agents act."""
        raise ActionFailed(f"A template's own process cannot do {action.type!r}.")

    async def observe(self, look: Look) -> Observation:  # noqa: ARG002  # of the protocol
        """Only agents look."""
        raise ActionFailed("A template's own process reads the folder itself.")

    async def close(self) -> None:
        """The session closes it."""

    def broken_by_agent(
        self, exc: BaseException | None, places: Sequence[Path], root: str, *, isolated: bool
    ) -> BrokenByAgent | None:
        """What an error tells that a template met at the folder itself; see `refusals`."""
        return broken_by_agent(exc, places, root, isolated=isolated)

    def _there(self, text: str) -> str:
        for here, there in self._renamed:
            text = text.replace(here, there)
        return text


class StandInVerifier:
    """A verifier, seen from a template's process; `Verifier` says what each method does.

    Args:
        call: Calls something in the server's process.
        opened: What was told of it.
        there: Reads names of the folder that only this process has.

    Attributes:
        root: Its folder, as commands name it.
        missing: Each output that was asked for and is not there.
        left_out: Each part of an output that was not copied.
    """

    def __init__(self, call: Call, opened: Mapping[str, Any], there: Callable[[str], str]) -> None:
        self._call = call
        self._number = opened["number"]
        self._there = there
        self.root = str(opened["root"])
        self.missing: Mapping[str, str] = opened["missing"]
        self.left_out: Mapping[str, str] = opened["left_out"]

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        stdin: str = "",
        cwd: object = "",
        env: Mapping[str, str] | None = None,
        background: bool = False,
    ) -> VerifierResult:
        """Run a command to its end, in the verifier's folder."""
        asked = _renamed(self._there, command, cwd, env)
        done = await self._ask(
            "run", **asked, timeout_s=timeout_s, stdin=stdin, background=background
        )
        note_agent_data(str(done["stdout"]))
        return VerifierResult(**done)

    async def read_text(self, path: object) -> str:
        """A text file's content, with a sign in place of bytes that are not UTF-8."""
        return note_agent_data(str(await self._ask("read_text", path=self._there(str(path)))))

    async def read_json(self, path: object) -> Any:
        """The value that a file of JSON has."""
        return read_json_text(await self.read_text(path), str(path))

    async def read_bytes(self, path: object) -> bytes:
        """A file's content, of at most 16 MiB."""
        text = str(await self._ask("read_bytes", path=self._there(str(path))))
        return note_agent_data(text.encode("latin-1"))

    async def exists(self, path: object) -> bool:
        """Whether there is a file or folder of that name."""
        return bool(await self._ask("exists", path=self._there(str(path))))

    async def _ask(self, how: str, **arguments: Any) -> Any:
        asked = {"number": self._number, "how": how, "arguments": arguments}
        return await self._call("ask_verifier", asked)


def _renamed(
    there: Callable[[str], str],
    command: str | Sequence[str],
    cwd: object,
    env: Mapping[str, str] | None,
) -> dict[str, Any]:
    """A command, its folder and its variables, as the session's process names the folder."""
    words = there(command) if isinstance(command, str) else [there(str(w)) for w in command]
    named = {name: there(value) for name, value in (env or {}).items()}
    return {"command": words, "cwd": there(str(cwd or "")), "env": named}


class _Verifiers:
    """The verifiers of templates in other processes, until they or the shell are closed."""

    def __init__(self, shell: ShellWorld) -> None:
        self._shell = shell
        self._open: dict[int, tuple[Verifier, AsyncExitStack]] = {}
        self._numbers = itertools.count()
        shell.at_close(self.close)

    async def open(self, **options: Any) -> Any:
        held = AsyncExitStack()
        verifier = await held.enter_async_context(self._shell.verifier(**options))
        number = next(self._numbers)
        self._open[number] = verifier, held
        return {
            "number": number,
            "root": verifier.root,
            "missing": dict(verifier.missing),
            "left_out": dict(verifier.left_out),
        }

    async def ask(self, number: int, how: str, arguments: Mapping[str, Any]) -> Any:
        if number not in self._open:
            raise ActionFailed("This verifier is closed. Open another one.")
        verifier, _ = self._open[number]
        if how == "run":
            return asdict(await verifier.run(**arguments))
        if how == "read_text":
            return await verifier.read_text(**arguments)
        if how == "exists":
            return await verifier.exists(**arguments)
        return (await verifier.read_bytes(**arguments)).decode("latin-1")

    async def close_one(self, number: int) -> None:
        _, held = self._open.pop(number, (None, AsyncExitStack()))
        await held.aclose()

    async def close(self) -> None:
        for number in list(self._open):
            await self.close_one(number)


def calls_of(shell: ShellWorld) -> dict[str, Callable[..., Awaitable[Any]]]:
    """What a stand-in calls."""
    verifiers = _Verifiers(shell)

    async def run(**arguments: Any) -> Any:
        done = await shell.run(**arguments)
        return {"exit_code": done.exit_code, "output": done.output, "stopped": done.stopped}

    async def end_processes() -> None:
        await shell.end_processes()

    return {
        "run": run,
        "end_processes": end_processes,
        "open_verifier": verifiers.open,
        "ask_verifier": verifiers.ask,
        "close_verifier": verifiers.close_one,
    }
