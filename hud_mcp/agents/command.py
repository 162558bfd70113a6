"""An agent that is any command: it finds in its environment how to reach its task."""

import os
import subprocess
import tempfile
from pathlib import Path

import anyio
import orjson

from hud_mcp.agents.agent import Agent
from hud_mcp.task import Task

__all__ = ["CommandAgent"]

_OUTPUT_LINES = 400
_LINE_CHARS = 2_000


class CommandAgent:
    """Runs a shell command for each task.

    The command's environment has `HUD_MCP_CONFIG` (the path of an MCP client
    configuration, `{"mcpServers": {"hud-mcp": {"type": "http", "url", "headers"}}}`),
    `HUD_MCP_URL`, `HUD_MCP_TOKEN`, `HUD_MCP_SESSION` (the session that waits for it),
    `HUD_MCP_PROMPT` and `HUD_MCP_TASK`.

    Args:
        command: Given to the shell.
        url: Where the server listens.
        token: Its bearer token.
        timeout_s: After this it is killed, with everything that it started.
    """

    def __init__(self, command: str, *, url: str, token: str, timeout_s: float) -> None:
        self.name = command
        self._command = command
        self._url = url
        self._token = token
        self._timeout_s = timeout_s

    async def solve(self, agent: Agent, task: Task) -> list[str]:
        """Run the command and wait for it.

        Returns:
            Lines for the record: its exit status, then its output.
        """
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            config = Path(folder) / "mcp.json"
            config.write_bytes(orjson.dumps(self._configuration()))
            config.chmod(0o600)
            environment = {
                **os.environ,
                "HUD_MCP_CONFIG": str(config),
                "HUD_MCP_URL": self._url,
                "HUD_MCP_TOKEN": self._token,
                "HUD_MCP_SESSION": agent.session,
                "HUD_MCP_PROMPT": agent.prompt,
                "HUD_MCP_TASK": task.id,
            }
            status, output = await self._run(environment)
        lines = output.decode(errors="replace").splitlines()
        dropped = max(0, len(lines) - _OUTPUT_LINES)
        if dropped:
            lines = [f"… {dropped} earlier lines", *lines[-_OUTPUT_LINES:]]
        return [f"agent command: {status}", *(f"agent: {line[:_LINE_CHARS]}" for line in lines)]

    def _configuration(self) -> dict[str, object]:
        server = {
            "type": "http",
            "url": self._url,
            "headers": {"Authorization": f"Bearer {self._token}"},
        }
        return {"mcpServers": {"hud-mcp": server}}

    async def _run(self, environment: dict[str, str]) -> tuple[str, bytes]:
        output = bytearray()
        process = await anyio.open_process(
            self._command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            with anyio.move_on_after(self._timeout_s) as scope:
                async with process:
                    if process.stdout is not None:
                        async for chunk in process.stdout:
                            output += chunk
                    await process.wait()
        finally:
            _kill_group(process.pid)
        if scope.cancelled_caught:
            return f"killed after {self._timeout_s:g} s", bytes(output)
        return f"exit status {process.returncode}", bytes(output)


def _kill_group(leader: int) -> None:
    """Kill whatever the command left behind."""
    if not hasattr(os, "killpg"):
        return
    import signal  # noqa: PLC0415  # SIGKILL does not exist where killpg does not

    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return
