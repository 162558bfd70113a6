"""Programs that are agents already: Claude Code, Codex and Gemini CLI."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import anyio.to_thread

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.command import client_configuration, given_model, run_agent
from hud_mcp.agents.kind import AgentKind, RunModel, Workplace
from hud_mcp.agents.surroundings import Surroundings
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidAgent
from hud_mcp.session.caller import session_token

SERVER = "hud-mcp"
UNREAD = "Nobody reads what you write beside these calls."
TOLD = (
    f"\n\nWork on this task with the tools of the MCP server {SERVER} alone. Its session has "
    "begun: look with `step`, act with `step` or `act`, and submit the final answer with "
    f"`response`. {UNREAD}\n"
)
_SECRET = "HUD_MCP_TOKEN"  # noqa: S105  # the name of a variable


@dataclass(frozen=True)
class _Setup:
    url: str
    token: str
    model: RunModel | None
    folder: Path


@dataclass(frozen=True)
class _Start:
    arguments: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class _Program:
    program: str
    package: str
    start: Callable[[_Setup], _Start]


_CLAUDE = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",  # it asks for titles, too
    "CLAUDE_CODE_MAX_RETRIES": "0",  # the gateway tries again, by the provider's own hints
}


def _claude(setup: _Setup) -> _Start:
    return _Start(
        (
            *("--print", "--strict-mcp-config", "--mcp-config", "mcp.json"),
            *("--tools", "", "--allowedTools", f"mcp__{SERVER}", "--permission-mode", "dontAsk"),
            *("--setting-sources", "", "--disable-slash-commands", "--no-session-persistence"),
        ),
        variables={} if setup.model is None else _CLAUDE,
        files={"mcp.json": client_configuration(setup.url, setup.token)},
    )


CODEX_OFF = (
    "shell_tool", "unified_exec", "apps", "plugins", "goals", "multi_agent", "image_generation",
    "view_image", "browser_use", "computer_use", "skill_search", "sleep_tool", "tool_suggest",
    "workspace_dependencies", "hooks",
)  # fmt: skip
"""Its own abilities in version 0.169. `--disable` would refuse to start another version."""


def _codex(setup: _Setup) -> _Start:
    server = f"mcp_servers.{SERVER}"
    settings = {
        f"{server}.url": setup.url,
        f"{server}.bearer_token_env_var": _SECRET,
        f"{server}.default_tools_approval_mode": "approve",
        "approval_policy": "never",
        "web_search": "disabled",
    }
    options = [part for name, value in settings.items() for part in ("-c", f'{name}="{value}"')]
    options += [part for name in CODEX_OFF for part in ("-c", f"features.{name}=false")]
    files: dict[str, object] = {}
    if setup.model is not None:
        # It reads no variable with an address, and tries a WebSocket at its own provider's.
        provider = (
            f'name="hud-mcp",base_url="{setup.model.url}/v1",env_key="OPENAI_API_KEY",'
            'wire_api="responses",request_max_retries=0,stream_max_retries=1'
        )
        options += ["-c", f"model_providers.{SERVER}={{{provider}}}"]
        options += ["-c", f'model_provider="{SERVER}"']
        if (catalogue := codex_catalogue("codex")) is not None:
            files["models.json"] = catalogue
            options += ["-c", f'model_catalog_json="{setup.folder / "models.json"}"']
    return _Start(
        (
            *("exec", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config"),
            *("--ignore-rules", "--sandbox", "read-only", "--color", "never", *options),
            "-",
        ),
        variables={_SECRET: setup.token},
        files=files,
    )


_CODEX_DIRECT: Mapping[str, Any] = {
    "tool_mode": "direct",
    "use_responses_lite": False,
    "supports_search_tool": False,
    "apply_patch_tool_type": None,
    "experimental_supported_tools": [],
}
"""A model's entry in the catalogue of version 0.171. Else it calls tools from a program of its own,
by ids that no reply of the model has."""
_ASK_S = 20.0


@cache
def codex_catalogue(program: str, *words: str) -> object | None:
    """Return Codex's own catalogue, with models that call tools by themselves; None if it has none.

    Source: `codex debug models`.
    """
    command = [shutil.which(program) or program, *words, "debug", "models"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_ASK_S)  # noqa: S603  # the program that PATH names
        found: dict[str, Any] = json.loads(done.stdout)
        entries: list[dict[str, Any]] = found["models"]
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return None
    for entry in entries:
        entry.update(_CODEX_DIRECT)
        entry.pop("multi_agent_version", None)
    return found


GEMINI_TOOLS = (
    "activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode", "glob",
    "google_web_search", "grep_search", "invoke_agent", "list_background_processes",
    "list_directory", "read_background_output", "read_file", "read_many_files", "replace",
    "run_shell_command", "save_memory", "update_topic", "web_fetch", "write_file", "write_todos",
)  # fmt: skip
"""Its own tools in version 0.61; an allow-list would leave out the session's too."""


