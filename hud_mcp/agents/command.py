"""Programs as agents: any command, and those that are agents already."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread
import orjson

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.kind import AgentKind
from hud_mcp.base.process import child_environment, ended_in_order
from hud_mcp.base.reaper import reaped
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError, InvalidAgent
from hud_mcp.sandbox.commands import Output
from hud_mcp.session.caller import session_token

_KEPT_BYTES = 1024 * 1024
"""The kept bytes of a command's output: the first half and the last half."""
_END_S = 10.0
"""The time that a killed command and its descendants may take to end."""
_LAST_LINES = 5
_LAST_CHARS = 400
"""The last output of a command that died."""
_OUTPUT_LINES = 400
_LINE_CHARS = 2_000
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PLAIN = re.compile(r"[\w./+@%:,-]+")
"""A word that the shell does not change."""


class CommandDied(HudMcpError):
    """An agent's command ended with an exit status that is not 0; the text has its last lines."""


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

    Each command gets the token of its own session, made from the run's token.
    """

    is_remote = True

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        url: str,
        token: str,
        folder: Path | None = None,
        title: str = "command",
    ) -> None:
        self.name = command if isinstance(command, str) else shlex.join(command)
        self._command = command
        self._title = title
        self._url = url
        self._token = token
        self._folder = folder

    async def solve(self, agent: Agent, task: Task) -> None:
        """Run the command and wait for it; its exit status and its output are logged.

        Raises:
            CommandDied: Its exit status is not 0.

        If this call is cancelled, the command is killed, with everything that it started.
        """
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            config = Path(folder) / "mcp.json"
            token = session_token(self._token, agent.session)
            config.write_bytes(orjson.dumps(client_configuration(self._url, token)))
            config.chmod(0o600)
            environment = {
                **child_environment(),
                "HUD_MCP_CONFIG": str(config),
                "HUD_MCP_URL": self._url,
                "HUD_MCP_TOKEN": token,
                "HUD_MCP_SESSION": agent.session,
                "HUD_MCP_PROMPT": agent.prompt,
                "HUD_MCP_TASK": task.id,
            }
            await run_agent(
                self._command, environment, agent, folder=self._folder, title=self._title
            )


def client_configuration(url: str, token: str) -> dict[str, object]:
    """Return the configuration of an MCP client with one server, in the usual form."""
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
    return {"mcpServers": {"hud-mcp": server}}


async def run_agent(
    command: str | Sequence[str],
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
    # A reaper ends every descendant, also one that has left the session of processes.
    shell = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    read_end, write_end = os.pipe()
    output = Output(
        read_end, kept_bytes=_KEPT_BYTES, most_bytes=sys.maxsize, on_overflow=lambda: None
    )
    status = "killed"
    try:
        try:
            process = await anyio.open_process(
                reaped(shell), stdin=stdin, stdout=write_end, stderr=write_end, cwd=folder,
                env=environment, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(write_end)
        async with ended_in_order(process, within_s=_END_S):
            await process.wait()
        status = _shown_status(process.returncode)
    finally:
        output.drain()  # what it left behind may hold the pipe open, and is not waited for
        output.close()
        _log(agent, f"{title}: {status}", output.taken())
    if process.returncode:
        raise CommandDied(f"Its {title} ended with {status}{_last_said(output.taken())}")


def _shown_status(status: int | None) -> str:
    """Return an exit status as shells show it: 128 and the signal's number after a kill."""
    number = status or 0
    return f"exit status {number if number >= 0 else 128 - number}"


def _last_said(output: bytes) -> str:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines()]
    said = " / ".join([line for line in lines if line][-_LAST_LINES:])
    return f" and said last: {said[-_LAST_CHARS:]}" if said else ", and said nothing."


def _log(agent: Agent, status: str, output: bytes) -> None:
    lines = output.decode(errors="replace").splitlines()
    dropped = max(0, len(lines) - _OUTPUT_LINES)
    agent.log(f"agent {status}")
    if dropped:
        agent.log(f"agent: … {dropped} earlier lines")
    for line in lines[dropped:]:
        agent.log(f"agent: {line[:_LINE_CHARS]}")


_SERVER = "hud-mcp"
_TOLD = (
    f"\n\nWork on this task with the tools of the MCP server {_SERVER} alone. Its session has "
    "begun: look with `step`, act with `step` or `act`, and submit the final answer with "
    "`response`. Nobody reads what you write beside these calls.\n"
)
_SECRET = "HUD_MCP_TOKEN"  # noqa: S105  # the name of a variable


@dataclass(frozen=True)
class _Start:
    arguments: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class _Program:
    program: str
    package: str
    start: Callable[[str, str], _Start]


def _claude(url: str, token: str) -> _Start:
    return _Start(
        (
            *("--print", "--strict-mcp-config", "--mcp-config", "mcp.json"),
            *("--tools", "", "--allowedTools", f"mcp__{_SERVER}", "--permission-mode", "dontAsk"),
            *("--setting-sources", "", "--disable-slash-commands", "--no-session-persistence"),
        ),
        files={"mcp.json": client_configuration(url, token)},
    )


