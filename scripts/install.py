"""Install what `make demo` or `make test` needs of the machine, or name it all in one command.

Usage: install.py demo|test, run by an interpreter that has hud-mcp. It does nothing where
everything is there. Otherwise it asks the system's package manager, and looks again; what is
still missing then is told with the command that installs it, for whoever may.
"""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.worlds.browser.chromium import Chromium, find_chromium
from hud_mcp.worlds.browser.driver import driver_complaint, missing_library, package_of

INSTALL_BOUND_S = 1800
ROUNDS = 3
"""A loader names one library at a time."""

COMPLAINTS = ("E:", "W: Failed to fetch", "Error", "sudo:")
"""How the lines begin that tell what went wrong; apt-get update warns, and goes on."""

ON_LINUX = sys.platform.startswith("linux")
POSTGRESQL = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Fedora, Red Hat
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)


@dataclass(frozen=True)
class Need:
    """One thing that the machine must have.

    Attributes:
        what: How people call it.
        packages: By package manager, what brings it; `a|b` is the first of both that is known.
    """

    what: str
    packages: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


CHROMIUM = Need(
    "a Chromium",
    {
        # The headless shell opens pages twice as fast; not every distribution has it apart.
        "apt-get": ("chromium-headless-shell|chromium", "fonts-dejavu-core"),
        "dnf": ("chromium-headless|chromium", "dejavu-sans-fonts"),
    },
)


# What is missing.


def on_path(program: str) -> Callable[[], bool]:
    """Looks for a program."""
    return lambda: shutil.which(program) is not None


def has_postgresql() -> bool:
    """Whether there is a server to make clusters with."""
    if shutil.which("initdb"):
        return True
    folders = [path for place in POSTGRESQL for path in Path("/").glob(place[1:])]
    return any((path / "initdb").exists() and (path / "postgres").exists() for path in folders)


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
            ("pgrep", "pgrep", "procps", "procps-ng"),
        )
        if ON_LINUX
    ),
)


def browser_fault() -> str | None:
    """Why no browser can be driven; None where one was, to its first breath and its last."""

    async def launch() -> None:
        browser = await Chromium.launch(find_chromium())
        await browser.close()

    try:
        anyio.run(launch)
    except EnvironmentFailed as exc:
        return str(exc)
    return None


def find_needs(goal: str) -> Iterator[Need]:
    """What is missing for a goal.

    Raises:
        EnvironmentFailed: A Chromium was named that is not there.
    """
    complaint = anyio.run(driver_complaint)
    if complaint is not None:
        library = missing_library(complaint)
        if library is not None:
            manager, package = package_of(library)
            known = {manager: (package,)} if manager and package else {}
            yield Need(f"{library} for Playwright's driver", known)
    if find_chromium() is None and (complaint is not None or browser_fault() is not None):
        yield CHROMIUM  # Playwright's own was not there either
    if goal == "test":
        yield from (need for is_there, need in TESTS if not is_there())


# Getting it.


