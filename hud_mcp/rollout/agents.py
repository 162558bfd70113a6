"""Which agent a name means: one that is built in, one in Python, or what to use in its place."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.agents.command import missing_program
from hud_mcp.agents.given import (
    GivenAgent,
    is_reference,
    lasting_reference,
    read_agent,
    reference_of,
)
from hud_mcp.agents.ready import READY, check_ready, is_ready
from hud_mcp.errors import HudMcpError, InvalidAgent, did_you_mean
from hud_mcp.plugins.models.job.options import PROVIDERS, ModelOptions
from hud_mcp.rollout.agent_process import check_reference
from hud_mcp.rollout.options import RunOptions
from hud_mcp.values.option import read_options

__all__ = ["BUILT_IN", "agent_options", "check_command", "options_of_agent"]

BUILT_IN = ("oracle", "nop", "random", "human")
"""Agents that have a name."""

_PROGRAMS = {"claude": "claude-code", "gpt": "codex", "chatgpt": "codex", "openai": "codex"}
"""What people call a model, and the program of its maker that works on tasks."""


async def agent_options(name: str, of_model: Mapping[str, Any] | None = None) -> RunOptions:
    """Return how a job is run by an agent that is named.

    Args:
        name: One of `BUILT_IN`; a program of `READY`, with a model after a colon or without; a
            model, as `PROVIDER:MODEL`; or the place of one in Python, which a process of its own
            looks at.
        of_model: The options of a model, by their names; the name must be a model's then.

    Raises:
        InvalidAgent: There is no such agent; the text says what to write.
    """
    if ":" in name and name.partition(":")[0] in PROVIDERS:
        return RunOptions(model=_model_options(name, of_model or {}))
    if name in BUILT_IN:
        return RunOptions(agent=name)
    if is_ready(name):
        check_ready(name)
        return RunOptions(agent=name)
    if is_reference(name):
        await check_reference(name)
        return RunOptions(agent_python=lasting_reference(name))
    raise InvalidAgent(_unknown(name))


async def options_of_agent(given: Any, *, isolated: bool) -> tuple[RunOptions, GivenAgent | None]:
    """Return how a job is run by the agent of a program; and the agent, if it works here.

    Args:
        given: An agent's name, a model's as `provider:name`, a model's options, or an agent in
            Python.
        isolated: Whether that has a process of its own.

    Raises:
        InvalidAgent: It cannot work; the text says what to write.
    """
    if isinstance(given, ModelOptions):
        return RunOptions(model=given), None
    if isinstance(given, str):
        return await agent_options(given), None
    if not isolated or given is None:
        agent = read_agent(given)
        return RunOptions(agent_object=agent.name), agent
    read_agent(given)
    reference = reference_of(given)
    await check_reference(reference)
    return RunOptions(agent_python=reference), None


def check_command(command: str) -> None:
    """Check that the shell finds the program of `agent_command`.

    Raises:
        InvalidAgent: It does not, or the command is empty.
    """
    if not command.strip():
        raise InvalidAgent("--agent-command is empty; write the command for the shell.")
    if (program := missing_program(command)) is not None:
        raise InvalidAgent(
            f"--agent-command begins with {program!r}, but the shell finds no such program. "
            "Correct the name, or give its path."
        )


def _model_options(name: str, given: Mapping[str, Any]) -> ModelOptions:
    try:
        return read_options(ModelOptions, {"name": name, **given}, lambda option: option.flag)
    except HudMcpError as exc:
        raise InvalidAgent(f"{str(exc).removesuffix('.')}.") from None


def _unknown(name: str) -> str:
    """What to say of a name that is not an agent's."""
    model = f"A model is an agent by --agent PROVIDER:MODEL, where PROVIDER is {_listed(PROVIDERS)}"
    if (program := _PROGRAMS.get(name.lower())) is not None:
        return f"There is no agent {name!r}. {model}. {program}, the program, is --agent {program}."
    return (
        f"There is no agent {name!r}.{did_you_mean(name, (*BUILT_IN, *READY))} There are "
        f"{_listed((*BUILT_IN, *READY))}; "
        f"one of yours in Python, as path/to/agent.py:NAME or package.module:NAME; and any "
        f"program, by --agent-command. {model}."
    )


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
