"""Any command as an agent."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.kind import ModelGateway, RunModel, Workplace
from hud_mcp.agents.surroundings import Surroundings
from hud_mcp.base.process import ended_in_order
from hud_mcp.base.reaper import reaped
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.sandbox.commands import Output
from hud_mcp.session.caller import session_token

_KEPT_BYTES = 1024 * 1024
"""The kept bytes of a command's output: the first half and the last half."""
_END_S = 10.0
"""The time that a killed command and its descendants may take to end."""
_LAST_LINES, _LAST_CHARS = 5, 400
"""The last output of a command that died."""
_OUTPUT_LINES, _LINE_CHARS = 400, 2_000
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PLAIN = re.compile(r"[\w./+@%:,-]+")
"""A word that the shell does not change."""


class CommandDied(HudMcpError):
    """An agent's command ended with an exit status that is not 0; the text has its last lines."""


@asynccontextmanager
async def given_model(
    gateway: ModelGateway | None, agent: Agent
) -> AsyncGenerator[RunModel | None]:
    """Give a gateway's model to a program while the block runs it.

    Raises:
        HudMcpError: The model was refused to it, and it ended without an answer.
    """
    if gateway is None:
        yield None
        return
    async with gateway.opened(agent, agent.record) as model:
        try:
            yield model
        except CommandDied:
            if model.refused is None or not await agent.is_open():
                raise
    if model.refused is not None and await agent.is_open():
        raise model.refused


def command_name(command: str, folder: Path) -> str:
    """Return the name of a command: its program, and the file or module that this runs.

    Its other words may be secrets, and lists of runs show the name.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    while words and (_ASSIGNMENT.match(words[0]) or words[0] == "env"):
        del words[0]
    if not words:
        return "a command"
    program = Path(words[0]).name
    if program.startswith("python") and words[1:2] == ["-m"]:
        return " ".join([program, *words[1:3]])
    ran = next((Path(word).name for word in words[1:] if (folder / word).is_file()), None)
    return f"{program} {ran}" if ran else program


def missing_program(command: str) -> str | None:
    """Return a command's program if the shell does not find it.

    Return None if it is found, or if only the shell can tell what it would run.
    """
    program = next(iter(command.split()), "")
    if os.name != "posix" or not _PLAIN.fullmatch(program):
        return None
    looking = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", program]
    found = subprocess.run(looking, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603  # the user's own word
    return program if found.returncode else None


class CommandAgent:
    """An agent that runs a command for each task: a line for the shell, or a list of arguments.

    The command's environment has `HUD_MCP_CONFIG` (the path of an MCP client configuration,
    `{"mcpServers": {"hud-mcp": {"type": "http", "url", "headers"}}}`), `HUD_MCP_URL`,
    `HUD_MCP_TOKEN` (which opens the session that waits for it, and nothing else), `HUD_MCP_SESSION`
    (that session's id), `HUD_MCP_PROMPT` and `HUD_MCP_TASK`.

    Each command gets the token of its own session, made from the run's token. A job with a gateway
    gives it a model's address and key, too; the provider's own key is left out.
    """

    is_remote = True

    def __init__(
        self,
        command: str | Sequence[str],
        place: Workplace,
        *,
        folder: Path | None = None,
        title: str = "command",
    ) -> None:
        self.name = command if isinstance(command, str) else shlex.join(command)
        self._command = command
        self._title = title
        self._place = place
        self._folder = folder

    async def solve(self, agent: Agent, task: Task) -> None:
        """Run the command and wait for it; its exit status and its output are logged.

        Raises:
            CommandDied: Its exit status is not 0.

        If this call is cancelled, the command is killed, with everything that it started.
        """
        url, token = self._place.url, session_token(self._place.token, agent.session)
        async with given_model(self._place.gateway, agent) as model:
            with Surroundings(model, self._place.note) as here:
                environment = {
                    **here.variables,
                    "HUD_MCP_CONFIG": str(here.write("mcp.json", client_configuration(url, token))),
                    "HUD_MCP_URL": url,
                    "HUD_MCP_TOKEN": token,
                    "HUD_MCP_SESSION": agent.session,
                    "HUD_MCP_PROMPT": agent.prompt,
                    "HUD_MCP_TASK": task.id,
                }
                line = self._command
                command = ["/bin/sh", "-c", line] if isinstance(line, str) else line
                await run_agent(
                    await anyio.to_thread.run_sync(here.command, command, self._folder),
                    environment,
                    agent,
                    folder=self._folder,
                    title=self._title,
                )


def client_configuration(url: str, token: str) -> dict[str, object]:
    """Return the configuration of an MCP client with one server, in the usual form."""
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
    return {"mcpServers": {"hud-mcp": server}}


async def run_agent(
    command: Sequence[str],
    environment: Mapping[str, str],
    agent: Agent,
    *,
    folder: Path | None,
    title: str,
    stdin: int = subprocess.DEVNULL,
) -> None:
    """Run a program that works on a task; its exit status and its output are logged.

    Raises:
        CommandDied: Its exit status is not 0.

    The call ends when the program ends. Everything that the program leaves behind is killed, also
    if this call is cancelled.
    """
    read_end, write_end = os.pipe()
    output = Output(
        read_end, kept_bytes=_KEPT_BYTES, most_bytes=sys.maxsize, on_overflow=lambda: None
    )
    status = "killed"
    try:
        try:
            # A reaper ends every descendant, also one that has left the session of processes.
            process = await anyio.open_process(
                reaped(command), stdin=stdin, stdout=write_end, stderr=write_end, cwd=folder,
                env=environment, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(write_end)
        async with ended_in_order(process, within_s=_END_S):
            await process.wait()
        status = shown_status(process.returncode)
    finally:
        output.drain()  # what it left behind may hold the pipe open, and is not waited for
        output.close()
        log_output(agent, f"{title}: {status}", output.taken())
    if process.returncode:
        raise CommandDied(f"Its {title} ended with {status}{last_said(output.taken())}")


def shown_status(status: int | None) -> str:
    """Return an exit status as shells show it: 128 and the signal's number after a kill."""
    number = status or 0
    return f"exit status {number if number >= 0 else 128 - number}"


def last_said(output: bytes) -> str:
    """Return the last words of a program that died, as the end of a sentence."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines()]
    said = " / ".join([line for line in lines if line][-_LAST_LINES:])
    return f" and said last: {said[-_LAST_CHARS:]}" if said else ", and said nothing."


def log_output(agent: Agent, status: str, output: bytes) -> None:
    """Log the end of an agent's program, and its output."""
    lines = output.decode(errors="replace").splitlines()
    dropped = max(0, len(lines) - _OUTPUT_LINES)
    agent.log(f"agent {status}")
    if dropped:
        agent.log(f"agent: … {dropped} earlier lines")
    for line in lines[dropped:]:
        agent.log(f"agent: {line[:_LINE_CHARS]}")
