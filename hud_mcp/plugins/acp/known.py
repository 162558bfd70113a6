"""Agents of the protocol that a package installs, by the names that `acp:` takes."""

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hud_mcp.agents.command import missing_program
from hud_mcp.agents.kind import RunModel
from hud_mcp.agents.programs import CODEX_OFF, GEMINI_TOOLS, SERVER, codex_catalogue
from hud_mcp.errors import InvalidAgent, NotInstalled

__all__ = ["KNOWN", "Start", "check", "named", "start"]


@dataclass(frozen=True)
class Start:
    """The start of one agent.

    Attributes:
        command: The program and its arguments.
        variables: Variables of its own.
        files: Files of its working folder, by their path there.
        home: Files of its home, which it has if a gateway gives its model.
        meta: Metadata of `session/new`.
        mode: The mode of its session, if the agent has it; None for its own choice.
    """

    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, object] = field(default_factory=dict[str, object])
    home: Mapping[str, str] = field(default_factory=dict[str, str])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    mode: str | None = None


@dataclass(frozen=True)
class _Known:
    program: str
    package: str
    needs: str
    start: Callable[[str, RunModel | None, Path], Start]


def _claude(chosen: str, model: RunModel | None, _folder: Path) -> Start:
    variables = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    if model is not None:
        variables["CLAUDE_CODE_MAX_RETRIES"] = "0"
    if chosen:  # its list of models lacks those of others; the second one is always in it
        variables |= {"ANTHROPIC_MODEL": chosen, "ANTHROPIC_CUSTOM_MODEL_OPTION": chosen}
    options: Mapping[str, Any] = {
        "tools": [],
        "settingSources": [],
        "allowDangerouslySkipPermissions": False,  # with it, it refuses to start under root
    }
    # In its own mode a model would judge calls.
    return Start(
        ("claude-agent-acp",), variables, meta={"claudeCode": {"options": options}}, mode="default"
    )


def _codex(chosen: str, model: RunModel | None, folder: Path) -> Start:
    settings: dict[str, Any] = {
        # Else a second model reviews each call, and refuses tools of others.
        "approval_policy": "on-request",
        "approvals_reviewer": "user",
        "web_search": "disabled",
        "features": dict.fromkeys(CODEX_OFF, False),
        **({"model": chosen} if chosen else {}),
    }
    files: dict[str, object] = {}
    home: dict[str, str] = {}
    catalogue = None if model is None else codex_catalogue("codex-acp", "cli")
    if catalogue is not None:
        files["models.json"] = catalogue
        place = json.dumps(str(folder / "models.json"))
        # It is read when the program starts, before any session has settings.
        home[".codex/config.toml"] = f"model_catalog_json = {place}\n"
    variables = {"CODEX_CONFIG": json.dumps(settings), "INITIAL_AGENT_MODE": "read-only"}
    return Start(("codex-acp",), variables, files, home)


def _gemini(chosen: str, model: RunModel | None, _folder: Path) -> Start:
    settings: dict[str, Any] = {
        "context": {"fileName": "none"},
        "tools": {"exclude": list(GEMINI_TOOLS)},
        "privacy": {"usageStatisticsEnabled": False},
    }
    if model is not None:
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        settings["general"] = {"maxAttempts": 1}
    return Start(
        ("gemini", "--acp", *(("--model", chosen) if chosen else ()), "--extensions", "none"),
        {"GEMINI_CLI_TRUST_WORKSPACE": "true"},  # it reads no settings here otherwise
        {".gemini/settings.json": settings},
        mode="default",
    )


def _opencode(chosen: str, model: RunModel | None, _folder: Path) -> Start:
    settings: dict[str, Any] = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"*": "deny", f"{SERVER}_*": "ask"},
    }
    if model is not None:
        if not (chosen or model.name):
            raise InvalidAgent("OpenCode needs a model's name; give --model PROVIDER:MODEL.")
        entry: dict[str, Any] = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": model.key},
            "models": {chosen or model.name: {}},
        }
        settings["provider"] = {SERVER: entry}
        chosen = f"{SERVER}/{chosen or model.name}"
    if chosen:
        settings["model"] = settings["small_model"] = chosen
    variables = {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        # Without a network, a session would wait for the list of all models.
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }
    return Start(("opencode", "acp"), variables)


_NODE = "Node.js 22 or later: npm installs an older one for older Nodes, without a word"
KNOWN: Mapping[str, _Known] = {
    "claude": _Known("claude-agent-acp", "@agentclientprotocol/claude-agent-acp", _NODE, _claude),
    "codex": _Known("codex-acp", "@agentclientprotocol/codex-acp", "", _codex),
    "gemini": _Known("gemini", "@google/gemini-cli", "", _gemini),
    "opencode": _Known("opencode", "opencode-ai", "", _opencode),
}
"""The agents, as of versions 0.101, 2.6, 0.61 and 1.18."""


def named(name: str) -> tuple[str | None, str]:
    """Return the known name in an agent's name, and its model; or None and a command."""
    said = name.partition(":")[2].strip()
    kind, _, chosen = said.partition(":")
    return (kind, chosen) if kind in KNOWN else (None, said)


def check(name: str) -> None:
    """Check that an agent's program is installed.

    Raises:
        NotInstalled: The library of the protocol is missing.
        InvalidAgent: It is not; the text says how to install it.
    """
    if find_spec("acp") is None:
        raise NotInstalled(
            f"--agent {name} needs one more library: pip install 'hud-mcp[acp]'. Nothing was done."
        )
    kind, said = named(name)
    if kind is not None:
        known = KNOWN[kind]
        if shutil.which(known.program) is None:
            needs = f" It needs {known.needs}." if known.needs else ""
            raise InvalidAgent(
                f"--agent {name} runs the program {known.program}, which is not on PATH. Install "
                f"it: npm install -g {known.package}.{needs}"
            )
        return
    if not said:
        raise InvalidAgent(
            f"--agent {name} names no agent. Write acp:{', acp:'.join(KNOWN)}, or acp: and the "
            "command of an agent that speaks the Agent Client Protocol."
        )
    try:
        missing = missing_program(said) or (None if shlex.split(said) else said)
    except ValueError as exc:
        raise InvalidAgent(f"--agent {name} is no command: {exc}.") from None
    if missing is not None:
        raise InvalidAgent(
            f"--agent {name} begins with {missing!r}, but the shell finds no such program. "
            f"Correct the name, or write one of {', '.join(KNOWN)}."
        )


def start(name: str, model: RunModel | None, folder: Path) -> Start:
    """Return the start of a named agent in its folder, with the model that a gateway gives."""
    kind, said = named(name)
    if kind is None:
        return Start(("/bin/sh", "-c", said))
    chosen = said or ("" if model is None else model.name)
    return KNOWN[kind].start(chosen, model, folder)
