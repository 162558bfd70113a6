"""What stands for a shell in a template's own process: its calls are done in the session's."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hud_mcp.action import Action, ActionEffect
from hud_mcp.errors import ActionFailed
from hud_mcp.observation import Look, Observation
from hud_mcp.worlds.shell.world import CommandResult, ShellWorld

__all__ = ["StandIn", "calls_of"]

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

        If this call is cancelled, the command and what it started are killed.
        """
        words = command if isinstance(command, str) else [self._there(str(w)) for w in command]
        done = await self._call(
            "run",
            {
                "command": self._there(words) if isinstance(words, str) else words,
                "timeout_s": timeout_s,
                "stdin": stdin,
                "cwd": self._there(str(cwd or "")),
                "env": {name: self._there(value) for name, value in (env or {}).items()},
            },
        )
        return CommandResult(done["exit_code"], done["output"], done["stopped"])

    async def end_processes(self) -> None:
        """Kill everything that runs in the sandbox, so that nothing disturbs what grades."""
        await self._call("end_processes", {})

    async def act(self, action: Action) -> ActionEffect:
        """Only agents act."""
        raise ActionFailed(f"A template's own process cannot do {action.type!r}.")

    async def observe(self, look: Look) -> Observation:  # noqa: ARG002  # of the protocol
        """Only agents look."""
        raise ActionFailed("A template's own process reads the folder itself.")

    async def close(self) -> None:
        """The session closes it."""

    def _there(self, text: str) -> str:
        for here, there in self._renamed:
            text = text.replace(here, there)
        return text


def calls_of(shell: ShellWorld) -> dict[str, Callable[..., Awaitable[Any]]]:
    """What a stand-in calls."""

    async def run(**arguments: Any) -> Any:
        done = await shell.run(**arguments)
        return {"exit_code": done.exit_code, "output": done.output, "stopped": done.stopped}

    async def end_processes() -> None:
        await shell.end_processes()

    return {"run": run, "end_processes": end_processes}
