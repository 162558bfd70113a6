"""The `hud-mcp` command. The module of a command loads when the command is called."""

import errno
import signal
import sys
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from hud_mcp.base import __version__
from hud_mcp.cli.help import shared_options
from hud_mcp.cli.process import discard_output, interrupted_quietly, without_collecting
from hud_mcp.cli.tokens import hide_operator_token
from hud_mcp.errors import HudMcpError, name_known, sole_cause
from hud_mcp.registry import Command, broken_plugins, find, load, names_of

CORE = {
    "init": Command(
        "hud_mcp.cli.init:command",
        "Write an environment to begin with, its tasks, an agent and a test.",
    ),
    "serve": Command("hud_mcp.cli.serve:command", "Serve environments over MCP, on stdio or HTTP."),
    "eval": Command("hud_mcp.cli.eval:command", "Run an agent through a taskset and report."),
    "check": Command(
        "hud_mcp.cli.check:command",
        "Prove tasks: solvable, not for free, the same each time, and without leaks.",
    ),
    "jobs": Command(
        "hud_mcp.cli.jobs:command", "List jobs, or show what the runs of one amount to."
    ),
    "trace": Command("hud_mcp.cli.trace:command", "Show a trajectory step by step."),
    "regrade": Command(
        "hud_mcp.cli.regrade:command", "Grade a job's stored answers again, without its agent."
    ),
    "tasks": Command("hud_mcp.cli.tasks:command", "List the tasks of a taskset, or show one."),
    "functions": Command(
        "hud_mcp.cli.functions:command", "List what `setup` and `evaluate` of a task may name."
    ),
}
"""The commands of the core. Plugins have the others in their tables."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a full disk. The output can be on it too."""


def _commands() -> Mapping[str, Command]:
    return CORE | names_of("commands") | CORE  # the order of the first, the values of the last


class _Commands(click.Group):
    """Loads a command's module only when it is called: `serve` must answer fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        with interrupted_quietly(), without_collecting():
            if cmd_name in CORE:
                return load(CORE[cmd_name].reference)
            found = find("commands", cmd_name)
        if found is None and not ctx.resilient_parsing:  # a shell that completes asks for any name
            known = name_known(
                cmd_name, _commands(), what="There are", listing="`hud-mcp --help` lists all."
            )
            raise click.UsageError(f"There is no command {cmd_name!r}.{known}", ctx)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands, without loading one."""
        names = [
            CompletionItem(name, help=command.sentence)
            for name, command in _commands().items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.sentence) for name, each in _commands().items()])
        for sentence in broken_plugins():
            formatter.write_text(sentence)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except HudMcpError as exc:
            raise click.ClickException(str(exc)) from None
        except KeyboardInterrupt:  # of a command that has nothing to end in order, or has not yet
            click.echo("Interrupted.", err=True)
            ctx.exit(128 + signal.SIGINT)
        except OSError as exc:
            if exc.errno not in _FULL:
                raise
            _discard_full_output()
            raise click.ClickException(
                f"The output cannot be written: {exc.strerror}. Free space, then run the "
                "command again."
            ) from None
        except BaseExceptionGroup as group:
            # A client's task group wraps what its body raised.
            cause = sole_cause(group)
            if isinstance(cause, HudMcpError):
                raise click.ClickException(str(cause)) from None
            raise


def _discard_full_output() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="hud-mcp")
def main() -> None:
    """Let any MCP client work inside an environment, and be graded there."""
    hide_operator_token()


main.params += shared_options()
