"""Install what `make demo` or `make test` needs of the machine, or name it all in one command.

Usage: install.py demo|test, run by an interpreter that has hud-mcp. It does nothing where
everything is there. Otherwise it asks the system's package manager, and looks again; what is
still missing then is told with the command that installs it, for whoever may.
"""

import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.gymnasium.opengl import choose_opengl
from hud_mcp.plugins.install.packages import (
    OPENGL,
    Need,
    PackageManager,
    browser_fault,
    find_browser_needs,
    install,
    still_missing,
)

ON_LINUX = sys.platform.startswith("linux")
POSTGRESQL = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Fedora, Red Hat
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)


def on_path(program: str) -> Callable[[], bool]:
    """Looks for a program."""
    return lambda: shutil.which(program) is not None


def has_postgresql() -> bool:
    """Whether there is a server to make clusters with."""
    if shutil.which("initdb"):
        return True
    folders = [path for place in POSTGRESQL for path in Path("/").glob(place[1:])]
    return any((path / "initdb").exists() and (path / "postgres").exists() for path in folders)


def has_nginx() -> bool:
    """Whether there is a balancer, which systems keep where only administrators look."""
    return shutil.which("nginx") is not None or Path("/usr/sbin/nginx").exists()


def mujoco_draws() -> bool:
    """Whether MuJoCo has something to draw with."""
    return choose_opengl(again=True) is None


TESTS: tuple[tuple[Callable[[], bool], Need], ...] = (
    (
        has_postgresql,
        Need(
            "a PostgreSQL server",
            {
                "apt-get": ("postgresql",),
                "dnf": ("postgresql-server",),
                "brew": ("postgresql@17",),
            },
        ),
    ),
    *(
        (on_path(program), Need(what, {"apt-get": (apt,), "dnf": (dnf,)}))
        for program, what, apt, dnf in (
            ("bwrap", "bubblewrap", "bubblewrap", "bubblewrap"),
            ("Xvnc", "Xvnc", "tigervnc-standalone-server", "tigervnc-server"),
            ("chromium", "a Chromium with windows", "chromium", "chromium"),
            ("ssh", "an OpenSSH client", "openssh-client", "openssh-clients"),
            ("curl", "curl", "curl", "curl"),
            ("openssl", "OpenSSL", "openssl", "openssl"),
            ("git", "Git", "git", "git"),
            ("make", "GNU Make", "make", "make"),
            ("pgrep", "pgrep", "procps", "procps-ng"),
        )
        if ON_LINUX
    ),
    (
        has_nginx,
        Need("nginx", {"apt-get": ("nginx-light",), "dnf": ("nginx",), "brew": ("nginx",)}),
    ),
    *(((mujoco_draws, OPENGL),) if ON_LINUX else ()),
)


def find_needs(goal: str) -> Iterator[Need]:
    """What is missing for a goal.

    Raises:
        EnvironmentFailed: A Chromium was named that is not there.
    """
    yield from find_browser_needs()
    if goal == "test":
        yield from (need for is_there, need in TESTS if not is_there())


def say(text: str) -> None:
    """Tell whoever waits what happens."""
    print(text, file=sys.stderr, flush=True)


def main(goal: str) -> str | None:
    """Make the machine ready; else what to do, for people."""
    logging.basicConfig(level=logging.ERROR)  # how the browser runs is told when it is used
    manager = PackageManager.find()
    try:
        needs = install(partial(find_needs, goal), manager, tell=say)
    except EnvironmentFailed as exc:
        return str(exc)
    return still_missing(f"make {goal}", needs, manager) if needs else browser_fault()


if __name__ == "__main__":
    if sys.argv[1:] not in (["demo"], ["test"]):
        sys.exit("Usage: install.py demo|test")
    sys.exit(main(sys.argv[1]))
