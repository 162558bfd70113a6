"""`hud-mcp gateway`: a model for any program, whose turns go to a file."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import click

from hud_mcp.agents.agent import Agent, Reply
from hud_mcp.base.process import child_environment, stop_signals
from hud_mcp.cli.help import Command
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.models.gateway.choice import choose
from hud_mcp.plugins.models.gateway.gateway import Gateway, OpenRun, gateway_of
from hud_mcp.plugins.models.gateway.secrets import is_provider_variable
from hud_mcp.plugins.models.options import ModelOptions
from hud_mcp.values.model_turn import ModelTurn, bounded
from hud_mcp.values.option import read_options

__all__ = ["command"]


@click.command("gateway", Command, context_settings={"ignore_unknown_options": True})
@click.argument("model", metavar="PROVIDER:MODEL")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]...")
def command(*, model: str, file: Path, program: Sequence[str]) -> None:
    """Give a program a model, and append its turns to FILE, as JSON Lines.

    COMMAND runs with the address and a key of its own in its environment, without the provider's
    key. Without COMMAND, the variables are printed for a shell, until Ctrl-C. '*' lets the program
    name its model.
    """
    sys.exit(anyio.run(_main, model, file, program))


async def _main(model: str, file: Path, program: Sequence[str]) -> int:
    options = read_options(ModelOptions, {"name": model}, lambda each: each.flag)
    choice = choose(None if model == "*" else options, None)
    if not choice.routes:
        raise HudMcpError(f"{choice.why_not}. Set a key in the environment of this command.")
    with file.open("a", encoding="utf-8") as out:  # one line for each turn

        async def record(turn: ModelTurn) -> None:
            out.write(f"{bounded(turn).model_dump_json(exclude_defaults=True)}\n")
            out.flush()
            click.echo(f"{turn.model}: {turn.error or turn.stop_reason or 'a turn'}", err=True)

        async with gateway_of(choice) as gateway:
            return await _serve(gateway, record, program)


async def _serve(gateway: Gateway, record: Any, program: Sequence[str]) -> int:
    agent = Agent(_no_tool, session="", prompt="")
    async with gateway.opened(agent, record) as run:
        if program:
            return await _run(run, program)
        for name, value in run.variables.items():
            click.echo(f"export {name}={shlex.quote(value)}")
        stopped = anyio.Event()
        with stop_signals(lambda _number: stopped.set()):
            await stopped.wait()
        return 0
    raise run.refused or HudMcpError("The gateway has ended.")


async def _run(run: OpenRun, program: Sequence[str]) -> int:
    own = {n: value for n, value in child_environment().items() if not is_provider_variable(n)}
    try:
        done = await anyio.run_process(
            [*program], env={**own, **run.variables}, stdin=None, stdout=None, stderr=None,
            check=False,
        )  # fmt: skip
    except OSError as exc:
        raise HudMcpError(
            f"{program[0]} cannot be started: {os.strerror(exc.errno or 0)}."
        ) from None
    return done.returncode


async def _no_tool(name: str, *_given: Any, **_more: Any) -> Reply:
    raise HudMcpError(f"{name} is no tool: there is no session.")
