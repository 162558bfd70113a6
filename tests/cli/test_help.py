"""The help of every command: within 80 columns, with a sentence for each option."""

import re
from collections.abc import Iterator

import click
from click.testing import CliRunner

from hud_mcp.agents.kind import agent_names
from hud_mcp.cli import main
from hud_mcp.cli.help import Command

COLUMNS = 80
VAGUE = re.compile(r" (?:TEXT|INTEGER|INTEGER RANGE|NUMBER|FLOAT|FLOAT RANGE)(?: |$)")
"""The name of a type, where a person wants the name of a thing."""
OF_CLONE = re.compile(r"\b(?!SKILL)[\w-]+\.md\b|\b(?:docs|benchmarks|examples|tests)/")
"""Files that only a clone has."""


def commands(command: click.Command = main, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command of the tree, by what a person types; hidden ones are not for people."""
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            if not found.hidden:
                yield from commands(found, *path, name)


def shown_help(path: str) -> str:
    """The help of a command; click's runner is a terminal of 80 columns."""
    result = CliRunner().invoke(main, [*path.split(), "--help"])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_help_of_every_command_is_for_a_person_at_a_terminal() -> None:
    """No line is too wide or cut, no file is named that an installed package lacks."""
    wrong: list[tuple[str, str]] = []
    found = dict(commands())
    assert {"", "eval", "store prune", "task act", "taskset import"} <= set(found)
    for path, command in found.items():
        lines = shown_help(path).splitlines()
        wrong += [(path, line) for line in lines if len(line) > COLUMNS]
        wrong += [(path, line) for line in lines if line.endswith("...") and "[" not in line]
        wrong += [(path, line) for line in lines if VAGUE.search(line) or OF_CLONE.search(line)]
        for option in command.params:
            said = getattr(option, "help", "-") or ""
            if isinstance(option, click.Option) and not option.hidden and said[-1:] != ".":
                wrong.append((path, f"{option.opts[0]}: {said!r} is no sentence"))
    assert wrong == []


def test_each_option_that_a_group_names_is_one_and_is_in_one_group() -> None:
    """A new option of a command with groups gets a group too; only --help stays without."""
    grouped = {path: each for path, each in commands() if isinstance(each, Command) and each.groups}
    assert {"eval", "serve"} <= set(grouped)
    for path, command in grouped.items():
        named = sorted(name for names in command.groups.values() for name in names)
        options = [each for each in command.params if isinstance(each, click.Option)]
        assert named == sorted(str(each.name) for each in options if not each.hidden), path


def test_the_help_of_eval_fits_sixty_lines_and_names_every_agent() -> None:
    """And the error of a call without an agent names the same ones."""
    said = shown_help("eval")
    assert len(said.splitlines()) <= 60
    error = CliRunner().invoke(main, ["eval", "quickstart"]).stderr
    for name in (*agent_names(), "--agent-command", "PROVIDER:MODEL"):
        assert name in said
        assert name in error
