"""The shell of a session as its template sees it in its own process: calls go to the server."""

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from hud_mcp.environment.agent_data import note_agent_data
from hud_mcp.errors import ActionFailed, BrokenByAgent
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.observation import Look, Observation
from hud_mcp.worlds.shell.results import CommandResult, broken_by_agent
from hud_mcp.worlds.shell.verifier import Verifier, VerifierResult, read_json_text
from hud_mcp.worlds.shell.world import ShellWorld

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class StandIn:
    """A shell, seen from a template's process; graders get it as `current_world`.

    Commands run in the session's sandbox, with the agent's rights. The folder's name in the
    author's file means the folder there.
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
        """Run a command until it ends; see `ShellWorld.run`.

        If this call is cancelled, it kills the command and its processes. A missing folder `cwd`,
        or a malformed command, is ActionFailed, and nothing ran. EnvironmentFailed says that the
        sandbox ended.
        """
        asked = _renamed(self._there, command, cwd, env)
        done = await self._call("run", {**asked, "timeout_s": timeout_s, "stdin": stdin})
        output = note_agent_data(str(done["output"]))
        return CommandResult(done["exit_code"], output, done["stopped"])

    async def end_processes(self) -> None:
        """Kill all processes of the sandbox, so that none disturbs the grading."""
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
        """Open a fresh sandbox for grading; see `ShellWorld.verifier`."""
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
        """Raise: only agents act."""
        raise ActionFailed(f"A template's own process cannot do {action.type!r}.")

    async def observe(self, look: Look) -> Observation:  # noqa: ARG002  # part of the protocol
        """Raise: only agents look."""
        raise ActionFailed("A template's own process reads the folder itself.")

    async def close(self) -> None:
        """Do nothing: the session closes the shell."""

    def broken_by_agent(
        self, exc: BaseException | None, places: Sequence[Path], root: str, *, isolated: bool
    ) -> BrokenByAgent | None:
        """Return the agent's fault in an error that a template met at the folder."""
        return broken_by_agent(exc, places, root, isolated=isolated)

    def _there(self, text: str) -> str:
        for here, there in self._renamed:
            text = text.replace(here, there)
        return text


class StandInVerifier:
    """A verifier, seen from a template's process; `Verifier` describes its methods."""

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
        """Run a command in the verifier's folder until it ends."""
        asked = _renamed(self._there, command, cwd, env)
        done = await self._ask(
            "run", **asked, timeout_s=timeout_s, stdin=stdin, background=background
        )
        note_agent_data(str(done["stdout"]))
        return VerifierResult(**done)

    async def read_text(self, path: object) -> str:
        """Return a text file's content, with a sign in place of bytes that are not UTF-8."""
        return note_agent_data(str(await self._ask("read_text", path=self._there(str(path)))))

    async def read_json(self, path: object) -> Any:
        """Return the value in a JSON file."""
        return read_json_text(await self.read_text(path), str(path))

    async def read_bytes(self, path: object) -> bytes:
        """Return a file's content, of at most 16 MiB."""
        text = str(await self._ask("read_bytes", path=self._there(str(path))))
        return note_agent_data(text.encode("latin-1"))

    async def exists(self, path: object) -> bool:
        """Whether a file or folder of that name exists."""
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
    """Translate a command, its folder and its variables to the names of the session's process."""
    words = there(command) if isinstance(command, str) else [there(str(w)) for w in command]
    named = {name: there(value) for name, value in (env or {}).items()}
    return {"command": words, "cwd": there(str(cwd or "")), "env": named}


class _Verifiers:
    """The open verifiers of templates in other processes."""

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
    """Return the functions that a stand-in calls."""
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
