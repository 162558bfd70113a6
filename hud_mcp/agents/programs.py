"""Programs that are agents already: each gets its session's MCP server, and nothing else."""

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread
import orjson

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.command import client_configuration, run_agent
from hud_mcp.agents.kind import AgentKind, AgentOptions, Workplace
from hud_mcp.base.child import child_environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidAgent
from hud_mcp.session.caller import session_token

__all__ = ["PROGRAM", "ProgramAgent", "check_program"]

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
    server = {
        "httpUrl": url,
        "headers": {"Authorization": f"Bearer {token}"},
        "trust": True,
    }
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


@asynccontextmanager
async def _open(options: AgentOptions, place: Workplace) -> AsyncGenerator[ProgramAgent]:
    yield ProgramAgent(options.name, url=place.url, token=place.token)


PROGRAM = AgentKind(_open, check=lambda options: check_program(options.name), is_remote=True)
