"""The `hud-mcp` command: one module for each command, loaded when it is called."""

import errno
import signal
import sys
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from hud_mcp import __version__
from hud_mcp.cli.operator import hide_operator_token
from hud_mcp.cli.process import discard_output
from hud_mcp.cli.startup import interrupted_quietly, without_collecting
from hud_mcp.errors import HudMcpError, name_known, sole_cause

__all__ = ["main"]

_COMMANDS = {
    "init": "Write an environment to begin with, its tasks, an agent and a test.",
    "serve": "Serve environments over MCP, on stdio or HTTP.",
    "install": "Let a client start hud-mcp: Claude, Cursor, VS Code, Codex and others.",
    "uninstall": "Take hud-mcp out of a client's configuration.",
    "bundle": "Make an MCP bundle (.mcpb) that a client installs.",
    "eval": "Run an agent through a taskset and report.",
    "check": "Prove tasks: solvable, not for free, the same each time, and without leaks.",
    "jobs": "List jobs, or show what the runs of one amount to.",
    "trace": "Show a trajectory step by step.",
    "view": "Show jobs, trajectories and running sessions in a web page.",
    "doctor": "Look at what this machine lacks, and say what to do.",
    "browser": "Install the Chromium that browser environments need.",
    "export": "Write a job or a trajectory as JSON Lines, Parquet, ATIF, HTML or GIF.",
    "regrade": "Grade a job's stored answers again, without its agent.",
    "store": "Look after a store: measure, verify, shrink, prune and copy it.",
    "redact": "Remove what a model said or thought from the record.",
    "tasks": "List the tasks of a taskset, or show one.",
    "taskset": "Import public sets of tasks; look at, check, split and sample sets.",
    "functions": "List what `setup` and `evaluate` of a task may name.",
    "task": "Work on single tasks by hand, or over the HUD control channel.",
    "channel": "Serve an environment on the HUD control channel.",
}


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""A disk without space, of whoever's file: the output's too."""


class _Commands(click.Group):
    """Loads a command's module only when it is called: `serve` must answer fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS and ctx.resilient_parsing:  # of a shell that completes
            return None
        if cmd_name not in _COMMANDS:
            known = name_known(
                cmd_name, _COMMANDS, what="There are", listing="`hud-mcp --help` lists all."
            )
            raise click.UsageError(f"There is no command {cmd_name!r}.{known}", ctx)
        with interrupted_quietly(), without_collecting():
            return import_module(f"hud_mcp.cli.{cmd_name}").command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, without loading one."""
        names = [
            CompletionItem(name, help=about)
            for name, about in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

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
    """Where it is the output that has no room, the process must not fail on it again."""
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