def _gemini(setup: _Setup) -> _Start:
    server = {
        "httpUrl": setup.url,
        "headers": {"Authorization": f"Bearer {setup.token}"},
        "trust": True,
    }
    settings: dict[str, object] = {
        "mcpServers": {SERVER: server},
        "mcp": {"allowed": [SERVER]},
        "tools": {"exclude": list(GEMINI_TOOLS)},
        "context": {"fileName": "none"},
        "privacy": {"usageStatisticsEnabled": False},
    }
    if setup.model is not None:
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        settings["general"] = {"maxAttempts": 1}
    return _Start(
        (
            *("--allowed-mcp-server-names", SERVER, "--approval-mode", "yolo", "--skip-trust"),
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

    def __init__(self, name: str, place: Workplace) -> None:
        self.name = name
        self._place = place

    async def solve(self, agent: Agent, task: Task) -> None:  # noqa: ARG002  # every solver takes it
        """Run the program and wait for it; its exit status and its output are logged.

        Raises:
            CommandDied: Its exit status is not 0.
            InvalidAgent: The program is not there any more.
            HudMcpError: Its model was refused to it, and it ended without an answer.

        If this call is cancelled, the program is killed, with everything that it started.
        """
        check_program(self.name)
        async with given_model(self._place.gateway, agent) as model:
            with Surroundings(model, self._place.note) as here:
                command, more = await anyio.to_thread.run_sync(
                    self._prepared, here, model, session_token(self._place.token, agent.session)
                )
                prompt = here.folder / "prompt"
                prompt.write_text(f"{agent.prompt}{TOLD}", encoding="utf-8")
                with prompt.open("rb") as said:
                    await run_agent(
                        await anyio.to_thread.run_sync(here.command, command, here.folder / "work"),
                        {**here.variables, **more},
                        agent,
                        folder=here.folder / "work",
                        title=command[0],
                        stdin=said.fileno(),
                    )

    def _prepared(
        self, here: Surroundings, model: RunModel | None, token: str
    ) -> tuple[list[str], Mapping[str, str]]:
        """Write the program's files; return its command, and variables of its own."""
        kind, _, chosen = self.name.partition(":")
        known = _PROGRAMS[kind]
        folder = here.folder / "work"
        start = known.start(_Setup(self._place.url, token, model, folder))
        folder.mkdir(mode=0o700)
        for name, content in start.files.items():
            here.write(f"work/{name}", content)
        chosen = chosen or ("" if model is None else model.name)
        named = ("--model", chosen) if chosen else ()
        first = start.arguments[:1] if kind == "codex" else ()
        return [known.program, *first, *named, *start.arguments[len(first) :]], start.variables


PROGRAM = AgentKind(
    lambda options, place: nullcontext(ProgramAgent(options.name, place)),
    check=lambda options: check_program(options.name),
    is_remote=True,
)
