"""What the options of `hud-mcp eval` may be together, checked before anything is loaded."""

from typing import Any

import anyio
import click
from click.core import ParameterSource

from hud_mcp.agents.command import missing_program
from hud_mcp.agents.ready import READY
from hud_mcp.cli.models import MODEL_LIMITS, MODEL_OPTIONS, refuse_without_model
from hud_mcp.errors import InvalidAgent
from hud_mcp.rollout.agents import BUILT_IN, agent_options
from hud_mcp.rollout.plan import RunOptions

__all__ = ["check_usage"]

_RECORDED = (
    "tasksets", "agent", "agent_command", "pattern", "split", "group", "seed", "max_steps",
    "timeout", "name", "image", "contexts", "context_selector", "allow", "protocol", "in_process",
    *MODEL_OPTIONS,
)  # fmt: skip
"""What a resumed job takes from its record: another value would make it another job."""

_RECORDED_UNLESS_GIVEN = ("max_concurrent", "retries", "workers", "ray", *MODEL_LIMITS)
"""What it takes from there too, and may be told anew: its runs are the same ones."""


def check_usage(ctx: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that do not go together, and add what is found of the agent.

    Raises:
        UsageError: Saying which, and what to write.
    """
    selector = ctx.get_parameter_source("context_selector")
    if options["contexts"] is None and selector is ParameterSource.COMMANDLINE:
        raise click.UsageError("--context-selector needs --contexts; give both.")
    if options["resume"] is None:
        if not options["tasksets"]:
            raise click.UsageError("Name a TASKSET, or --resume JOB; `hud-mcp tasks` lists sets.")
        _check_agent(ctx, options)
        options["found_agent"] = _find_agent(options["agent"])
        given = ctx.get_parameter_source("timeout") is ParameterSource.COMMANDLINE
        options["own_timeout"] = options["timeout"] if given else None
        return
    for name in _RECORDED_UNLESS_GIVEN:
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            options[name] = None
    given = [
        name
        for name in _RECORDED
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        and (name != "tasksets" or options[name])
    ]
    if given:
        names = {"tasksets": "TASKSET", "pattern": "--filter"}
        shown = names.get(given[0], f"--{given[0].replace('_', '-')}")
        raise click.UsageError(
            f"{shown} comes from the record of the job that is resumed; leave it out, or start "
            "another job."
        )


def _check_agent(ctx: click.Context, options: dict[str, Any]) -> None:
    """Refuse another number of agents than one, and a command that cannot run."""
    given = [name for name in ("agent", "agent_command", "model") if options[name] is not None]
    if len(given) != 1:
        raise click.UsageError(
            f"Give one agent: --agent {', '.join((*BUILT_IN, *READY))} or path/to/agent.py:NAME; "
            "--agent-command COMMAND; or --model PROVIDER:MODEL."
        )
    if options["model"] is None:
        refuse_without_model(ctx)
    if options["agent_command"] is None:
        return
    if not options["agent_command"].strip():
        raise click.UsageError("--agent-command is empty; write the command for the shell.")
    if (program := missing_program(options["agent_command"])) is not None:
        raise click.UsageError(
            f"--agent-command begins with {program!r}, but the shell finds no such program. "
            "Correct the name, or give its path."
        )


def _find_agent(name: str | None) -> RunOptions:
    """How a job is run by the agent of a name; an agent in Python is looked at."""
    if name is None:
        return RunOptions()
    try:
        return anyio.run(agent_options, name)
    except InvalidAgent as exc:
        raise click.UsageError(str(exc)) from exc