_CODEX_OFF = (
    "shell_tool", "unified_exec", "apps", "plugins", "goals", "multi_agent", "image_generation",
    "view_image", "browser_use", "computer_use", "skill_search", "sleep_tool", "tool_suggest",
    "workspace_dependencies", "hooks",
)  # fmt: skip
"""Its own abilities in version 0.169. `--disable` would refuse to start another version."""


def _codex(url: str, token: str) -> _Start:
    server = f"mcp_servers.{_SERVER}"
    settings = {
        f"{server}.url": url,
        f"{server}.bearer_token_env_var": _SECRET,
        f"{server}.default_tools_approval_mode": "approve",
        "approval_policy": "never",
        "web_search": "disabled",
    }
    options = [part for name, value in settings.items() for part in ("-c", f'{name}="{value}"')]
    options += [part for name in _CODEX_OFF for part in ("-c", f"features.{name}=false")]
    return _Start(
        (
            *("exec", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config"),
            *("--ignore-rules", "--sandbox", "read-only", "--color", "never", *options),
            "-",
        ),
        variables={_SECRET: token},
    )


_GEMINI_TOOLS = (
    "activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode", "glob",
    "google_web_search", "grep_search", "invoke_agent", "list_background_processes",
    "list_directory", "read_background_output", "read_file", "read_many_files", "replace",
    "run_shell_command", "save_memory", "update_topic", "web_fetch", "write_file", "write_todos",
)  # fmt: skip
"""Its own tools in version 0.61; an allow-list would leave out the session's too."""


def _gemini(url: str, token: str) -> _Start:
    server = {"httpUrl": url, "headers": {"Authorization": f"Bearer {token}"}, "trust": True}
    settings = {
        "mcpServers": {_SERVER: server},
        "mcp": {"allowed": [_SERVER]},
        "tools": {"exclude": list(_GEMINI_TOOLS)},
        "context": {"fileName": "none"},
        "privacy": {"usageStatisticsEnabled": False},
    }
    return _Start(
        (
            *("--allowed-mcp-server-names", _SERVER, "--approval-mode", "yolo", "--skip-trust"),
            *("--extensions", "none", "--prompt", "Work on the task above until it is answered."),
        ),
        variables={"GEMINI_CLI_TRUST_WORKSPACE": "true"},  # it reads no other settings here
        files={".gemini/settings.json": settings},
    )


_PROGRAMS = {
    "claude-code": _Program("claude", "@anthropic-ai/claude-code", _claude),
    "codex": _Program("codex", "@openai/codex", _codex),
    "gemini": _Program("gemini", "@google/gemini-cli", _gemini),
}
"""The programs, by the names that `--agent` takes."""


def check_program(name: str) -> None:
    """Check that a program is installed.

    Raises:
        InvalidAgent: It is not on PATH; the text says how to install it.
    """
    known = _PROGRAMS[name.partition(":")[0]]
    if shutil.which(known.program) is None:
        raise InvalidAgent(
            f"--agent {name} runs the program {known.program}, which is not on PATH. Install it: "
            f"npm install -g {known.package}"
        )


class ProgramAgent:
    """An agent that runs a program such as `codex`, or `codex:MODEL`, for each task.

    The program gets an empty folder, and the token of its own session.
    """

    is_remote = True

    def __init__(self, name: str, *, url: str, token: str) -> None:
        self.name = name
        self._url = url
        self._token = token

    async def solve(self, agent: Agent, task: Task) -> None:  # noqa: ARG002  # every solver takes it
        """Run the program and wait for it; its exit status and its output are logged.

        Raises:
            CommandDied: Its exit status is not 0.
            InvalidAgent: The program is not there any more.

        If this call is cancelled, the program is killed, with everything that it started.
        """
        check_program(self.name)
        kind, _, model = self.name.partition(":")
        known = _PROGRAMS[kind]
        start = known.start(self._url, session_token(self._token, agent.session))
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as place:
            folder = Path(place) / "work"
            await anyio.to_thread.run_sync(_write, folder, start.files)
            prompt = Path(place) / "prompt"
            prompt.write_text(f"{agent.prompt}{_TOLD}", encoding="utf-8")
            chosen = ("--model", model) if model else ()
            first = start.arguments[:1] if kind == "codex" else ()
            command = [known.program, *first, *chosen, *start.arguments[len(first) :]]
            with prompt.open("rb") as said:
                await run_agent(
                    command,
                    {**child_environment(), **start.variables},
                    agent,
                    folder=folder,
                    title=known.program,
                    stdin=said.fileno(),
                )


def _write(folder: Path, files: Mapping[str, object]) -> None:
    folder.mkdir(mode=0o700)
    for name, content in files.items():
        (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(content))


PROGRAM = AgentKind(
    lambda options, place: nullcontext(
        ProgramAgent(options.name, url=place.url, token=place.token)
    ),
    check=lambda options: check_program(options.name),
    is_remote=True,
)
