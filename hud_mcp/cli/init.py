"""`hud-mcp init`: an environment to begin with, its tasks, an agent and a test."""

import importlib.util
import re
import shlex
import shutil
import sys
from pathlib import Path

import click

from hud_mcp.base.process import shown_command
from hud_mcp.cli.help import Command
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.source import shipped_folder, shipped_name

_WORLDS = {
    "browser": "a site in a real Chromium",
    "shell": "files and commands in a sandbox",
    "gymnasium": "a Gymnasium environment",
    "mcp": "an MCP server of yours, over files",
    "none": "questions and answers",
}
_NAME = "starter"
"""The name of the environment in the copied files."""

_TEST = "test_env.py"


@click.command("init", Command)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option(
    "--world",
    type=click.Choice(list(_WORLDS)),
    default="browser",
    show_default=True,
    help="The kind of world. " + " ".join(f"{name}: {what}." for name, what in _WORLDS.items()),
)
@click.option("--name", metavar="NAME", help="The environment's name. Default: the folder's name.")
def command(*, folder: Path, world: str, name: str | None) -> None:
    """Write an environment to begin with into DIR: its tasks, an agent and a test.

    The command creates DIR if it does not exist; the default is the current folder. It overwrites
    no file.
    """
    files = _files(world, _named(name, folder))
    taken = [place for place in files if (folder / place).exists()]
    if taken:
        raise HudMcpError(
            f"{folder / taken[0]} exists already, so nothing was written. Name another folder, "
            f"as in `{shown_command('init', 'my-environment')}`."
        )
    try:
        for place, content in files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(content, encoding="utf-8", newline="\n")
    except OSError as exc:
        raise HudMcpError(
            f"{exc.filename or folder} cannot be written: {exc.strerror}. Name another folder."
        ) from exc
    for place in files:
        click.echo(str(folder / place))
    click.echo(_next(folder, world))


def _named(name: str | None, folder: Path) -> str:
    """Return the name of the environment, as a task may have it without quotes."""
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise click.BadParameter(
            f"{name!r}: give at most 64 letters, digits, _ and -, such as my-shop.",
            param_hint="--name",
        )
    if name is not None:
        return name
    named = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or _NAME
    return named if shipped_name(named) is None else f"my-{named}"  # else its tasks are the other's


def _files(world: str, name: str) -> dict[str, str]:
    shipped = shipped_folder("scaffolds")
    found = {
        path.relative_to(shipped / world).as_posix(): path
        for path in sorted((shipped / world).rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
    return {
        place: path.read_text(encoding="utf-8").replace(f'"{_NAME}"', f'"{name}"')
        for place, path in {**found, _TEST: shipped / _TEST}.items()
    }


def _python() -> str:
    found = shutil.which("python")
    is_ours = found is not None and Path(found).absolute().parent == Path(sys.executable).parent
    return "python" if is_ours else shlex.quote(sys.executable)


def _next(folder: Path, world: str) -> str:
    steps = [] if folder.resolve() == Path.cwd() else [f"cd {shlex.quote(str(folder))}"]
    if world == "gymnasium" and importlib.util.find_spec("gymnasium") is None:
        steps.append("pip install 'hud-mcp[gymnasium]'")
    play = ("eval", "tasks.jsonl", "--agent", "agent.py:solve")
    steps += [shown_command("lint", "env.py")] if world == "mcp" else []
    steps += [
        shown_command("check", "tasks.jsonl"),
        shown_command("eval", "tasks.jsonl", "--agent", "oracle"),
        shown_command(*play),
    ]
    if world == "mcp":
        steps.append(shown_command(*play, "--against", "fewer=mcp:without=search_notes"))
    steps += [f"{_python()} -m unittest", shown_command("serve", "--reload")]
    return "\n".join(["", "Next:", *(f"  {step}" for step in steps)])
