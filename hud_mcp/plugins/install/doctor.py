"""`hud-mcp doctor`: the software on this machine, the missing software, and what to do."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import anyio
import click
import orjson

from hud_mcp.cli.help import Command
from hud_mcp.cli.options import json_option
from hud_mcp.cli.output import cell, make_console, make_table
from hud_mcp.loading.source import Source, default_sources, load_environments
from hud_mcp.plugins.install.browser import shown_progress
from hud_mcp.plugins.install.packages import (
    BUBBLEWRAP,
    FONTS,
    OPENGL,
    Finding,
    Need,
    PackageManager,
    find_browser_needs,
    install,
    still_missing,
)
from hud_mcp.plugins.install.places import EXTRA, OPENGL_FINDING, examine, look_at_fonts
from hud_mcp.registry import service
from hud_mcp.session.log import configure_logging

_STYLES = {"ok": "green", "failed": "red", "absent": "dim"}
_STATE_CHARS = max(map(len, _STYLES))
_OF_BROWSERS = {"Playwright's driver", "Chromium"}


@click.command(
    "doctor",
    Command,
    epilog="Exit status: 0 if everything needed works, 1 if something does not, 2 for a mistake "
    "in the options.",
)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option(
    "--fix",
    is_flag=True,
    help="Install needed software that is missing, and the libraries with which MuJoCo draws. "
    "Default: only report.",
)
@click.option(
    "--store",
    hidden=True,
    metavar="URL",
    help="The store to test. Default: the store that other commands use.",
)
@json_option
def command(*, sources: Sequence[str], fix: bool, store: str | None, as_json: bool) -> None:
    """Test what this machine has: start programs, open a page and open a sandbox.

    The machine must have what the environments of SOURCE need. The default of SOURCE is ./env.py if
    it exists, or else the quickstart environments.
    """
    configure_logging("error")
    plain = [each for each in sources or default_sources() if not Source(each).is_remote]
    served = load_environments(plain)
    look = partial(_look, served, store)
    findings = anyio.run(look)
    lacking = {each.name for each in findings if each.state == "failed" or _is_opengl(each)}
    told = None
    if fix and lacking:
        told = _fix(lacking)
        tell = make_console(stderr=True).print
        service("install servers")(served if any(map(_is_server, lacking)) else (), tell)
        findings = anyio.run(look)
    if as_json:
        click.echo(orjson.dumps(_as_json(findings), option=orjson.OPT_INDENT_2))
    else:
        _print(findings)
    if told is not None:
        click.echo(told, err=True)
    sys.exit(any(each.state == "failed" for each in findings))


async def _look(environments: Sequence[Any], store: str | None) -> list[Finding]:
    return [each async for each in examine(environments, store)]


def _is_server(name: str) -> bool:
    return name.startswith("server ")


def _is_opengl(finding: Finding) -> bool:
    """Whether MuJoCo, which somebody installed, cannot draw for want of a package."""
    return finding.name == OPENGL_FINDING and finding.state != "ok" and bool(finding.do)


def _fix(lacking: set[str]) -> str | None:
    """Install the missing software; return what is left to do, or None."""

    def find() -> Iterator[Need]:
        if lacking & _OF_BROWSERS:
            yield from find_browser_needs()
        if "bubblewrap" in lacking and shutil.which("bwrap") is None:
            yield BUBBLEWRAP
        if "fonts" in lacking and look_at_fonts(needed=True).state != "ok":
            yield FONTS
        if OPENGL_FINDING in lacking and service("choose opengl")(again=True) is not None:
            yield OPENGL

    manager = PackageManager.find()
    console = make_console(stderr=True)
    with shown_progress(console) as progress:
        needs = install(find, manager, tell=console.print, progress=progress)
    return still_missing("This machine", needs, manager) if needs else None


def _as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "ok": all(each.state != "failed" for each in findings),
        "findings": [each.model_dump(mode="json") for each in findings],
    }


def _print(findings: Sequence[Finding]) -> None:
    table = make_table("", "", "")
    table.show_header = False
    for each in _in_short(findings):
        said = f"{each.said.rstrip('.')}. {each.do}" if each.do else each.said
        table.add_row(
            cell(each.state.ljust(_STATE_CHARS), _STYLES[each.state]), cell(each.name), cell(said)
        )
    make_console().print(table)


def _in_short(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings, the failed ones first. Other extras are two lines at most."""
    extras = [each for each in findings if each.name.startswith(EXTRA) and each.state != "failed"]
    others = [each for each in findings if each not in extras]
    yield from sorted(others, key=lambda each: each.state != "failed")
    for state in ("ok", "absent"):
        names = [each.name.removeprefix(EXTRA) for each in extras if each.state == state]
        if names:
            do = "Run `pip install 'hud-mcp[NAME]'` for one." if state == "absent" else ""
            yield Finding(name="extras", state=state, said=", ".join(names), do=do)