class Manager:
    """The system's package manager.

    Args:
        name: Its command.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._is_root = os.geteuid() == 0 or name == "brew"
        self._has_sudo = shutil.which("sudo") is not None
        self.complaint = ""

    @classmethod
    def find(cls) -> "Manager | None":
        """The one of this machine."""
        return next((cls(n) for n in ("apt-get", "dnf", "brew") if shutil.which(n)), None)

    def choose(self, needs: Iterable[Need]) -> list[str]:
        """The packages to install, each once."""
        wanted = [p for need in needs for p in need.packages.get(self.name, ())]
        return list(dict.fromkeys(self._first_known(p.split("|")) for p in wanted))

    def update(self) -> None:
        """Learn which packages there are, where that is a step of its own."""
        if self.name == "apt-get":
            self._run("update", "-qq")

    def install(self, packages: list[str]) -> None:
        """Install them; what does not work is found out by whoever looks for them."""
        options = {
            "apt-get": ("-y", "-qq", "--no-install-recommends"),
            "dnf": ("-y", "-q", "--setopt=install_weak_deps=False"),
        }
        # One that it has not heard of would keep it from installing the others.
        known = [name for name in packages if self._is_known(name)]
        if len(known) < len(packages):
            unknown = ", ".join(name for name in packages if name not in known)
            self.complaint = self.complaint or f"{self.name} has no {unknown}"
        if known:
            self._run("install", *options.get(self.name, ()), *known)

    def advice(self, packages: list[str]) -> str:
        """What a person does instead."""
        sudo = "sudo " if self._has_sudo and not self._is_root else ""
        command = f"{sudo}{self.name} install {' '.join(packages)}"
        if self.name == "apt-get":
            command = f"{sudo}apt-get update && {sudo}apt-get install -y {' '.join(packages)}"
        who = "" if self._is_root or sudo else " as root"
        return f"Run this{who}, then try again:\n    {command}"

    def _first_known(self, names: list[str]) -> str:
        return next((name for name in names if self._is_known(name)), names[-1])

    def _is_known(self, name: str) -> bool:
        if self.name != "apt-get" or not shutil.which("apt-cache"):
            return True
        asked = ["apt-cache", "show", "--no-all-versions", name]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    def _run(self, *arguments: str) -> None:
        """Call it, and note the first thing that it complains of."""
        if not self._is_root and not self._has_sudo:
            self.complaint = "only root may install them"
            return
        as_root = [] if self._is_root else ["sudo", "-n"]
        try:
            done = subprocess.run(
                [*as_root, self.name, *arguments], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                check=False, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                timeout=INSTALL_BOUND_S,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as exc:
            self.complaint = self.complaint or str(exc)
            return
        told = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in told if line.startswith(COMPLAINTS)]
        if done.returncode and not errors:
            errors = told[-1:] or [f"status {done.returncode}"]
        if errors and not self.complaint:
            self.complaint = f"{self.name} said: {errors[0]}"


def say(text: str) -> None:
    """Tell whoever waits what happens."""
    print(text, file=sys.stderr, flush=True)


def install(goal: str, manager: Manager | None) -> list[Need]:
    """Install what is missing, as far as that goes; what is missing still."""
    needs = list(find_needs(goal))
    for _ in range(ROUNDS):
        if not needs or manager is None:
            break
        manager.update()
        packages = manager.choose(needs)
        if not packages:
            break
        say(f"Installing {', '.join(need.what for need in needs)}.")
        manager.install(packages)
        before, needs = needs, list(find_needs(goal))
        if needs == before:
            break
    if CHROMIUM in needs and anyio.run(driver_complaint) is None:
        download_chromium()
        needs = list(find_needs(goal))
    return needs


def download_chromium() -> None:
    """Let Playwright fetch its own."""
    say("Downloading Playwright's Chromium.")
    for options in (["--with-deps"], []):
        command = [sys.executable, "-m", "playwright", "install", *options]
        done = subprocess.run(
            [*command, "chromium-headless-shell"],
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return


def main(goal: str) -> str | None:
    """Make the machine ready; else what to do, for people."""
    logging.basicConfig(level=logging.ERROR)  # how the browser runs is told when it is used
    manager = Manager.find()
    try:
        needs = install(goal, manager)
    except EnvironmentFailed as exc:
        return str(exc)
    if not needs:
        return browser_fault()
    text = f"make {goal} needs {', '.join(need.what for need in needs)}"
    packages = manager.choose(needs) if manager else []
    if manager is None or not packages:
        return f"{text}: install them, then try again."
    reason = f"; {manager.complaint}" if manager.complaint else ""
    return f"{text}{reason}.\n{manager.advice(packages)}"


if __name__ == "__main__":
    if sys.argv[1:] not in (["demo"], ["test"]):
        sys.exit("Usage: install.py demo|test")
    sys.exit(main(sys.argv[1]))
