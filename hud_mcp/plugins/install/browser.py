"""`hud-mcp browser`: the Chromium that browser environments need."""

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import anyio
import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hud_mcp.base.process import shown_command
from hud_mcp.cli.help import Group
from hud_mcp.cli.output import asks_here, make_console
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.find import find_sources
from hud_mcp.loading.sets import find_sets
from hud_mcp.loading.source import Source, load_environments
from hud_mcp.plugins.install.packages import (
    CHROMIUM,
    PackageManager,
    browser_fault,
    find_browser_needs,
    install,
    offer_of,
    still_missing,
)
from hud_mcp.worlds.browser import Browser
from hud_mcp.worlds.browser.chromium import find_chromium
from hud_mcp.worlds.browser.driver import driver_complaint


def offer_browser(sources: Sequence[str], tasks: Sequence[str] = ()) -> None:
    """Install a Chromium if one of these needs it, none is installed, and a person says yes.

    Without a source, the environments of the tasksets count. If nobody can be asked, nothing is
    installed. Sessions then fail, and name the command.

    Raises:
        HudMcpError: The person said yes, but it could not be installed. The text says what to do.
    """
    if not asks_here() or find_chromium() is not None:
        return
    if tasks and not sources:
        found = find_sets(tasks).paths
        folders = [path if path.is_dir() else path.parent for path in found]
        wanted = zip(found, folders, strict=True)
        sources = [s for f, place in wanted for s in find_sources((), Taskset.from_file(f), place)]
    offer_browser_for(load_environments([each for each in sources if not Source(each).is_remote]))


def offer_browser_for(environments: Iterable[Any]) -> None:
    """Do the same for loaded environments.

    Raises:
        HudMcpError: It was wanted, and could not be had; the text says what to do.
    """
    if asks_here() and lacks_browser(environments) and _is_wanted(PackageManager.find()):
        bring_browser()


def lacks_browser(environments: Iterable[Any]) -> bool:
    """Whether one of these opens pages, and no Chromium starts here."""
    if find_chromium() is not None:
        return False
    if not any(isinstance(each.world, Browser) for each in environments):
        return False
    # The driver comes first: where it does not start, its loader would write on the terminal.
    return anyio.run(driver_complaint) is not None or browser_fault() is not None


def _is_wanted(manager: PackageManager | None) -> bool:
    offer = offer_of(manager)
    said = f"This needs a Chromium, and there is none. Install {offer.source} ({offer.size})?"
    return click.confirm(said, default=True, err=True)


def bring_browser() -> None:
    """Install the missing parts of a browser, and start it.

    Raises:
        HudMcpError: It could not be had; the text says what to do.
    """
    manager = PackageManager.find()
    needs = list(find_browser_needs())
    if needs:
        console = make_console(stderr=True)
        with shown_progress(console) as progress:
            needs = install(find_browser_needs, manager, tell=console.print, progress=progress)
    fault = still_missing("A browser", needs, manager) if needs else browser_fault()
    if fault is not None:
        raise HudMcpError(fault)


def _ask_for_browser() -> bool:
    """Ask a person whether a Chromium is to be installed; true if none is missing."""
    if CHROMIUM not in list(find_browser_needs()):
        return True
    return _is_wanted(PackageManager.find())


@contextmanager
def shown_progress(console: Console) -> Generator[Callable[[float, str], None]]:
    """Show a bar while the body runs; in a pipe, print a line for each quarter."""
    if not console.is_terminal:
        told: set[str] = set()

        def tell(percent: float, what: str) -> None:
            line = f"{percent // 25 * 25:.0f}% {what.partition(' ')[0]}"
            if line not in told:
                told.add(line)
                console.print(line, markup=False)

        yield tell
        return
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeElapsedColumn(),
               TextColumn("{task.description}", markup=False))  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=100.0)
        yield lambda percent, what: bar.update(task, completed=percent, description=what[:60])


@click.group("browser", Group)
def command() -> None:
    """Install the Chromium that browser environments need."""
    logging.basicConfig(level=logging.ERROR)  # how it runs is told when it is used


@command.command("install")
@click.option(
    "--yes", is_flag=True, help="Ask no questions; needed without a terminal. Default: ask."
)
def install_command(*, yes: bool) -> None:
    """Install a Chromium, and start it once.

    The system's package manager (apt-get or dnf) installs it if you have the right to. Otherwise
    Playwright downloads its own. If a Chromium works already, the command changes nothing. The exit
    status is 0 if a Chromium works afterwards, else 1.
    """
    if not yes and not asks_here() and any(True for _ in find_browser_needs()):
        again = shown_command("browser", "install", "--yes")
        raise HudMcpError(
            f"There is no terminal to ask on, so nothing was installed. Run `{again}`."
        )
    if not yes and asks_here() and not _ask_for_browser():
        raise HudMcpError("Nothing was installed. HUD_MCP_CHROMIUM may name a Chromium.")
    bring_browser()
    click.echo("A Chromium is there, and starts.", err=True)
